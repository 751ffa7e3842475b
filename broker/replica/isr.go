package replica

import (
	"varve/broker/kafka"
)

// A Wish is what the leader wants the controller to record. It is sent again until it
// is seen in the image or refused for good.
type Wish struct {
	N              uint64 // of this term's wishes, from 1
	LeaderEpoch    kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	ISR            []Member
	Recovering     bool
}

// A Member is a broker by the registration that its position is of (A6); epoch -1 where
// it has not fetched in this term: only the controller knows.
type Member struct {
	ID    kafka.BrokerID
	Epoch kafka.BrokerEpoch
}

// Wish is the proposal in flight; ok is false where there is none. It says the same until
// it ends, however often it is sent: a refusal of it is then about this very wish.
func (l *Leader) Wish() (w Wish, ok bool) { return l.wish, l.asking }

// newWish freezes a proposal.
func (l *Leader) newWish() Wish {
	l.wishes++
	w := Wish{N: l.wishes, LeaderEpoch: l.epoch, PartitionEpoch: l.partitionEpoch, Recovering: l.recovering && !l.recovered}
	w.ISR = append(w.ISR, Member{l.id, -1})
	for i, f := range l.followers {
		if !l.asked.has(i) {
			continue
		}
		m := Member{f.ID, -1}
		if f.fetched {
			m.Epoch = f.of
		}
		w.ISR = append(w.ISR, m)
	}
	return w
}

// A Change is the partition's state as the image or the controller's answer has it.
type Change struct {
	LeaderEpoch    kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	Replicas       []Replica // nil: as before
	ISR            []kafka.BrokerID
	Recovering     bool
}

// Committed says that the log holds a new state of this term. It counts only upward by
// partition epoch, whether the tail or an answer brings it first, and ends the
// proposal: the controller takes none of an older partition epoch (A3, A8).
func (l *Leader) Committed(c Change) Effects {
	if c.LeaderEpoch != l.epoch || c.PartitionEpoch <= l.partitionEpoch {
		return Effects{High: l.high}
	}
	if c.Replicas != nil {
		l.place(c.Replicas)
	}
	l.partitionEpoch = c.PartitionEpoch
	l.isr, l.asked, l.asking = l.members(c.ISR), 0, false
	l.recovering = c.Recovering
	moved := l.advance()
	return Effects{High: l.high, Moved: moved}
}

// Refused says that the controller refused wish n. Only INELIGIBLE_REPLICA ends it: a
// broker epoch that is fenced or replaced in the log stays so, so no repetition of the
// wish can be granted later. After anything else the wish may yet be in the log, and
// the leader goes on waiting for both ISRs (A8).
func (l *Leader) Refused(n uint64, code kafka.Code) Effects {
	if code != kafka.IneligibleReplica || !l.asking || n != l.wish.N {
		return Effects{High: l.high}
	}
	l.asked, l.asking = 0, false
	moved := l.advance()
	return Effects{High: l.high, Moved: moved}
}

// Registered says what the image knows of a broker now. A position of another
// registration stops counting for joining the ISR (A6).
func (l *Leader) Registered(r Replica) {
	if i := l.find(r.ID); i >= 0 {
		l.followers[i].Replica = r
	}
}

// SetMinISR follows a changed min.insync.replicas.
func (l *Leader) SetMinISR(n int) Effects {
	l.minISR = n
	moved := l.advance()
	return Effects{High: l.high, Moved: moved}
}
