package manifest

import (
	"math"
	"slices"

	"varve/broker/kafka"
)

// FenceChange is a new leader's first version: its epochs, and a log start no lower
// than its own (T13, §3-9).
func FenceChange(logStart, lastStable kafka.Offset, lineage Lineage) Change {
	return Change{LogStart: logStart, LastStable: lastStable, Lineage: lineage}
}

// AddChange adds finished containers, in offset order, if each still begins where the
// chain ends; ok is false when another leader's have taken their place (§3-10). Those
// that the chain has already are left out: that is how a lost reply settles.
func (s *State) AddChange(segs []Segment, lastStable kafka.Offset, lineage Lineage) (c Change, ok bool) {
	c = Change{LastStable: lastStable, Lineage: lineage}
	t := *s
	t.Lineage = lineage
	t.Live = slices.Clone(s.Live)
	for _, seg := range segs {
		if s.Names(seg.ID) {
			continue
		}
		if seg.Base != t.NextOffset() || !lineage.Holds(&seg) { // T5, T7
			return c, false
		}
		c.Added = append(c.Added, seg)
		t.Live = append(t.Live, seg)
		slices.SortFunc(t.Live, byBase)
	}
	return c, len(c.Added) > 0
}

// TombstoneWriter is who ends the chain of a deleted topic: no leader epoch is above
// it, so no late leader can go on (T14).
func TombstoneWriter(w Writer) Writer {
	w.LeaderEpoch = math.MaxInt32
	return w
}

// TombstoneChange ends a chain.
func TombstoneChange() Change { return Change{Deleted: true} }

// Retention is what a leader's retention pass looks at.
type Retention struct {
	NowMs int64 // wall clock; 0 = not plausible: no retention by time (T10)
	Ms    int64 // retention.ms; < 0 = without end
	Bytes int64 // retention.bytes; < 0 = without end
	// LocalBytes is the size of the records that are only on the local disk: at and
	// above NextOffset. It must be computed from the same state (KAFKA-20732).
	LocalBytes int64
	LogStart   kafka.Offset // the leader's, which DeleteRecords may have raised
}

// ExpireChange chooses what retention deletes: from the oldest on, until one stays.
// Segments that no reader can reach any more (of another lineage, or inside a longer
// one) go with them and move no log start. ok is false when nothing changes.
func (s *State) ExpireChange(r Retention) (c Change, ok bool) {
	start := max(s.LogStart, r.LogStart)
	total := r.LocalBytes
	for i := range s.Live {
		if s.reachable(i) {
			total += s.Live[i].LogSize
		}
	}
	stays := false
	for i := range s.Live {
		seg := &s.Live[i]
		if !s.reachable(i) {
			if seg.End < max(s.NextOffset(), start) { // nothing may still need it
				c.Deleting = append(c.Deleting, seg.ID)
			}
			continue
		}
		switch {
		case stays:
			continue
		case seg.End < start:
		case r.Ms >= 0 && r.NowMs > 0 && seg.MaxTimestamp < r.NowMs-r.Ms:
		case r.Bytes >= 0 && total-seg.LogSize >= r.Bytes:
		default:
			stays = true
			continue
		}
		c.Deleting = append(c.Deleting, seg.ID)
		total -= seg.LogSize
		start = max(start, seg.Next()) // KAFKA-16890: the highest, not the last
	}
	c.LogStart = start
	return c, len(c.Deleting) > 0 || start > s.LogStart
}

// ClearChange lets everything go: the topic is tiered no more (KIP-950). The log begins
// at start, where the local log does. ok is false when nothing is live.
func (s *State) ClearChange(start kafka.Offset) (c Change, ok bool) {
	c.LogStart = max(s.LogStart, start)
	for i := range s.Live {
		c.Deleting = append(c.Deleting, s.Live[i].ID)
	}
	return c, len(c.Deleting) > 0
}

// reachable tells whether reads may come to live segment i: it is in the lineage and
// not inside another that is.
func (s *State) reachable(i int) bool {
	seg := &s.Live[i]
	if !s.Lineage.Holds(seg) {
		return false
	}
	for j := i - 1; j >= 0; j-- { // supersets sort before
		if s.Live[j].End >= seg.End && s.Lineage.Holds(&s.Live[j]) {
			return false
		}
		if s.Live[j].End < seg.Base {
			break
		}
	}
	return true
}

// Removable are the deleting segments whose files may go now: no pin that is alive
// holds them. The pins must have been listed after the version s was committed (T9).
func (s *State) Removable(pins []Pin) []Segment {
	var out []Segment
	for i := range s.Deleting {
		held := slices.ContainsFunc(pins, func(p Pin) bool { return p.Holds(&s.Deleting[i]) })
		if !held {
			out = append(out, s.Deleting[i])
		}
	}
	return out
}

// DropChange leaves out segments whose files are gone; ok is false when s does not
// hold any of them as deleting.
func (s *State) DropChange(ids []string) (c Change, ok bool) {
	for _, id := range ids {
		if named(s.Deleting, id) >= 0 {
			c.Dropped = append(c.Dropped, id)
		}
	}
	return c, len(c.Dropped) > 0
}

// MaySweepContainer tells whether a file of segments/ that a leader of epoch mine
// finds may be removed. s must have been read from the chain after that leader's own
// fence version: no lower epoch can commit any more, and what the chain does not name
// is an orphan (T4). Of its own epoch a leader sweeps only what it has abandoned.
func (s *State) MaySweepContainer(n SegmentName, mine kafka.LeaderEpoch, abandoned func(id string) bool) bool {
	if s.Names(n.ID) || s.Writer.LeaderEpoch != mine {
		return false
	}
	return n.LeaderEpoch < mine || n.LeaderEpoch == mine && abandoned(n.ID)
}

// MaySweepProgress is the same for a file of _inprogress/.
func (s *State) MaySweepProgress(n ProgressName, mine kafka.LeaderEpoch, abandoned func(id string) bool) bool {
	if s.Writer.LeaderEpoch != mine {
		return false
	}
	return n.LeaderEpoch < mine || n.LeaderEpoch == mine && abandoned(n.ID)
}

// Prunable are the versions among those listed that nobody needs: below the last but
// one checkpoint, and below the checkpoint under the lowest pinned version (T2). In
// ascending order, which is the order in which they must go.
func Prunable(listed []int64, pins []Pin) []int64 {
	newest := int64(0)
	for _, n := range listed {
		newest = max(newest, n)
	}
	floor := newest/CheckpointEvery*CheckpointEvery - CheckpointEvery
	for _, p := range pins {
		floor = min(floor, p.Version/CheckpointEvery*CheckpointEvery)
	}
	var out []int64
	for _, n := range listed {
		if n < floor {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
