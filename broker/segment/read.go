package segment

import (
	"errors"
	"fmt"
	"io"

	"varve/broker/kafka"
	"varve/broker/vfs"
)

// A Want asks for batches.
type Want struct {
	From   kafka.Offset // the first batch holds it, or comes after it
	Bound  kafka.Offset // only batches that end below it
	Max    int          // bytes
	MinOne bool         // the first batch is given even if it is longer than Max
}

// Got says what a run holds.
type Got struct {
	First kafka.Offset // base offset of the first batch
	Next  kafka.Offset // first offset behind the last
}

// Read returns whole batches as a run of the file. The run is empty where there is
// nothing to be had. It takes no lock and allocates nothing.
func (s *Segment) Read(w Want) (run vfs.Run, got Got, err error) {
	next, size := s.extent()
	if w.From >= next || size == 0 {
		return vfs.Run{}, Got{}, nil
	}
	h, err := s.acquire()
	if err != nil {
		return vfs.Run{}, Got{}, err
	}
	start, err := s.locate(h, w.From, size)
	if err != nil || start.pos < 0 {
		h.Release()
		return vfs.Run{}, Got{}, err
	}
	end, next, err := s.cut(h, start, w, size, next)
	if err != nil || end == start.pos {
		h.Release()
		return vfs.Run{}, Got{}, err
	}
	return vfs.Run{File: h.log, Pos: start.pos, N: int(end - start.pos), Owner: h},
		Got{First: start.base, Next: next}, nil
}

// extent reads next and size as they were at one time: size moves before next.
func (s *Segment) extent() (kafka.Offset, int64) {
	for {
		before := s.next.Load()
		size := s.size.Load()
		if s.next.Load() == before && s.size.Load() == size {
			return kafka.Offset(before), size
		}
	}
}

// locate finds the first batch that ends at or behind from; pos is -1 if there is none below size.
func (s *Segment) locate(h *handle, from kafka.Offset, size int64) (place, error) {
	l := h.live.Load()
	if l != nil {
		if p, ok := l.tail.first(func(p place) bool { return p.last >= from }); ok && p.pos < size {
			return p, nil
		}
	}
	if from <= s.Base {
		return s.scanTo(h, 0, size, func(p place) bool { return true })
	}
	target := uint32(min(from-s.Base, maxSpan))
	e, err := s.floor(h, l, func(e indexEntry) bool { return e.last > target })
	if err != nil {
		return place{}, err
	}
	if !s.truthful(h, e, size) {
		e.pos = 0
	}
	return s.scanTo(h, int64(e.pos), size, func(p place) bool { return p.last >= from })
}

// truthful tells whether an index entry names a batch of the log. Indexes carry no
// checksum; one that lies costs time, not records.
func (s *Segment) truthful(h *handle, e indexEntry, size int64) bool {
	if e.pos == 0 {
		return true
	}
	sc := newScanner(h.log, int64(e.pos), size)
	defer sc.done()
	step, err := sc.Next()
	return err == nil && step.Batch.LastOffset() == s.Base+kafka.Offset(e.last)
}

// floor looks an entry up in memory, or in the file.
func (s *Segment) floor(h *handle, l *live, after func(indexEntry) bool) (indexEntry, error) {
	if l != nil {
		return floorIndex(l.index.all(), after), nil
	}
	if h.entries == 0 {
		return indexEntry{}, nil
	}
	return floorFile(h.index, h.entries, func(e indexEntry) bool {
		// Zeros behind the entries are an index that Kafka has not trimmed.
		return after(e) || e.last == 0 && e.pos == 0 || int64(e.pos) >= s.size.Load()
	})
}

// scanTo walks headers from pos on to the first batch of which found is true.
func (s *Segment) scanTo(h *handle, pos, size int64, found func(place) bool) (place, error) {
	sc := newScanner(h.log, pos, size)
	defer sc.done()
	for {
		step, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return place{pos: -1}, nil
		}
		if err != nil {
			return place{}, s.damaged(sc.Pos(), err)
		}
		p := place{step.Batch.BaseOffset(), step.Batch.LastOffset(), step.Pos, step.Pos + step.Size}
		if found(p) {
			return p, nil
		}
	}
}

// cut finds where a run that begins at start ends, and the offset there.
func (s *Segment) cut(h *handle, start place, w Want, size int64, next kafka.Offset) (int64, kafka.Offset, error) {
	limit := min(start.pos+int64(w.Max), size)
	if limit == size && w.Bound >= next {
		return size, next, nil
	}
	l := h.live.Load()
	if l != nil { // the first batch that is too far ends the run
		if p, ok := l.tail.first(func(p place) bool { return p.end > limit || p.last >= w.Bound }); ok && p.pos > start.pos {
			return p.pos, p.base, nil
		}
	}
	from := start.pos
	e, err := s.floor(h, l, func(e indexEntry) bool {
		return int64(e.pos) > limit || s.Base+kafka.Offset(e.last) >= w.Bound
	})
	if err != nil {
		return 0, 0, err
	}
	if int64(e.pos) > from && s.truthful(h, e, size) {
		from = int64(e.pos)
	}
	return s.cutFrom(h, start, from, limit, w)
}

// cutFrom walks headers from a batch that is in the run for certain, or is its first.
func (s *Segment) cutFrom(h *handle, start place, from, limit int64, w Want) (int64, kafka.Offset, error) {
	end, next := from, start.base
	sc := newScanner(h.log, from, s.size.Load())
	defer sc.done()
	for {
		step, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return end, next, nil
		}
		if err != nil {
			return 0, 0, s.damaged(sc.Pos(), err)
		}
		first := step.Pos == start.pos && w.MinOne
		if step.Batch.LastOffset() >= w.Bound || step.Pos+step.Size > limit && !first {
			if end > start.pos {
				next = step.Batch.BaseOffset()
			}
			return end, next, nil
		}
		end, next = step.Pos+step.Size, step.Batch.NextOffset()
	}
}

// A DamagedError says that a closed part of a segment does not hold batches.
type DamagedError struct {
	File string
	Pos  int64
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged at position %d: %v", e.File, e.Pos, e.Err)
}

// Unwrap is the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

func (s *Segment) damaged(pos int64, err error) error {
	return &DamagedError{File: s.file(LogSuffix), Pos: pos, Err: err}
}

// Near is the offset of an indexed batch at or before a position; the base if there is none.
func (s *Segment) Near(pos int64) kafka.Offset {
	h, err := s.acquire()
	if err != nil {
		return s.Base
	}
	defer h.Release()
	e, err := s.floor(h, h.live.Load(), func(e indexEntry) bool { return int64(e.pos) > pos })
	if err != nil || e.pos == 0 {
		return s.Base
	}
	if !s.truthful(h, e, s.Size()) {
		return s.Base
	}
	at, err := s.scanTo(h, int64(e.pos), s.Size(), func(place) bool { return true })
	if err != nil || at.pos < 0 {
		return s.Base
	}
	return at.base
}
