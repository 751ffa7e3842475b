// Package cluster runs a whole cluster of Varve's pure machines under a seed: two
// controllers, three brokers that replicate one partition, an edit log that loses
// replies, and a network that delays, drops and repeats.
//
//	seed ─► scheduler ─► one step: a message, an edit, an append, a crash, a false alarm…
//	                        └─► every Invariant is checked after it
//
// The machines are the product's: controller.Machine, metadata.Image (through its bytes),
// replica.Leader and replica.Follower. What stands here is what drives them: the edit
// log, the tails, the wires. Each rule of protocols.md that this driver or these
// machines keep can be switched off; the run then shows a history that the rule
// prevents. The same seed gives the same run.
package cluster

import (
	"fmt"
	"math/rand/v2"
	"time"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/ha/controller"
)

const (
	brokers     = 3
	controllers = 2
	topic       = "t"
	minISR      = 2
	maxLag      = 10 * time.Second
)

// A Rule is a rule of protocols.md that can be switched off.
type Rule string

// The rules with a switch.
const (
	OneAppendInFlight    Rule = "A1" // an edit is created only behind its predecessor, one in flight
	SameBytesUntilKnown  Rule = "A2" // a lost reply is settled by repeating the same bytes
	AnswersAreInTheLog   Rule = "A3" // nothing is answered that rests on an edit not yet in the log
	SteppingDownForgets  Rule = "A4" // who steps down throws its speculative image away
	ActsOnOwnRegistering Rule = "A5" // a broker acts only on an image with its own registration
	PositionHasItsEpoch  Rule = "A6" // a follower's position is of the broker epoch its fetch carried
	ELRKeepsTheLeavers   Rule = "A7" // below min ISR the high watermark stands, leavers stay electable
	WaitsForBothISRs     Rule = "A8" // the leader does not act on the ISR that it proposed
	OnlyTheLatestFetch   Rule = "A9" // a response counts only for the latest fetch
)

// Rules are all rules with a switch.
var Rules = []Rule{
	OneAppendInFlight, SameBytesUntilKnown, AnswersAreInTheLog, SteppingDownForgets, ActsOnOwnRegistering,
	PositionHasItsEpoch, ELRKeepsTheLeavers, WaitsForBothISRs, OnlyTheLatestFetch,
}

// A record is what the simulated logs hold: its leader epoch and who it is.
type record struct {
	epoch kafka.LeaderEpoch
	id    int
}

// A World is one cluster. Everything in it happens in step.
type World struct {
	rng *rand.Rand
	off Rule
	now time.Time

	upTo             [kinds]int // where each kind of step ends on the wheel
	lossOf, repeatOf int        // one message in so many is lost, comes again

	log         editLog
	controllers [controllers]*controllerNode
	brokers     [brokers]*broker
	net         []message
	ids         int

	// revealed are the records below the highest high watermark that any leader had: what
	// consumers saw and producers were acknowledged.
	revealed   []record
	invariants []Invariant
	violation  *Violation
	trace      []string
}

// Facts counts what a run did.
type Facts struct{ Steps, Edits, Revealed, LeaderEpochs int }

// New makes the cluster of a seed with one rule off ("" = none): everybody is registered,
// broker 0 leads.
func New(seed uint64, off Rule) *World {
	w := &World{
		rng: rand.New(rand.NewPCG(seed, 1)), off: off, now: time.Unix(1_000_000, 0),
		invariants: Invariants(),
	}
	w.draw()
	w.log.czxid = 100
	first := controller.New(metadata.Empty(), w.config())
	img := metadata.Empty()
	requests := []controller.Request{controller.BeginTerm{Epoch: 1, Who: "c0", ClusterID: "sim"}}
	for b := range w.brokers {
		w.brokers[b] = newBroker(w, kafka.BrokerID(b))
		w.brokers[b].register()
		requests = append(requests, w.log.registration(kafka.BrokerID(b)))
	}
	requests = append(requests, controller.CreateTopics{Topics: []controller.NewTopic{{
		Name: topic, Partitions: -1, ReplicationFactor: -1,
		Assignments: []controller.Assignment{{Partition: 0, Brokers: []kafka.BrokerID{0, 1, 2}}},
	}}})
	w.log.epoch = 1
	for _, req := range requests {
		out := first.Step(w.now, req)
		e := w.newEdit(0, 1, out.Records, fmt.Sprintf("%T", req))
		w.log.edits = append(w.log.edits, e)
		img = img.Apply(int64(len(w.log.edits)), out.Records)
	}
	for i := range w.controllers {
		w.controllers[i] = &controllerNode{w: w, id: i, committed: img, n: len(w.log.edits)}
	}
	for _, b := range w.brokers {
		b.img, b.n = img, len(w.log.edits)
		b.adopt()
	}
	return w
}

