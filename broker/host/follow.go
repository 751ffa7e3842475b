package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/partition"
)

// Follow makes the partitions here what an image says, given the image before. It is
// the watcher of the committed image: calls come one at a time, in order.
func (h *Host) Follow(old, image *metadata.Image) {
	h.follow.Lock()
	defer h.follow.Unlock()
	starting := h.image == nil
	h.image = image
	work := newCrew()
	for before, after := range metadata.Changed(old, image) {
		switch {
		case after == nil:
			h.log.Info("a topic was deleted", "topic", before.Name, "id", before.ID.String())
			h.drop(before)
		case before != nil && before.ID != after.ID:
			h.drop(before)
			h.take(after, !starting, work)
		default:
			if before == nil && !starting {
				h.log.Info("a topic was made", "topic", after.Name, "id", after.ID.String(), "partitions", after.Count())
			}
			h.take(after, !starting, work)
		}
	}
	work.wait()
	h.removeDeleted(image)
}

// reopen tries again what is out of service: a disk has space again, or a file came
// back. What lies in a folder that failed waits for a restart.
func (h *Host) reopen() {
	h.follow.Lock()
	defer h.follow.Unlock()
	if h.image == nil {
		return
	}
	work := newCrew()
	for _, t := range h.broken() {
		if now, ok := h.image.Topic(t.name); ok && now.ID == t.id {
			h.take(now, false, work)
		}
	}
	work.wait()
}

// broken are the topics with partitions that are out of service.
func (h *Host) broken() (out []*topic) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, t := range h.mu.topics {
		if len(t.down) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// take opens, leads and configures what a topic has here. Partitions that are not here
// yet are new where fresh says so; else they may lie in a folder that failed.
func (h *Host) take(t *metadata.Topic, fresh bool, work *crew) {
	settings := h.opt.Settings(t.Name, t.Configs())
	h.mu.RLock()
	had := h.mu.topics[t.Name]
	h.mu.RUnlock()
	next := &topic{name: t.Name, id: t.ID, parts: make([]*partition.Partition, t.Count())}
	if had != nil {
		copy(next.parts, had.parts)
	}
	var down sync.Map // partitions that are out of service
	for n, state := range t.Of(h.opt.Broker) {
		tp := kafka.TopicPartition{Topic: t.Name, Partition: n}
		work.do(func() {
			again := had != nil && had.down[n]
			p := next.parts[n]
			if p == nil {
				if p = h.open(tp, t.ID, settings, fresh && !again, again); p == nil {
					down.Store(n, true)
					return
				}
				next.parts[n] = p
			} else if p.Settings() != settings {
				p.Set(settings)
				p.Tier(h.tier)
			}
			if err := h.lead(p, state); err != nil {
				h.report(tp, err, again)
				down.Store(n, true)
			} else if again {
				h.log.Info("a partition is in service again", "partition", tp.String())
			}
		})
	}
	work.after(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		down.Range(func(n, _ any) bool {
			if next.down == nil {
				next.down = map[int32]bool{}
			}
			next.down[n.(int32)] = true
			return true
		})
		h.mu.topics[t.Name], h.mu.byID[t.ID] = next, next
	})
}

// open opens a partition's log where it lies, or makes it in the emptiest folder. While
// a folder is out of service only a fresh partition is made: another's records may lie
// there, and an empty log in their place would tell consumers that they are gone. again
// says that it failed before, and was reported.
func (h *Host) open(tp kafka.TopicPartition, id kafka.TopicID, s *partition.Settings, fresh, again bool) *partition.Partition {
	p, err := h.openOrMake(tp, id, s, fresh)
	if err != nil {
		h.report(tp, err, again)
	}
	return p
}

// report tells that a partition is out of service, aloud the first time.
func (h *Host) report(tp kafka.TopicPartition, err error, again bool) {
	level := slog.LevelError
	if again {
		level = slog.LevelDebug
	}
	h.log.Log(context.Background(), level, "a partition is out of service: it answers KAFKA_STORAGE_ERROR and is tried again", "partition", tp.String(), "err", err)
}

