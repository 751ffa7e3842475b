package broker

import (
	"time"

	"varve/broker/coordinator"
	"varve/broker/group"
)

// coordinate makes the group coordinator; it loads nothing yet.
func (b *Broker) coordinate() {
	c := b.opt.Conf
	initial := millis(c.Long("group.initial.rebalance.delay.ms"))
	if initial == 0 {
		initial = -1
	}
	b.groups = coordinator.New(coordinator.Options{
		Partitions: b.host, Controller: b.opt.Runner, Log: b.opt.Logger("kafka.coordinator.group.GroupCoordinator"),
		Topic: coordinator.Topic{
			Partitions:   int32(c.Int("offsets.topic.num.partitions")),
			Replication:  int16(c.Int("offsets.topic.replication.factor")),
			SegmentBytes: c.Int("offsets.topic.segment.bytes"),
		},
		Group: group.Config{
			MinSession: millis(c.Long("group.min.session.timeout.ms")), MaxSession: millis(c.Long("group.max.session.timeout.ms")),
			InitialDelay: initial, MaxSize: c.Int("group.max.size"), MaxMetadata: c.Int("offset.metadata.max.bytes"),
			Retention:         time.Duration(c.Int("offsets.retention.minutes")) * time.Minute,
			RetentionInterval: millis(c.Long("offsets.retention.check.interval.ms")),
		},
	})
}
