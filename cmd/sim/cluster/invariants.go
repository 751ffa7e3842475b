package cluster

import (
	"fmt"

	"varve/broker/kafka"
)

// An Invariant is a sentence that is true after every step.
type Invariant interface {
	// Check returns what is wrong, "" for nothing.
	Check(w *World) string
}

// A Violation is a history that breaks an invariant.
type Violation struct {
	Invariant string
	What      string
}

func (v *Violation) Error() string { return v.Invariant + ": " + v.What }

// Invariants makes the invariants of one world.
func Invariants() []Invariant {
	return []Invariant{
		NothingRevealedIsLost{}, LogsAgreeBelowHighWatermark{}, &MonotonicHighWatermark{}, &SingleLeaderPerEpoch{}, &OneControllerWritesPerEpoch{},
	}
}

func (w *World) check() {
	for _, inv := range w.invariants {
		if what := inv.Check(w); what != "" {
			w.fail(inv, "%s", what)
		}
	}
}

// fail records the first violation.
func (w *World) fail(inv Invariant, format string, args ...any) {
	if w.violation != nil {
		return
	}
	name := fmt.Sprintf("%T", inv)
	for i := range name {
		if name[i] == '.' {
			name = name[i+1:]
			break
		}
	}
	w.violation = &Violation{name, fmt.Sprintf(format, args...)}
	w.logf("VIOLATION %v", w.violation)
}

// NothingRevealedIsLost: whoever leads the newest epoch has every record that was
// revealed, at its offset.
type NothingRevealedIsLost struct{}

// Check implements Invariant.
func (NothingRevealedIsLost) Check(w *World) string {
	newest := state(w.truth()).LeaderEpoch
	for _, b := range w.brokers {
		if !b.alive || b.leader == nil || b.leaderEpoch < newest {
			continue
		}
		for o, r := range w.revealed {
			if o >= len(b.log) || b.log[o].id != r.id {
				return fmt.Sprintf("b%d leads the newest epoch %d without record %d, revealed at offset %d", b.id, b.leaderEpoch, r.id, o)
			}
		}
	}
	return ""
}

// reveal notes what b's consumers may read. One offset is never revealed with two
// contents.
func (w *World) reveal(b *broker, log []record) {
	for o, r := range log {
		if o >= len(w.revealed) {
			w.revealed = append(w.revealed, r)
		} else if w.revealed[o].id != r.id {
			w.fail(NothingRevealedIsLost{}, "offset %d was revealed as record %d, b%d reveals %d", o, w.revealed[o].id, b.id, r.id)
		}
	}
}

// LogsAgreeBelowHighWatermark: two replicas have the same records below the lower of
// their high watermarks.
type LogsAgreeBelowHighWatermark struct{}

// Check implements Invariant.
func (LogsAgreeBelowHighWatermark) Check(w *World) string {
	for i, a := range w.brokers {
		for _, b := range w.brokers[:i] {
			for o := range min(int(a.high), int(b.high), len(a.log), len(b.log)) {
				if a.log[o] != b.log[o] {
					return fmt.Sprintf("b%d and b%d differ at offset %d", a.id, b.id, o)
				}
			}
		}
	}
	return ""
}

// MonotonicHighWatermark: a leader's high watermark never moves back within its epoch,
// nor above its log's end.
type MonotonicHighWatermark struct {
	seen [brokers]struct {
		incarnation int
		epoch       kafka.LeaderEpoch
		high        kafka.Offset
	}
}

// Check implements Invariant.
func (m *MonotonicHighWatermark) Check(w *World) string {
	for i, b := range w.brokers {
		s := &m.seen[i]
		if b.leader == nil {
			continue
		}
		high := b.leader.High()
		if s.incarnation == b.incarnation && s.epoch == b.leaderEpoch && high < s.high || high > b.end() {
			return fmt.Sprintf("b%d in e%d: %d after %d, log ends at %d", b.id, b.leaderEpoch, high, s.high, b.end())
		}
		s.incarnation, s.epoch, s.high = b.incarnation, b.leaderEpoch, high
	}
	return ""
}

// SingleLeaderPerEpoch: one process appends in a leader epoch.
type SingleLeaderPerEpoch struct {
	who   map[kafka.LeaderEpoch]process
	twice string
}

type process struct {
	broker      kafka.BrokerID
	incarnation int
}

// Check implements Invariant.
func (s *SingleLeaderPerEpoch) Check(*World) string { return s.twice }

// appended notes who appends in which epoch.
func (w *World) appended(b *broker) {
	for _, inv := range w.invariants {
		s, ok := inv.(*SingleLeaderPerEpoch)
		if !ok {
			continue
		}
		if s.who == nil {
			s.who = map[kafka.LeaderEpoch]process{}
		}
		me := process{b.id, b.incarnation}
		if other, ok := s.who[b.leaderEpoch]; ok && other != me {
			s.twice = fmt.Sprintf("b%d (start %d) and b%d (start %d) append in e%d", other.broker, other.incarnation, me.broker, me.incarnation, b.leaderEpoch)
		}
		s.who[b.leaderEpoch] = me
	}
}

// OneControllerWritesPerEpoch: along the log controller epochs only rise, each has one
// writer, and no edit changes after it was there.
type OneControllerWritesPerEpoch struct{ seen []*edit }

// Check implements Invariant.
func (o *OneControllerWritesPerEpoch) Check(w *World) string {
	for len(o.seen) > 0 && w.log.at(len(o.seen)) != o.seen[len(o.seen)-1] {
		return fmt.Sprintf("edit %d was replaced", len(o.seen))
	}
	for e := w.log.at(len(o.seen) + 1); e != nil; e = w.log.at(len(o.seen) + 1) {
		if len(o.seen) > 0 {
			if last := o.seen[len(o.seen)-1]; e.epoch < last.epoch || e.epoch == last.epoch && e.writer != last.writer {
				return fmt.Sprintf("edit %d is of c%d in epoch %d, the one before of c%d in epoch %d", len(o.seen)+1, e.writer, e.epoch, last.writer, last.epoch)
			}
		}
		o.seen = append(o.seen, e)
	}
	return ""
}