func (h *Host) openOrMake(tp kafka.TopicPartition, id kafka.TopicID, s *partition.Settings, fresh bool) (*partition.Partition, error) {
	if d := h.home.of(tp); d != nil {
		log, err := d.Open(tp, id, &s.Log)
		var older *commitlog.MismatchError
		switch {
		case err == nil:
			return partition.New(log, s), nil
		case errors.As(err, &older):
			h.setAside(d, tp, older)
		default:
			return nil, err
		}
	} else if out := h.outOfService(); out != nil && !fresh {
		return nil, fmt.Errorf("it lies in no folder that is in service, and may lie in one that is not: %w", out)
	}
	d := h.home.choose(h.dirs, tp)
	if d == nil {
		return nil, errors.New("no log dir is in service")
	}
	log, err := d.Create(tp, id, &s.Log)
	if err != nil {
		h.home.forget(tp)
		return nil, err
	}
	return partition.New(log, s), nil
}

// outOfService is why a folder serves no more, or never did; nil where all serve.
func (h *Host) outOfService() error {
	errs := slices.Clone(h.missing)
	for _, d := range h.dirs {
		errs = append(errs, d.Failed())
	}
	return errors.Join(errs...)
}

// setAside moves the folder of an older topic of that name out of the way.
func (h *Host) setAside(d *commitlog.Dir, tp kafka.TopicPartition, older *commitlog.MismatchError) {
	log, err := d.Open(tp, older.Had, &commitlog.Config{})
	if err == nil {
		var where string
		if where, err = d.SetAside(log); err == nil {
			h.home.forget(tp)
			h.log.Warn("set the log of an older topic of that name aside; look at it and delete it", "folder", where)
			return
		}
	}
	h.log.Error("setting an older log aside failed", "partition", tp.String(), "err", err)
}

// lead begins a term where the image says that this broker leads in a new epoch.
func (h *Host) lead(p *partition.Partition, s metadata.PartitionState) error {
	epoch, leads := p.Epoch()
	switch {
	case s.Leader != h.opt.Broker:
		p.Resign()
		return nil
	case leads && epoch == s.LeaderEpoch:
		return nil
	case leads:
		p.Resign()
	}
	err := p.Lead(time.Now(), partition.Term{Epoch: s.LeaderEpoch, PartitionEpoch: s.PartitionEpoch, Broker: h.opt.Broker,
		Replicas: s.Replicas, ISR: s.ISR}, h.tier)
	if err != nil {
		return fmt.Errorf("beginning to lead in epoch %d: %w", s.LeaderEpoch, err)
	}
	return nil
}

// drop deletes what a deleted topic has here.
func (h *Host) drop(t *metadata.Topic) {
	h.mu.Lock()
	had := h.mu.topics[t.Name]
	if had != nil && had.id == t.ID {
		delete(h.mu.topics, t.Name)
		delete(h.mu.byID, t.ID)
	}
	h.mu.Unlock()
	if had == nil || had.id != t.ID {
		return
	}
	for _, p := range had.parts {
		if p == nil {
			continue
		}
		p.Resign()
		h.home.forget(p.Name())
		if err := p.Log().Dir().Delete(p.Log(), time.Now().UnixMilli()); err != nil {
			h.log.Error("deleting a partition's log failed", "partition", p.Name().String(), "err", err)
		}
	}
}

// removeDeleted begins to remove deleted topics from the tier.
func (h *Host) removeDeleted(image *metadata.Image) {
	if h.tier == nil {
		return
	}
	was := h.removing
	h.removing = map[kafka.TopicID]bool{}
	for _, t := range image.Deleted() {
		h.removing[t.ID] = true
		if was[t.ID] {
			continue
		}
		id := t.ID
		h.tier.DeleteTopic(t.Name, id, func() { h.opt.Forget(id) })
	}
}

// A crew does the opening of many partitions with a few goroutines.
type crew struct {
	jobs chan func()
	wg   sync.WaitGroup
	last []func()
}

func newCrew() *crew { return &crew{} }

// do gives f to the crew, which comes with the first.
func (c *crew) do(f func()) {
	if c.jobs == nil {
		c.jobs = make(chan func(), 1024)
		for range 2 * runtime.NumCPU() {
			c.wg.Add(1)
			go func() {
				defer c.wg.Done()
				for f := range c.jobs {
					f()
				}
			}()
		}
	}
	c.jobs <- f
}

// after runs f when all that was given to do is done.
func (c *crew) after(f func()) { c.last = append(c.last, f) }

func (c *crew) wait() {
	if c.jobs != nil {
		close(c.jobs)
		c.wg.Wait()
	}
	for _, f := range c.last {
		f()
	}
}
