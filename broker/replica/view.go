package replica

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"varve/broker/kafka"
)

// High is the high watermark.
func (l *Leader) High() kafka.Offset { return l.high }

// Epoch is the term's leader epoch.
func (l *Leader) Epoch() kafka.LeaderEpoch { return l.epoch }

// Settled tells whether the high watermark has reached the start of this epoch: before
// that LATEST is OFFSET_NOT_AVAILABLE (§3-5).
func (l *Leader) Settled() bool { return l.high >= l.start }

// MinISRMet tells whether an acks=all append may be accepted: whichever ISR is the
// committed one, it has least members or all replicas (A8).
func (l *Leader) MinISRMet(least int) bool {
	m := l.isr
	if l.asking {
		m &= l.asked
	}
	return l.enough(m, least)
}

// ProvenAt is the time of the oldest of the last fetches by everybody who may be in
// sync: until then none of them led a later epoch (A14). always is true without
// such followers.
func (l *Leader) ProvenAt() (at time.Time, always bool) {
	need := l.isr
	if l.asking {
		need |= l.asked
	}
	if need == 0 {
		return time.Time{}, len(l.followers) == 0
	}
	for i := range l.followers {
		if x := &l.followers[i]; need.has(i) && (at.IsZero() || x.lastFetch.Before(at)) {
			if at = x.lastFetch; at.IsZero() {
				return at, false
			}
		}
	}
	return at, false
}

// String is the state for scripts and logs.
func (l *Leader) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "end=%d high=%d isr=%v", l.end, l.high, l.ids(l.isr))
	if l.asking {
		fmt.Fprintf(&b, " asked=%v", l.ids(l.asked))
	}
	for _, f := range l.followers {
		if f.fetched {
			fmt.Fprintf(&b, " %d@%d", f.ID, f.end)
		}
	}
	return b.String()
}

// ids are the leader and these followers, sorted.
func (l *Leader) ids(m members) []kafka.BrokerID {
	out := []kafka.BrokerID{l.id}
	for i, f := range l.followers {
		if m.has(i) {
			out = append(out, f.ID)
		}
	}
	slices.Sort(out)
	return out
}
