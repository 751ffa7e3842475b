// Package replica decides for one partition where the high watermark stands, who is in
// sync, and what a follower does with a response. It owns no clock, disk or network:
// events come in with the time they happened, and what to do goes out as values,
// without allocation on the paths of produce and fetch.
//
//	leader:   Appended, Fetched, Tick, Committed ─► high watermark, "ask for this ISR"
//	follower: Fetch ─► request ─► Received ─► append, truncate, drop or stop
//
// The rules are protocols.md A5 to A9 and §3-4, 5, 7, 15; each stands at the line that
// keeps it.
package replica

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"varve/broker/kafka"
)

// A Replica is what the image knows of one broker that replicates the partition.
type Replica struct {
	ID    kafka.BrokerID
	Epoch kafka.BrokerEpoch // of its registration
	Live  bool              // registered and not fenced
}

// A Term is what the image and the log say when a leadership begins.
type Term struct {
	Leader         kafka.BrokerID
	Epoch          kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	Replicas       []Replica // at most 32, the leader among them
	ISR            []kafka.BrokerID
	End            kafka.Offset  // the log's end, where the epoch starts
	High           kafka.Offset  // the high watermark as this replica knew it, at most End
	MaxLag         time.Duration // replica.lag.time.max.ms
	MinISR         int           // min.insync.replicas
	Recovering     bool          // elected uncleanly, recovery not done (KIP-704)
}

// A Leader is the leader's half of one partition's replication.
type Leader struct {
	id             kafka.BrokerID
	epoch          kafka.LeaderEpoch
	partitionEpoch kafka.PartitionEpoch
	maxLag         time.Duration
	minISR         int
	recovering     bool

	// end is the log end offset, start the end when the term began.
	start, end kafka.Offset
	// high is the high watermark. Invariant: high <= end, and it never moves back.
	high kafka.Offset

	followers []follower // every replica but the leader; bit i of a members is followers[i]
	isr       members    // committed, without the leader
	asked     members    // proposed, while asking
	asking    bool
	wish      Wish
	wishes    uint64
	recovered bool // the driver has recovered; the next wish says so
}

// members is a set of followers, by place. The leader is always in sync.
type members uint32

func (m members) has(i int) bool { return m>>i&1 == 1 }

// A follower is what the leader knows of one.
type follower struct {
	Replica
	fetched bool
	end     kafka.Offset      // it has everything below
	of      kafka.BrokerEpoch // the broker epoch that end came with (A6)
	// caughtUp is the last time at which it had everything the leader had.
	caughtUp time.Time
	// at the last fetch: when, and where the leader's log ended.
	lastFetch    time.Time
	lastFetchEnd kafka.Offset
}

// NewLeader begins a term. ISR members count as caught up now, so each has MaxLag to
// show itself; others must catch up first (§3-15).
func NewLeader(now time.Time, t Term) *Leader {
	if t.High > t.End {
		panic(fmt.Sprintf("replica: epoch %d begins with high watermark %d above the log's end %d", t.Epoch, t.High, t.End))
	}
	l := &Leader{
		id: t.Leader, epoch: t.Epoch, partitionEpoch: t.PartitionEpoch, maxLag: t.MaxLag, minISR: t.MinISR,
		recovering: t.Recovering, start: t.End, end: t.End, high: t.High,
	}
	l.place(t.Replicas)
	l.isr = l.members(t.ISR)
	for i := range l.followers {
		if l.isr.has(i) {
			l.followers[i].caughtUp = now
		}
	}
	return l
}

// place makes the followers of this replica set, keeping what is known of them.
func (l *Leader) place(replicas []Replica) {
	if len(replicas) > 32 {
		panic(fmt.Sprintf("replica: %d replicas, at most 32", len(replicas)))
	}
	var next []follower
	for _, r := range replicas {
		if r.ID == l.id {
			continue
		}
		f := follower{}
		if i := l.find(r.ID); i >= 0 {
			f = l.followers[i]
		}
		f.Replica = r
		next = append(next, f)
	}
	l.followers = next
}

func (l *Leader) members(ids []kafka.BrokerID) (m members) {
	for i, f := range l.followers {
		if slices.Contains(ids, f.ID) {
			m |= 1 << i
		}
	}
	return m
}

func (l *Leader) find(id kafka.BrokerID) int {
	for i := range l.followers {
		if l.followers[i].ID == id {
			return i
		}
	}
	return -1
}

// Effects is what a step leads to. The zero value is nothing.
type Effects struct {
	High  kafka.Offset // the high watermark now
	Moved bool         // it moved: consumers read up to it, acks=all below it are answered
	Ask   bool         // send Wish to the controller
	Code  kafka.Code   // refuse the request with it
}

