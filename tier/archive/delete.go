package archive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"varve/broker/kafka"
	"varve/tier"
	"varve/tier/chain"
	"varve/tier/manifest"
)

// A deletion removes a deleted topic from the tier (T14).
type deletion struct {
	archive  *Archive
	entry    entry
	topic    string
	id       kafka.TopicID
	done     func()
	failures int
}

// DeleteTopic removes all partitions of one creation of a topic from the tier, however
// long that takes; done is called once it is gone. It may be asked again after a
// restart, until the caller has noted that it is gone.
func (a *Archive) DeleteTopic(topic string, id kafka.TopicID, done func()) {
	d := &deletion{archive: a, topic: topic, id: id, done: done}
	a.schedule(&d.entry, d, 0)
}

func (d *deletion) run() {
	a := d.archive
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Minute)
	defer cancel()
	err := d.remove(ctx)
	switch {
	case a.ctx.Err() != nil:
	case err != nil:
		a.count(func(s *Stats) { s.Errors++; s.LastError = err.Error() })
		again := a.opt.Retry.after(d.failures, rand.Float64())
		d.failures++
		a.opt.Log.Warn("tier: a deleted topic could not be removed; it is tried again", "topic", d.topic, "id", d.id, "err", err, "again", again.Round(time.Millisecond))
		a.done(&d.entry, again)
	default:
		a.opt.Log.Info("tier: removed a deleted topic", "topic", d.topic, "id", d.id)
		d.done()
	}
}

// remove ends every chain, so that a leader that is late cannot go on, then removes the
// folders.
func (d *deletion) remove(ctx context.Context) error {
	store, dir := d.archive.opt.Store, manifest.TopicDir(d.topic, d.id)
	partitions, err := store.List(ctx, dir)
	if errors.Is(err, tier.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range partitions {
		n, err := strconv.ParseInt(f.Name, 10, 32)
		if err != nil {
			continue
		}
		c := chain.Chain{
			Folder: chain.At(store, kafka.TopicPartition{Topic: d.topic, Partition: int32(n)}, d.id),
			Writer: manifest.TombstoneWriter(manifest.Writer{Broker: d.archive.opt.Broker, BrokerEpoch: d.archive.opt.BrokerEpoch, Incarnation: d.archive.opt.Incarnation}),
		}
		if err := c.End(ctx); err != nil {
			return fmt.Errorf("ending the manifest of %s: %w", c.Path, err)
		}
	}
	if err := store.DeleteAll(ctx, dir); err != nil {
		return err
	}
	parent, _ := tier.Parent(dir)
	_ = store.Delete(ctx, parent) // goes with the last creation of the topic, refused before
	return nil
}
