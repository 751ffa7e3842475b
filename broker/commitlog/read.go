package commitlog

import (
	"errors"
	"fmt"
	"io/fs"

	"varve/broker/kafka"
	"varve/broker/segment"
	"varve/broker/vfs"
)

// ReadInfo is what a read tells beside the run.
type ReadInfo struct {
	First       kafka.Offset // base offset of the run's first batch
	Next        kafka.Offset // first offset behind its last batch
	SegmentBase kafka.Offset // of the segment that the run is of (T8)
	LogStart    kafka.Offset
	LocalStart  kafka.Offset
	End         kafka.Offset
}

// Read gives whole batches of one segment, from the one that holds from on, as a run
// of its file: at most max bytes, and only batches that end below bound. minOne lets
// the first batch be longer than max. The run is empty where nothing is to be had.
// Errors are ErrOffsetOutOfRange, ErrNotLocal, and the disk's. Read takes no lock and
// allocates nothing; the run must be released.
func (l *Log) Read(from kafka.Offset, max int, bound kafka.Offset, minOne bool) (vfs.Run, ReadInfo, error) {
	for {
		v := l.view.Load()
		run, info, err := l.readView(v, segment.Want{From: from, Bound: bound, Max: max, MinOne: minOne})
		if err == nil || !errors.Is(err, fs.ErrNotExist) || l.view.Load() == v {
			return run, info, err
		}
		// The segment was deleted under us, and the view says so now.
	}
}

func (l *Log) readView(v *View, w segment.Want) (vfs.Run, ReadInfo, error) {
	info := ReadInfo{LogStart: v.LogStart, LocalStart: v.LocalStart, End: l.End()}
	switch {
	case v == closedView:
		return vfs.Run{}, info, ErrClosed
	case w.From < v.LogStart || w.From > info.End:
		return vfs.Run{}, info, ErrOffsetOutOfRange
	case w.From < v.LocalStart:
		return vfs.Run{}, info, ErrNotLocal
	case w.From >= w.Bound || w.From == info.End:
		return vfs.Run{}, info, nil
	}
	for i := max(v.find(w.From), 0); i < len(v.segs); i++ {
		s := v.segs[i]
		run, got, err := s.Read(w)
		if err != nil {
			return vfs.Run{}, info, err
		}
		if run.N > 0 || w.From < s.Next() {
			info.First, info.Next, info.SegmentBase = got.First, got.Next, s.Base
			return run, info, nil
		}
	}
	return vfs.Run{}, info, nil
}

// OffsetForTime finds the first local record with timestamp ts (ms) or later below bound.
func (l *Log) OffsetForTime(ts int64, bound kafka.Offset) (hit segment.TimeHit, found bool, err error) {
	v := l.View()
	from := max(v.LogStart, v.LocalStart)
	for _, s := range v.segs {
		if s.Next() <= from || s.Base >= bound {
			continue
		}
		newest, err := s.MaxTimestamp()
		if err != nil {
			return hit, false, fmt.Errorf("looking up a time in %v: %w", l.tp, err)
		}
		if newest < ts {
			continue
		}
		hit, found, err = s.FindTime(ts, from, bound)
		if found || err != nil {
			return hit, found, err
		}
	}
	return hit, false, nil
}

// MaxTimestamp finds the first record that has the log's highest timestamp, below bound.
func (l *Log) MaxTimestamp(bound kafka.Offset) (hit segment.TimeHit, found bool, err error) {
	v := l.View()
	best := segment.NoTimestamp
	for _, s := range v.segs {
		if s.Base >= bound {
			break
		}
		ts, err := s.MaxTimestamp()
		if err != nil {
			return hit, false, fmt.Errorf("looking up the newest record of %v: %w", l.tp, err)
		}
		best = max(best, ts)
	}
	if best == segment.NoTimestamp {
		return hit, false, nil
	}
	return l.OffsetForTime(best, bound)
}
