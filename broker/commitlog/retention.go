package commitlog

import (
	"fmt"

	"varve/broker/kafka"
)

// Bounds are what retention holds the segments against.
type Bounds struct {
	Now      int64 // ms, wall time; the caller has found the clock plausible (T10)
	High     kafka.Offset
	LogStart kafka.Offset
	// HighestTiered is the last offset of the gap-free tiered run, NoOffset without one.
	HighestTiered kafka.Offset
	Config        *Config
}

// A Verdict is what retention wants gone.
type Verdict struct {
	// Until is the new start: segments that end at or below it go. It is the base of
	// the first segment that stays, or the end of the last.
	Until    kafka.Offset
	Segments int
	Bytes    int64
	// LogStart says that the log start moves to Until, not only the local start.
	LogStart bool
	// Roll says that the active segment has expired as well: rolled, it may go, or be
	// tiered, at the next pass.
	Roll   bool
	Reason string
}

// Retain decides which of the oldest segments go. A segment goes when it is wholly
// below the high watermark (KAFKA-5634) and below the log start, too old, or more than
// the log may hold. Of a tiered log only the local copies go, by the local rules, and
// only what the tier has or nobody may read.
func Retain(segs []SegmentInfo, b Bounds) Verdict {
	v := Verdict{LogStart: !b.Config.Remote}
	if len(segs) == 0 {
		return v
	}
	v.Until = segs[0].Base
	ms, bytes := b.Config.retention()
	if b.Config.Remote {
		ms, bytes = b.Config.localRetention()
	}
	var total int64
	for _, s := range segs {
		total += s.Size
	}
	for _, s := range segs {
		reason := due(s, b, ms, bytes, total)
		if reason == "" {
			break
		}
		if !s.Sealed {
			v.Roll = s.Size > 0
			break
		}
		if b.Config.Remote && s.Next-1 > b.HighestTiered && b.LogStart < s.Next {
			break
		}
		total -= s.Size
		v.Until, v.Segments, v.Bytes, v.Reason = s.Next, v.Segments+1, v.Bytes+s.Size, reason
	}
	return v
}

// due tells why a segment should go, or "".
func due(s SegmentInfo, b Bounds, ms, bytes, total int64) string {
	switch {
	case b.High < s.Next:
		return ""
	case s.Sealed && s.Next <= b.LogStart:
		return fmt.Sprintf("it ends at %d, below the log start %d", s.Next, b.LogStart)
	case b.Config.Compact:
		return ""
	case ms >= 0 && b.Now-s.MaxTimestamp > ms && s.Size > 0:
		return fmt.Sprintf("its newest record is %d ms old, more than %d", b.Now-s.MaxTimestamp, ms)
	case bytes >= 0 && total-s.Size >= bytes && s.Sealed:
		return fmt.Sprintf("the log has %d bytes without it, which may have %d", total-s.Size, bytes)
	}
	return ""
}

// DueForDeletion decides by Retain with the log's own segments.
func (l *Log) DueForDeletion(now int64, high, highestTiered kafka.Offset) (Verdict, error) {
	segs, err := l.Segments()
	if err != nil {
		return Verdict{}, err
	}
	return Retain(segs, Bounds{Now: now, High: high, LogStart: l.Start(), HighestTiered: highestTiered, Config: l.cfg.Load()}), nil
}

// Apply does what a Verdict says: rolls, raises the log start or the local start, then
// removes files.
func (l *Log) Apply(v Verdict, now int64) (segments int, bytes int64, err error) {
	if v.Roll {
		if err := l.Roll(now); err != nil {
			return 0, 0, err
		}
	}
	if v.Segments == 0 {
		return 0, 0, nil
	}
	if v.LogStart {
		if err := l.SetLogStart(v.Until); err != nil {
			return 0, 0, err
		}
	}
	return l.DropLocal(v.Until)
}

// SetLogStart raises the log start (DeleteRecords, retention); a lower one is no news.
// Files go with the next retention pass or DropLocal.
func (l *Log) SetLogStart(o kafka.Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.view.Load()
	if o <= v.LogStart {
		return nil
	}
	if end := l.End(); o > end {
		return fmt.Errorf("raising the log start of %v: %d is above the log end %d: %w", l.tp, o, end, ErrOffsetOutOfRange)
	}
	l.publish(v.segs, o, max(o, v.LocalStart))
	l.dir.touch()
	e, err := l.Epochs()
	if err != nil {
		return err
	}
	cut := e.from(o)
	l.epochs.Store(cut)
	if len(cut.list) == len(e.list) {
		return nil
	}
	return l.writeEpochs(cut, false)
}

// DropLocal removes the sealed segments that end at or below upTo from this disk. The
// local start rises before a file goes (KAFKA-16073). Readers finish what they have.
func (l *Log) DropLocal(upTo kafka.Offset) (segments int, bytes int64, err error) {
	l.mu.Lock()
	v := l.view.Load()
	n := 0
	for n < len(v.segs)-1 && v.segs[n].Next() <= upTo {
		n++
	}
	if n == 0 {
		l.mu.Unlock()
		return 0, 0, nil
	}
	gone := v.segs[:n]
	local := max(v.segs[n].Base, v.LocalStart)
	logStart := v.LogStart
	if !l.cfg.Load().Remote {
		logStart = max(logStart, local)
	}
	l.publish(v.segs[n:len(v.segs):len(v.segs)], logStart, local)
	l.dir.touch()
	l.mu.Unlock()

	for _, s := range gone {
		bytes += s.Size()
		if rerr := s.Remove(); rerr != nil && err == nil {
			err = rerr
		}
		l.removeSnapshot(s.Base)
	}
	return n, bytes, err
}
