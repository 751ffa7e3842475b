package archive

import (
	"time"

	"varve/broker/kafka"
	"varve/tier/manifest"
)

// This file decides; it has no clock and touches nothing.

// next is the next container to copy: from the end of the tier's run to the end of the
// local segment in which that lies, if that is closed and below the LSO (T7). It may
// begin inside a segment.
func next(segs []Segment, from, lastStable kafka.Offset) (r kafka.Range, bytes int64, ok bool) {
	for i := 0; i+1 < len(segs); i++ { // the active segment is never copied
		s := segs[i]
		if s.Next <= from || s.Next == s.Base {
			continue
		}
		if s.Next > lastStable || s.Base > from {
			return r, 0, false
		}
		return kafka.Range{Start: from, End: s.Next}, s.Size, true
	}
	return r, 0, false
}

// gapBefore is the gap between the end of the tier's run and the first local record,
// where retention or an operator has taken what lay there.
func gapBefore(segs []Segment, from kafka.Offset) (g manifest.Gap, ok bool) {
	if len(segs) == 0 || segs[0].Base <= from {
		return g, false
	}
	return manifest.Gap{Start: from, End: segs[0].Base}, true
}

// vanished tells that a chain which held records has been taken away: it is empty, and
// the log's first records are not on this disk. Beginning a new one would make their
// loss the truth, under a mount that is missing, say.
func vanished(s *manifest.State, segs []Segment, o Offsets) (g manifest.Gap, ok bool) {
	if s.Number > 0 {
		return g, false
	}
	return gapBefore(segs, o.LogStart)
}

// lag is what is closed and not in the tier.
func lag(segs []Segment, from kafka.Offset) (bytes int64, segments int) {
	for i := 0; i+1 < len(segs); i++ {
		if segs[i].Next > from {
			bytes, segments = bytes+segs[i].Size, segments+1
		}
	}
	return bytes, segments
}

// expiredLocally is the offset up to which closed local segments breach the total
// retention although they are not in the tier: copying them would be for nothing
// (KAFKA-19952).
func expiredLocally(segs []Segment, from, highWatermark kafka.Offset, c Config, nowMs int64) kafka.Offset {
	if c.RetentionMs < 0 || nowMs == 0 {
		return from
	}
	upTo := from
	for i := 0; i+1 < len(segs); i++ {
		s := segs[i]
		if s.Next <= from {
			continue
		}
		if s.Next > highWatermark || s.MaxTimestamp >= nowMs-c.RetentionMs {
			break
		}
		upTo = s.Next
	}
	return upTo
}

// localDrop is the offset up to which local segments go: local retention wants it, and
// they are in the tier and counted (§3-8), or the log start has passed them.
func localDrop(segs []Segment, counted kafka.Offset, o Offsets, c Config, nowMs int64) kafka.Offset {
	total := int64(0)
	for _, s := range segs {
		total += s.Size
	}
	upTo := kafka.Offset(0)
	for i := 0; i+1 < len(segs); i++ {
		s := segs[i]
		byTime := c.LocalRetentionMs >= 0 && nowMs > 0 && nowMs-s.MaxTimestamp > c.LocalRetentionMs
		bySize := c.LocalRetentionBytes >= 0 && total-s.Size >= c.LocalRetentionBytes
		safe := s.Next <= counted && s.Next <= o.HighWatermark
		if s.Next > o.LogStart && !(safe && (byTime || bySize)) {
			break
		}
		upTo, total = s.Next, total-s.Size
	}
	return upTo
}

// onlyLocal is how many bytes lie at and above the end of the tier's run: what the
// total retention counts beside the tier (KAFKA-20732).
func onlyLocal(segs []Segment, from kafka.Offset) (n int64) {
	for _, s := range segs {
		if s.Next > from {
			n += s.Size // a segment that straddles counts whole: it errs by one segment
		}
	}
	return n
}

// A rollClock watches how long the active segment has held records that the tier does
// not have.
type rollClock struct {
	base  kafka.Offset
	since time.Duration // monotonic
	armed bool
}

// due tells whether the active segment must be rolled so that its records reach the
// tier within the interval. The age counts from when records were first seen in it, not
// by their timestamps, which producers choose; only what is found at the first look,
// after a restart, is taken by its timestamp.
func (r *rollClock) due(segs []Segment, o Offsets, interval, mono time.Duration, nowMs int64) bool {
	if len(segs) == 0 || interval <= 0 {
		return false
	}
	a := segs[len(segs)-1]
	if a.Next == a.Base || o.LastStable <= a.Base {
		return false
	}
	if first := !r.armed; first || r.base != a.Base {
		*r = rollClock{base: a.Base, since: mono, armed: true}
		if age := time.Duration(nowMs-a.FirstTimestamp) * time.Millisecond; first && nowMs > 0 && a.FirstTimestamp >= 0 && age > 0 {
			r.since -= min(age, interval)
		}
	}
	return mono-r.since >= interval
}

const (
	clockJumpMax = time.Minute
	clockSkewMax = 5 * time.Minute
)

// A clockCheck tells whether the wall clock can be trusted for retention (T10).
type clockCheck struct {
	wallMs int64
	mono   time.Duration
	seen   bool
}

// look compares wall and monotonic clock with the last look; false: they have parted.
func (c *clockCheck) look(wallMs int64, mono time.Duration) bool {
	ok := true
	if c.seen {
		parted := time.Duration(wallMs-c.wallMs)*time.Millisecond - (mono - c.mono)
		ok = parted.Abs() <= clockJumpMax
	}
	*c = clockCheck{wallMs, mono, true}
	return ok
}

// skewed tells whether the store's clock, as the time of a file just written, and the
// wall clock then have parted.
func skewed(written time.Time, wallMs int64) bool {
	return time.Duration(written.UnixMilli()-wallMs)*time.Millisecond > clockSkewMax ||
		time.Duration(wallMs-written.UnixMilli())*time.Millisecond > clockSkewMax
}

func (r Retry) withDefaults() Retry {
	if r.First == 0 {
		r.First = 500 * time.Millisecond
	}
	if r.Longest == 0 {
		r.Longest = 60 * time.Second
	}
	if r.Jitter == 0 {
		r.Jitter = 0.2
	}
	return r
}

// after is the pause after the n-th failure in a row, counted from 0; chance is in [0,1).
func (r Retry) after(n int, chance float64) time.Duration {
	d := r.Longest
	if n < 20 && r.First < r.Longest>>n {
		d = r.First << n
	}
	return time.Duration(float64(d) * (1 + max(r.Jitter, 0)*(2*chance-1)))
}
