package coordinator

import (
	"errors"
	"fmt"
	"time"

	"varve/broker/group"
	"varve/broker/kafka"
	"varve/broker/record"
)

// begin takes a term up. An empty log is loaded already; another is read outside the
// lock, which is held here.
func (s *shard) begin(now time.Time, t *term) {
	log := t.p.Log()
	t.end = log.End()
	s.mu.term, s.mu.state = t, loading
	if log.Start() == t.end && t.p.HighWatermark() >= t.end {
		s.serve(now, t, group.New(s.c.opt.Group))
		return
	}
	s.c.wg.Add(1)
	go s.load(t)
}

// load reads the log up to its end at the election, and waits for that to be revealed
// (C1): as long as the term lasts.
func (s *shard) load(t *term) {
	defer s.c.wg.Done()
	s.c.loads <- struct{}{}
	began := time.Now()
	m := group.New(s.c.opt.Group)
	err := s.replay(m, t)
	<-s.c.loads
	if err != nil {
		s.fail(t, err)
		return
	}
	t.p.Await(t.end, func(code kafka.Code) {
		if code != kafka.None {
			return // the term is over; who leads next finds it out
		}
		now := time.Now()
		s.do(now, func() ([]group.Record, []group.Reply) {
			if s.mu.term != t || !t.leads() {
				return nil, nil
			}
			s.c.opt.Log.Info("loaded the groups of a partition", "partition", t.p.Name().String(), "epoch", t.epoch,
				"end", t.end, "took", now.Sub(began))
			return s.serve(now, t, m), nil
		})
	})
}

// serve begins service and is what that puts into the log; the lock is held. What was
// committed for topics that were deleted meanwhile goes.
func (s *shard) serve(now time.Time, t *term, m *group.Machine) []group.Record {
	s.mu.state, s.mu.machine = serving, m
	close(t.ready)
	records := m.Loaded(now)
	return append(records, m.ForgetTopics(s.c.gone())...)
}

// fail leaves the shard out of service until the leadership moves: half a history must
// not be served.
func (s *shard) fail(t *term, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.term != t || errors.Is(err, errOver) {
		return
	}
	s.mu.state = failed
	close(t.ready)
	s.c.opt.Log.Error("the groups of a partition cannot be read: they are out of service; look at its log with the dump tool",
		"partition", t.p.Name().String(), "epoch", t.epoch, "err", err)
}

var errOver = errors.New("the term is over")

// replay has the machine load every record of the term's log.
func (s *shard) replay(m *group.Machine, t *term) error {
	var unfold record.Decompressor
	var open transactions
	return t.p.Log().Walk(t.p.Log().Start(), t.end, func(b record.Batch) error {
		select {
		case <-t.ready: // dropped
			return errOver
		default:
		}
		if b.Control() {
			return open.end(m, b)
		}
		it := b.Records(&unfold)
		var r record.Record
		for it.Next(&r) {
			if b.Transactional() {
				open.add(b.ProducerID(), r)
				continue
			}
			if err := load(m, r); err != nil {
				return err
			}
		}
		return it.Err()
	})
}

func load(m *group.Machine, r record.Record) error {
	if err := m.Load(r.Key, r.Value); err != nil {
		return fmt.Errorf("offset %d: %w", r.Offset, err)
	}
	return nil
}