// Appended says that the log now ends at end.
func (l *Leader) Appended(end kafka.Offset) (high kafka.Offset, moved bool) {
	if end < l.end {
		panic(fmt.Sprintf("replica: the leader's log went back from %d to %d", l.end, end))
	}
	l.end = end
	moved = l.advance()
	return l.high, moved
}

// A Fetched is a follower's fetch that the log has accepted: its last epoch and offset
// are on this leader's log.
type Fetched struct {
	From        kafka.BrokerID
	BrokerEpoch kafka.BrokerEpoch
	LeaderEpoch kafka.LeaderEpoch
	At          kafka.Offset // it has everything below
}

// Check tells whether a fetch may be served at all, before the log is asked.
func (l *Leader) Check(f Fetched) kafka.Code {
	i := l.find(f.From)
	switch {
	case f.LeaderEpoch < l.epoch:
		return kafka.FencedLeaderEpoch
	case f.LeaderEpoch > l.epoch:
		return kafka.UnknownLeaderEpoch
	case i < 0:
		return kafka.NotLeaderOrFollower
	case f.BrokerEpoch != l.followers[i].Epoch:
		return kafka.StaleBrokerEpoch // A6: of a process that is gone, or that our image has not seen
	case f.At > l.end:
		return kafka.OffsetOutOfRange
	}
	return kafka.None
}

// Fetched moves a follower's position.
func (l *Leader) Fetched(now time.Time, f Fetched) Effects {
	if code := l.Check(f); code != kafka.None {
		return Effects{High: l.high, Code: code}
	}
	i := l.find(f.From)
	x := &l.followers[i]
	// A6: a position is of one broker epoch; the first fetch of another replaces it, also
	// downward. Within one, a late fetch does not take back what is known.
	if !x.fetched || x.of != f.BrokerEpoch || f.At > x.end {
		x.end = f.At
	}
	if x.of != f.BrokerEpoch {
		x.caughtUp = time.Time{}
	}
	if f.At >= l.end {
		x.caughtUp = now
	} else if x.fetched && x.of == f.BrokerEpoch && f.At >= x.lastFetchEnd && x.lastFetch.After(x.caughtUp) {
		x.caughtUp = x.lastFetch // it has now what the leader had then
	}
	x.fetched, x.of = true, f.BrokerEpoch
	x.lastFetch, x.lastFetchEnd = now, l.end
	moved := l.advance()
	return Effects{High: l.high, Moved: moved, Ask: l.expand(now, i)}
}

// Tick looks for followers that have lagged for MaxLag.
func (l *Leader) Tick(now time.Time) Effects {
	return Effects{High: l.high, Ask: l.shrink(now)}
}

// Recovered says that recovery after an unclean election is done.
func (l *Leader) Recovered() Effects {
	l.recovered = true
	ask := l.recovering && l.ask(l.isr)
	return Effects{High: l.high, Ask: ask}
}

// advance moves the high watermark to the lowest end of everybody who may be in sync.
func (l *Leader) advance() bool {
	need, least := l.isr, l.isr
	if l.asking { // A8: until the edit is seen, either ISR may be the committed one
		need, least = l.isr|l.asked, l.isr&l.asked
	}
	if !l.enough(least, l.minISR) {
		return false // A7: who is electable from outside a small ISR must have everything revealed
	}
	high := l.end
	for i := range l.followers {
		if need.has(i) {
			high = min(high, l.followers[i].end)
		}
	}
	if high <= l.high {
		return false
	}
	l.high = high
	return true
}

func (l *Leader) enough(m members, least int) bool {
	return 1+bits.OnesCount32(uint32(m)) >= min(least, 1+len(l.followers))
}

// expand asks for follower i to join once it has caught up truly: it has all that is
// revealed and all of the epochs before this one, and within MaxLag it had all the
// leader had (§3-15), or it would flap while the high watermark stands still.
func (l *Leader) expand(now time.Time, i int) bool {
	x := &l.followers[i]
	if l.isr.has(i) || l.recovering || !x.Live || x.end < l.high || x.end < l.start || now.Sub(x.caughtUp) > l.maxLag {
		return false
	}
	return l.ask(l.isr | 1<<i)
}

// shrink asks for lagging followers to leave. One that has everything is in sync
// however long ago it fetched.
func (l *Leader) shrink(now time.Time) bool {
	stay := l.isr
	for i := range l.followers {
		if x := &l.followers[i]; l.isr.has(i) && x.end < l.end && now.Sub(x.caughtUp) > l.maxLag {
			stay &^= 1 << i
		}
	}
	return stay != l.isr && l.ask(stay)
}

// ask proposes an ISR; one proposal at a time.
func (l *Leader) ask(isr members) bool {
	if l.asking {
		return false
	}
	l.asked, l.asking = isr, true
	l.wish = l.newWish()
	return true
}
