package broker

import (
	"context"
	"fmt"
	"math"
	"time"

	"varve/broker/kafka"
	"varve/conf"
	"varve/ha/controller"
	"varve/tier/archive"
	"varve/tier/cache"
)

// openTier gives the host its archive, where there is a store.
func (b *Broker) openTier() (err error) {
	if b.opt.Store == nil {
		return nil
	}
	c := b.opt.Conf
	dir := c.String("tier.cache.dir")
	if dir == "" {
		dir = b.host.Dirs()[0].Path() + "/__tier_cache" // the first that serves
	}
	if b.cache, err = cache.Open(cache.Config{FS: b.opt.FS, Dir: dir, Bytes: c.Long("tier.cache.bytes"),
		Workers: c.Int("remote.log.reader.threads")}); err != nil {
		return fmt.Errorf("opening the tier's cache: %w", err)
	}
	b.archive = archive.New(archive.Options{
		Pressure: func() float64 { return b.strain.Share(time.Now()) },
		Store:    b.opt.Store, Cache: b.cache, Log: b.opt.Logger("varve.tier"), Broker: b.id, BrokerEpoch: b.epoch,
		Interval: tierInterval(c), BytesPerSecond: unlimited(c.Long("tier.copy.max.bytes.per.second")),
		Retry: archive.Retry{First: millis(c.Long("remote.log.manager.task.retry.backoff.ms")), Longest: millis(c.Long("remote.log.manager.task.retry.backoff.max.ms")),
			Jitter: jitter(c.Double("remote.log.manager.task.retry.jitter"))},
		Grace: grace(c.Long("tier.local.grace.ms")), Outage: outage(c.String("tier.outage.policy")),
	})
	b.host.Attach(b.archive)
	return nil
}

// tierInterval is the longest time between two looks at a tiered partition.
func tierInterval(c *conf.Config) time.Duration {
	return min(millis(c.Long("remote.log.manager.task.interval.ms")), millis(c.Long("log.retention.check.interval.ms")))
}

// grace in the archive's words: 0 is the store's own, below it none.
func grace(ms int64) time.Duration {
	switch ms {
	case -1:
		return 0
	case 0:
		return -1
	}
	return millis(ms)
}

// jitter in the archive's words: below 0 is none.
func jitter(share float64) float64 {
	if share == 0 {
		return -1
	}
	return share
}

// unlimited turns Kafka's "no limit" into the archive's.
func unlimited(n int64) int64 {
	if n == math.MaxInt64 {
		return 0
	}
	return n
}

func outage(policy string) archive.OutagePolicy {
	switch policy {
	case "expire":
		return archive.Expire
	case "block":
		return archive.Block
	}
	return archive.Retain
}

func millis(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// forget tells the controller that nothing of a deleted topic is left in the tier.
func (b *Broker) forget(id kafka.TopicID) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := b.opt.Runner.Do(ctx, controller.ForgetTopics{IDs: []kafka.TopicID{id}}); err != nil {
		b.log.Warn("noting that a deleted topic is gone from the tier failed; it is looked at again after a restart", "id", id.String(), "err", err)
	}
}
