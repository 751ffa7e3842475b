package segment

import (
	"errors"
	"io"
	"io/fs"
	"sort"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

// A TimeHit is a record found by its timestamp.
type TimeHit struct {
	Offset    kafka.Offset
	Timestamp int64 // ms
	Epoch     kafka.LeaderEpoch
}

// FindTime finds the first record at or behind from, below bound, whose timestamp is ts
// or later.
func (s *Segment) FindTime(ts int64, from, bound kafka.Offset) (hit TimeHit, found bool, err error) {
	_, size := s.extent()
	if size == 0 {
		return TimeHit{}, false, nil
	}
	h, err := s.acquire()
	if err != nil {
		return TimeHit{}, false, err
	}
	defer h.Release()
	start, err := s.beforeTime(h, ts)
	if err != nil {
		return TimeHit{}, false, err
	}
	at, err := s.locate(h, max(start, from), size)
	if err != nil || at.pos < 0 {
		return TimeHit{}, false, err
	}
	var d record.Decompressor
	for sc := NewScanner(h.log, at.pos, size); ; {
		step, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return TimeHit{}, false, nil
		}
		if err != nil {
			return TimeHit{}, false, s.damaged(sc.Pos(), err)
		}
		b := step.Batch
		if b.BaseOffset() >= bound {
			return TimeHit{}, false, nil
		}
		if b.MaxTimestamp() < ts {
			continue
		}
		if hit, found := firstAt(b, &d, ts, from, bound); found {
			return hit, true, nil
		}
	}
}

// beforeTime is an offset with no earlier record of timestamp ts or later.
func (s *Segment) beforeTime(h *handle, ts int64) (kafka.Offset, error) {
	var entries []timeEntry
	if l := h.live.Load(); l != nil {
		entries = l.times.all()
	} else {
		b, err := vfs.ReadFile(s.home.Store.FS, s.file(TimeSuffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		for ; len(b) >= timeEntrySize; b = b[timeEntrySize:] {
			entries = append(entries, decodeTime(b))
		}
	}
	// An entry says that up to its batch nothing is younger than its timestamp.
	i := sort.Search(len(entries), func(i int) bool { return entries[i].ts >= ts })
	if i == 0 {
		return s.Base, nil
	}
	return s.Base + kafka.Offset(entries[i-1].last), nil
}

// firstAt finds the record in a batch. A batch whose records do not unfold (a producer
// may have spoilt them before the checksum) is taken as one: the partition's times stay
// searchable, and the consumer that comes to it is told.
func firstAt(b record.Batch, d *record.Decompressor, ts int64, from, bound kafka.Offset) (TimeHit, bool) {
	it := b.Records(d)
	var r record.Record
	for it.Next(&r) {
		if r.Timestamp >= ts && r.Offset >= from && r.Offset < bound {
			return TimeHit{r.Offset, r.Timestamp, b.LeaderEpoch()}, true
		}
	}
	if it.Err() != nil {
		return TimeHit{max(b.BaseOffset(), from), b.MaxTimestamp(), b.LeaderEpoch()}, true
	}
	return TimeHit{}, false
}
