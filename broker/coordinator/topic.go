package coordinator

import (
	"context"
	"strconv"
	"time"

	"varve/broker/kafka"
	"varve/ha/controller"
)

// A Topic says how the offsets topic is made at first use.
type Topic struct {
	Partitions   int32 // offsets.topic.num.partitions
	Replication  int16 // offsets.topic.replication.factor
	SegmentBytes int   // offsets.topic.segment.bytes
}

// loadWait is how long Ready lets a shard load before clients are sent to it: they
// would only be told to come back.
const loadWait = time.Second

// Ready tells whether the coordinator of a group can be asked here. It makes the
// offsets topic where there is none yet, and takes the group's shard into service.
func (c *Coordinator) Ready(ctx context.Context, group string) *kafka.Error {
	if e := c.makeTopic(ctx); e != nil {
		return e
	}
	n := c.Shard(group)
	s := c.shard(n)
	if s == nil {
		return kafka.Refuse(kafka.CoordinatorNotAvailable, "%s is not there yet", OffsetsTopic)
	}
	t := s.begun(time.Now())
	if t == nil {
		return kafka.Refuse(kafka.CoordinatorNotAvailable, "%s-%d has no leader here yet", OffsetsTopic, n)
	}
	ctx, cancel := context.WithTimeout(ctx, loadWait)
	defer cancel()
	select {
	case <-t.ready:
	case <-ctx.Done():
	}
	return nil
}

// begun is the shard's present term; nil where this broker does not lead.
func (s *shard) begun(now time.Time) (t *term) {
	s.review(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.term
}

// makeTopic makes the offsets topic, if it is not there. When the controller has
// answered, the partitions here have followed.
func (c *Coordinator) makeTopic(ctx context.Context) *kafka.Error {
	if c.hasTopic() {
		return nil
	}
	c.making.Lock()
	defer c.making.Unlock()
	if c.hasTopic() {
		return nil
	}
	answer, err := c.opt.Controller.Do(ctx, controller.CreateTopics{Topics: []controller.NewTopic{c.opt.Topic.wanted()}})
	if err != nil {
		return kafka.Refuse(kafka.CoordinatorNotAvailable, "making %s: %v", OffsetsTopic, err)
	}
	made := answer.(controller.TopicsCreated).Topics[0]
	if made.Err != nil && made.Err.Code != kafka.TopicAlreadyExists {
		return kafka.Refuse(kafka.CoordinatorNotAvailable, "making %s: %v", OffsetsTopic, made.Err)
	}
	return nil
}

func (c *Coordinator) hasTopic() bool {
	_, ok := c.opt.Controller.Image().Topic(OffsetsTopic)
	return ok
}

func (t Topic) wanted() controller.NewTopic {
	set := func(name, value string) controller.NamedValue {
		return controller.NamedValue{Name: name, Value: &value}
	}
	return controller.NewTopic{Name: OffsetsTopic, Partitions: t.Partitions, ReplicationFactor: t.Replication,
		Configs: []controller.NamedValue{set("cleanup.policy", "compact"), set("compression.type", "producer"),
			set("segment.bytes", strconv.Itoa(t.SegmentBytes))}}
}
