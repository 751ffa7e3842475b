package coordinator

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/group"
	"varve/broker/kafka"
	"varve/broker/partition"
)

// A state is where a shard stands; the picture is in the package comment.
type state uint8

const (
	absent state = iota
	loading
	serving
	failed
)

// A shard is one partition's groups. mu is held across the append of a step, not only
// for memory: steps and their records must have one order, and handing them to a
// goroutine costs more than the write, as in commitlog.
type shard struct {
	c     *Coordinator
	n     int32
	waits waits

	mu struct {
		sync.Mutex
		state   state
		term    *term
		machine *group.Machine // while serving
		closed  bool
	}
}

// A term is one loading of a shard and what it serves until it is dropped. Its pointer
// is its name: the same leadership may be loaded twice.
type term struct {
	p     *partition.Partition
	epoch kafka.LeaderEpoch
	end   kafka.Offset  // of what the shard has loaded or appended
	ready chan struct{} // closed when it no longer loads
	writer
}

// leads tells whether this broker still leads in the term's epoch.
func (t *term) leads() bool {
	epoch, ok := t.p.Epoch()
	return ok && epoch == t.epoch
}

func newShard(c *Coordinator, n int32) *shard {
	s := &shard{c: c, n: n}
	s.waits.mu.open = map[group.RequestID]wait{}
	return s
}

// ask takes a request. What must be in the log for the answer to be true is appended
// before ask returns.
func (s *shard) ask(now time.Time, from Client, body kmsg.Request, done func(kmsg.Response)) {
	r := group.Request{ClientID: from.ID, ClientHost: from.Host, Body: body}
	if _, ok := body.(*kmsg.JoinGroupRequest); ok {
		r.NewID = newID()
	}
	refused := kafka.None
	s.do(now, func() (records []group.Record, replies []group.Reply) {
		if refused = s.current(now); refused != kafka.None {
			return nil, nil
		}
		r.ID = s.waits.add(wait{body, done})
		return s.mu.machine.Step(now, r)
	})
	if refused != kafka.None {
		done(group.Refuse(body, refused))
	}
}

// newID is a random UUID, as Kafka's clients expect it in a member id.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// tick does what is due.
func (s *shard) tick(now time.Time) {
	s.do(now, func() ([]group.Record, []group.Reply) {
		if s.mu.state != serving || s.current(now) != kafka.None {
			return nil, nil
		}
		return s.mu.machine.Tick(now)
	})
}

// review follows the leadership of the partition.
func (s *shard) review(now time.Time) {
	s.do(now, func() ([]group.Record, []group.Reply) {
		s.current(now)
		return nil, nil
	})
}

// forget drops what was committed for topics that are no more.
func (s *shard) forget(now time.Time) {
	s.do(now, func() ([]group.Record, []group.Reply) {
		if s.mu.state != serving {
			return nil, nil // loading ends with it
		}
		return s.mu.machine.ForgetTopics(s.c.gone()), nil
	})
}

// gone tells of a topic that somebody has committed for whether it is no more, or is
// another of that name. An offset is committed for topics in the image only, and every
// leader's image has all that the leaders before it have had, so a topic that is not
// there has been deleted.
func (c *Coordinator) gone() func(name string, id kafka.TopicID) bool {
	image := c.opt.Controller.Image()
	return func(name string, id kafka.TopicID) bool {
		t, ok := image.Topic(name)
		return !ok || !id.IsZero() && id != t.ID
	}
}

// do runs a step under the lock, appends its records and then, without the lock, has
// its replies delivered when everything appended so far is revealed (C1).
func (s *shard) do(now time.Time, step func() ([]group.Record, []group.Reply)) {
	t, end, replies, dropped := s.step(now, step)
	dropped.refuse()
	if len(replies) > 0 {
		s.deliver(t, end, replies)
	}
}

func (s *shard) step(now time.Time, step func() ([]group.Record, []group.Reply)) (t *term, end kafka.Offset, replies []group.Reply, dropped refusals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { dropped = s.waits.takeDropped() }()
	records, replies := step()
	if s.mu.state != serving {
		return nil, 0, nil, nil
	}
	t = s.mu.term
	if code := s.write(now, t, records); code != kafka.None {
		s.drop(code)
		return nil, 0, nil, nil
	}
	if at, ok := s.mu.machine.Next(); ok {
		s.c.alarm.by(at)
	}
	return t, t.end, replies, nil
}

// deliver answers when all below end is revealed, in this term.
func (s *shard) deliver(t *term, end kafka.Offset, replies []group.Reply) {
	t.p.Await(end, func(code kafka.Code) {
		if code != kafka.None || !t.leads() { // the epoch only rises: it was t's all along
			s.waits.refuse(replies, kafka.NotCoordinator)
			return
		}
		s.waits.answer(replies)
	})
}

// current sees to it that the shard is the one of the present leadership, and is the
// code that requests are refused with. The lock is held.
func (s *shard) current(now time.Time) kafka.Code {
	p, code := s.c.opt.Partitions.Find(OffsetsTopic, s.n)
	if code != kafka.None || s.mu.closed {
		s.drop(kafka.NotCoordinator)
		return kafka.NotCoordinator
	}
	epoch, leads := p.Epoch()
	switch t := s.mu.term; {
	case !leads || p.Log().Failed() != nil:
		s.drop(kafka.NotCoordinator)
		return kafka.NotCoordinator
	case t == nil || t.p != p || t.epoch != epoch:
		s.drop(kafka.NotCoordinator)
		s.begin(now, &term{p: p, epoch: epoch, ready: make(chan struct{})})
	}
	switch s.mu.state {
	case loading:
		return kafka.CoordinatorLoadInProgress
	case failed:
		return kafka.NotCoordinator
	}
	return kafka.None
}

// drop throws the machine away; who waits for it is answered with the code as soon as
// the lock is free. The lock is held.
func (s *shard) drop(code kafka.Code) {
	if t := s.mu.term; t != nil && s.mu.state == loading {
		close(t.ready)
	}
	s.mu.state, s.mu.term, s.mu.machine = absent, nil, nil
	s.waits.drop(code)
}

func (s *shard) close() {
	s.do(time.Now(), func() ([]group.Record, []group.Reply) {
		s.mu.closed = true
		s.drop(kafka.NotCoordinator)
		return nil, nil
	})
}
