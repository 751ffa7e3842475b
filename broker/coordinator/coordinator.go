// Package coordinator runs the group machines of this broker, one shard for each
// partition of __consumer_offsets that it leads: it appends what they decide and
// answers when that is revealed.
//
//	request ─► machine.Step ─► records ─► partition.Append ─► revealed ─► answer
//	                     └────────────── replies ────────────────┘
//
// A shard:
//
//	          leads, log not empty            read, high watermark there
//	absent ───────────────────────► loading ───────────────────────────► serving
//	  ▲  └── leads, log empty ──────────┼─────────────────────────────────▲  │
//	  │                                 ▼ cannot be read                     │
//	  ├───────── leadership goes ──── failed                                 │
//	  └───────── leadership goes, an append fails ───────────────────────────┘
//
// What is loaded is what lies below the log end at the election, and nothing is
// answered before the high watermark has reached it (C1). Answers are bound to the
// term: when it ends, everything that waits is answered NOT_COORDINATOR, and the next
// owner loads from the log. A shard of an empty partition opens no file.
package coordinator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/group"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/partition"
	"varve/ha/controller"
)

// OffsetsTopic is the topic whose partitions the shards live in.
const OffsetsTopic = "__consumer_offsets"

// Partitions finds the partitions of this broker.
type Partitions interface {
	Find(topic string, p int32) (*partition.Partition, kafka.Code)
}

// Controller makes the offsets topic and tells what topics there are.
type Controller interface {
	Do(ctx context.Context, req controller.Request) (controller.Answer, error)
	Image() *metadata.Image
}

// Options of a Coordinator.
type Options struct {
	Partitions Partitions
	Controller Controller
	Group      group.Config
	Topic      Topic
	Log        *slog.Logger
}

// A Client is who sends a request; Host is as Kafka shows it: /127.0.0.1.
type Client struct{ ID, Host string }

// A Coordinator is the shards of this broker. It is safe for concurrent use.
type Coordinator struct {
	opt    Options
	alarm  alarm
	making sync.Mutex    // of the offsets topic: one asks, the others wait for it
	loads  chan struct{} // bounds the shards that load at a time
	wg     sync.WaitGroup

	mu struct {
		sync.Mutex
		shards map[int32]*shard
		closed bool
	}
}

// loadsMost is how many shards load at a time: each reads a log from end to end.
const loadsMost = 4

// New returns a Coordinator without shards. They come with Follow and Ask.
func New(opt Options) *Coordinator {
	c := &Coordinator{opt: opt, loads: make(chan struct{}, loadsMost)}
	c.mu.shards = map[int32]*shard{}
	c.alarm.ring = c.tick
	return c
}

// Shard is the number of the shard that a group belongs to; -1 where there is no
// offsets topic.
func (c *Coordinator) Shard(name string) int32 {
	t, ok := c.opt.Controller.Image().Topic(OffsetsTopic)
	if !ok {
		return -1
	}
	return group.PartitionFor(name, t.Count())
}

// Shards are the shards here that may know of groups, in no order.
func (c *Coordinator) Shards() []int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []int32
	for n := range c.mu.shards {
		out = append(out, n)
	}
	return out
}

// Ask hands a request to a shard and calls done once with the answer: before it
// returns, or later from any goroutine. done must not call the Coordinator. The
// request is kept until then, and names no topic only by id.
func (c *Coordinator) Ask(shard int32, from Client, req kmsg.Request, done func(kmsg.Response)) {
	s := c.shard(shard)
	if s == nil {
		done(group.Refuse(req, kafka.NotCoordinator))
		return
	}
	s.ask(time.Now(), from, req, done)
}

// shard is the shard of a number, made if need be; nil for none, and after Close.
func (c *Coordinator) shard(n int32) *shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < 0 || c.mu.closed {
		return nil
	}
	s := c.mu.shards[n]
	if s == nil {
		s = newShard(c, n)
		c.mu.shards[n] = s
	}
	return s
}

// all are the shards here.
func (c *Coordinator) all() []*shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*shard, 0, len(c.mu.shards))
	for _, s := range c.mu.shards {
		out = append(out, s)
	}
	return out
}

// Follow is told of every change of the committed image, after the partitions have
// followed it: shards are loaded and unloaded as the leadership of their partitions
// moves, and what was committed for deleted topics is forgotten.
func (c *Coordinator) Follow(old, image *metadata.Image) {
	deleted := false
	for before, after := range metadata.Changed(old, image) {
		switch {
		case after != nil && after.Name == OffsetsTopic:
			c.review(after)
		case before != nil && (after == nil || after.ID != before.ID):
			deleted = true
		}
	}
	if !deleted {
		return
	}
	for _, s := range c.all() {
		s.review(time.Now())
		s.forget(time.Now())
	}
}

// review looks at the leadership of every partition of the offsets topic. Those
// without records wait until somebody asks.
func (c *Coordinator) review(t *metadata.Topic) {
	for n := range t.Count() {
		p, code := c.opt.Partitions.Find(OffsetsTopic, n)
		leads := false
		if code == kafka.None {
			_, leads = p.Epoch()
			leads = leads && p.Log().Start() < p.Log().End()
		}
		c.mu.Lock()
		s := c.mu.shards[n]
		c.mu.Unlock()
		if s == nil && leads {
			s = c.shard(n)
		}
		if s != nil {
			s.review(time.Now())
		}
	}
}

// tick does what is due in every shard and sets the alarm for what is due next.
func (c *Coordinator) tick(now time.Time) {
	for _, s := range c.all() {
		s.tick(now)
	}
}

// Close answers everything that waits with NOT_COORDINATOR and forgets the shards.
func (c *Coordinator) Close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.alarm.stop()
	for _, s := range c.all() {
		s.close()
	}
	c.wg.Wait()
}