func (w *World) config() controller.Config {
	least := minISR
	if w.is(ELRKeepsTheLeavers) {
		least = 1
	}
	return controller.Config{
		NewID:  func() kafka.TopicID { return kafka.TopicID{15: 1} },
		MinISR: func(map[string]string) int { return least },
	}
}

// is tells whether rule r is off.
func (w *World) is(r Rule) bool { return w.off == r }

// chance is true once in n.
func (w *World) chance(n int) bool { return w.rng.IntN(n) == 0 }

func (w *World) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// Run takes at most steps steps and stops at the first violation.
func (w *World) Run(steps int) (Facts, *Violation) {
	var f Facts
	for f.Steps < steps && w.violation == nil {
		w.step()
		w.check()
		f.Steps++
	}
	f.Edits, f.Revealed = len(w.log.edits), len(w.revealed)
	f.LeaderEpochs = int(state(w.truth()).LeaderEpoch)
	return f, w.violation
}

// Trace is the run's history, a line an event.
func (w *World) Trace() []string { return w.trace }

// weights are how often each kind of step is taken, in the middle of all seeds.
var weights = [...]int{
	takeOver: 6, decide: 16, send: 24, serve: 24, settle: 10, follow: 6, tail: 30, produce: 10, pull: 24, deliver: 50, tick: 16, fault: 6, register: 10,
}

// The kinds of steps.
const (
	takeOver = iota
	decide
	send
	serve
	settle
	follow
	tail
	produce
	pull
	deliver
	tick
	fault
	register
	kinds
)

// draw gives each seed a temper of its own: some kinds of steps up to four times as often as
// in others (A. Groce et al.: Swarm testing, 2012).
func (w *World) draw() {
	total := 0
	for k := range weights {
		total += weights[k] << w.rng.IntN(3)
		w.upTo[k] = total
	}
	w.lossOf, w.repeatOf = 4+w.rng.IntN(20), 2+w.rng.IntN(12)
}

// step lets one thing happen.
func (w *World) step() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(160)) * time.Millisecond)
	c := w.controllers[w.rng.IntN(controllers)]
	b := w.brokers[w.rng.IntN(brokers)]
	at := w.rng.IntN(w.upTo[kinds-1])
	kind := 0
	for w.upTo[kind] <= at {
		kind++
	}
	switch kind {
	case takeOver:
		if !w.someoneLeads() || w.chance(6) {
			c.takeOver()
		}
	case decide:
		c.decide(c.newest(b.id))
	case send:
		c.send()
	case serve:
		w.log.serve(w)
	case settle:
		c.settle()
	case follow:
		c.tail()
	case tail:
		b.tail()
	case produce:
		b.append()
	case pull:
		b.fetch()
	case deliver:
		w.deliver()
	case tick:
		b.tick()
	case fault:
		b.fault()
	case register:
		for i := 0; i < brokers && !b.maybeRegister(); i++ {
			b = w.brokers[(int(b.id)+1)%brokers]
		}
	}
}

// someoneLeads tells whether the newest term is still held.
func (w *World) someoneLeads() bool {
	for _, c := range w.controllers {
		if c.machine != nil && c.epoch == w.log.epoch {
			return true
		}
	}
	return false
}

// truth is the image at the end of the log.
func (w *World) truth() *metadata.Image {
	w.log.fold()
	return w.log.image
}

// state is the one partition's.
func state(img *metadata.Image) metadata.PartitionState {
	s, _ := img.Partition(kafka.TopicPartition{Topic: topic})
	return s
}
