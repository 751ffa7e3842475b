// Package controller decides what the cluster's metadata becomes: a request in,
// records and an answer out.
//
// A Machine holds the speculative image: the committed one and everything it has
// decided since. It has no clock, log or network; its driver (ha/runner) appends the
// records and lets an answer out only when the edits it rests on are in the log (A3),
// and on any refusal throws the Machine away with its image (A4).
//
//	request ─► Step ─► records ─► journal ─► committed image ─► answer
//	             └── speculative image ◄─┘ (at once)
//
// Refusals carry Kafka's codes in the words of Kafka 4.3's controller, which tools
// print.
package controller

import (
	"fmt"
	"time"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// Config is what a controller knows beside its image. The zero value is usable with
// NewID set.
type Config struct {
	// NewID draws a topic id that was never used; required.
	NewID func() kafka.TopicID
	// DefaultPartitions and DefaultReplication stand for -1 in CreateTopics
	// (num.partitions, default.replication.factor); 0 is 1.
	DefaultPartitions  int32
	DefaultReplication int16
	// MinISR is min.insync.replicas of a topic with these settings; nil is 1.
	MinISR func(settings map[string]string) int
	// Tiered tells whether a topic's segments go to the tier (T14); nil is no.
	Tiered func(settings map[string]string) bool
	// CheckConfig validates a resource's whole settings as they would become; nil
	// accepts all. The refusal's message is what the client sees.
	CheckConfig func(t metadata.ResourceType, name string, settings map[string]string) *kafka.Error
	// ListDefault tells whether a config is a list, and its default; nil is no.
	ListDefault func(t metadata.ResourceType, key string) (value string, list bool)
	// MaxPartitions bounds what one request creates; 0 is Kafka's 10 000.
	MaxPartitions int
}

func (c *Config) fill() {
	if c.NewID == nil {
		panic("controller: Config.NewID is required")
	}
	if c.DefaultPartitions == 0 {
		c.DefaultPartitions = 1
	}
	if c.DefaultReplication == 0 {
		c.DefaultReplication = 1
	}
	if c.MaxPartitions == 0 {
		c.MaxPartitions = 10_000
	}
	if c.MinISR == nil {
		c.MinISR = func(map[string]string) int { return 1 }
	}
	if c.Tiered == nil {
		c.Tiered = func(map[string]string) bool { return false }
	}
	if c.CheckConfig == nil {
		c.CheckConfig = func(metadata.ResourceType, string, map[string]string) *kafka.Error { return nil }
	}
	if c.ListDefault == nil {
		c.ListDefault = func(metadata.ResourceType, string) (string, bool) { return "", false }
	}
}

// A Machine is one controller's term.
type Machine struct {
	cfg  Config
	spec *metadata.Image // committed image and every record returned so far
}

// New begins a term on the committed image, read to the end of the log.
func New(committed *metadata.Image, cfg Config) *Machine {
	cfg.fill()
	return &Machine{cfg: cfg, spec: committed}
}

// Image is the speculative image. Nothing may be told to anybody from it (A3).
func (c *Machine) Image() *metadata.Image { return c.spec }

// An Outcome is what a request leads to. Without Records the answer still needs proof
// that the log's end is ours (Term.Check) before it goes out (A3).
type Outcome struct {
	Records []metadata.Record
	// Atomic: readers must see all of the records or none; more than one edit's worth
	// is framed (A15).
	Atomic bool
	Answer Answer
}

// Step decides req. Its records are in the speculative image when it returns.
func (c *Machine) Step(now time.Time, req Request) Outcome {
	out := c.decide(req)
	c.spec = c.spec.Apply(c.spec.N(), out.Records)
	return out
}

func (c *Machine) decide(req Request) Outcome {
	switch req := req.(type) {
	case BeginTerm:
		return c.beginTerm(req)
	case RegisterBroker:
		return c.registerBroker(req)
	case FenceBroker:
		return c.fenceBroker(req)
	case CreateTopics:
		return c.createTopics(req)
	case DeleteTopics:
		return c.deleteTopics(req)
	case CreatePartitions:
		return c.createPartitions(req)
	case AlterConfigs:
		return c.alterConfigs(req)
	case AlterPartition:
		return c.alterPartition(req)
	case AllocateProducerIDs:
		return c.allocateProducerIDs(req)
	case ForgetTopics:
		return c.forgetTopics(req)
	default:
		panic(fmt.Sprintf("controller: unknown request %T", req))
	}
}
