package manifest

import (
	"encoding/json"
	"fmt"

	"varve/broker/kafka"
)

// A Lineage is a history of leader epochs: each with the offset of its first record,
// both rising. In JSON it is [[epoch, start], …].
type Lineage []kafka.EpochStart

// MarshalJSON writes pairs.
func (l Lineage) MarshalJSON() ([]byte, error) {
	pairs := make([][2]int64, len(l))
	for i, e := range l {
		pairs[i] = [2]int64{int64(e.Epoch), int64(e.Start)}
	}
	return json.Marshal(pairs)
}

// UnmarshalJSON reads pairs.
func (l *Lineage) UnmarshalJSON(b []byte) error {
	var pairs [][2]int64
	if err := json.Unmarshal(b, &pairs); err != nil {
		return err
	}
	*l = make(Lineage, len(pairs))
	for i, p := range pairs {
		if p[0] < 0 || p[0] > maxEpoch || p[1] < 0 {
			return fmt.Errorf("leader epoch %d from offset %d", p[0], p[1])
		}
		(*l)[i] = kafka.EpochStart{Epoch: kafka.LeaderEpoch(p[0]), Start: kafka.Offset(p[1])}
	}
	return nil
}

const maxEpoch = 1<<31 - 1

func (l Lineage) valid() bool {
	for i := 1; i < len(l); i++ {
		if l[i].Epoch <= l[i-1].Epoch || l[i].Start < l[i-1].Start {
			return false
		}
	}
	return true
}

// Clip is the part of the lineage that records of [base, next) have: epochs that
// begin before next, the first of them clamped to base.
func (l Lineage) Clip(base, next kafka.Offset) Lineage {
	var out Lineage
	for _, e := range l.dense() {
		switch {
		case e.Start >= next:
		case e.Start <= base:
			out = append(out[:0], kafka.EpochStart{Epoch: e.Epoch, Start: base})
		default:
			out = append(out, e)
		}
	}
	return out
}

// dense drops epochs without records: those whose successor begins at the same offset.
func (l Lineage) dense() Lineage {
	for i := 1; i < len(l); i++ {
		if l[i].Start == l[i-1].Start {
			out := make(Lineage, 0, len(l))
			for j, e := range l {
				if j+1 == len(l) || l[j+1].Start != e.Start {
					out = append(out, e)
				}
			}
			return out
		}
	}
	return l
}

// Holds tells whether a segment's records are records of this history: each of its
// epochs is there and ends where the history says (tiering 2.4). Epochs that the
// history has forgotten from its front, because the log start passed them, are no
// contradiction (KAFKA-16511).
func (l Lineage) Holds(s *Segment) bool {
	mine, its := l.dense(), s.Epochs.dense()
	if len(mine) == 0 || len(its) == 0 {
		return false
	}
	first := mine[0]
	if last := its[len(its)-1].Epoch; last < first.Epoch || last > mine[len(mine)-1].Epoch {
		return false
	}
	for i, e := range its {
		if e.Epoch < first.Epoch {
			continue
		}
		k := mine.index(e.Epoch)
		switch {
		case k < 0:
			return false
		case k > 0 && e.Start < mine[k].Start:
			return false
		case i+1 == len(its):
			return k+1 == len(mine) || s.End < mine[k+1].Start
		case k+1 == len(mine) || mine[k+1] != its[i+1]:
			return false
		}
	}
	return false
}

func (l Lineage) index(e kafka.LeaderEpoch) int {
	for i := range l {
		if l[i].Epoch == e {
			return i
		}
	}
	return -1
}
