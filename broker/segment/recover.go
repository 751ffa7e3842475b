package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

// A Recovery says what was found in a segment that was not closed.
type Recovery struct {
	Segment *Segment
	Cut     int64 // bytes behind the last whole batch that were not zeros
	Reason  error // why the walk ended before the file did; nil if it did not
}

// Recover walks the batches of the .log at base from its beginning, keeps the whole and
// valid ones, cuts the rest, and makes the indexes again. Zeros behind the last batch
// are its end. next is the least offset that the first batch may have. visit sees each
// batch that stays; its error ends the recovery. The index of aborted transactions is
// left to whoever visits.
func Recover(home *Home, base kafka.Offset, opt Options, visit func(record.Batch) error) (Recovery, error) {
	fsys := home.Store.FS
	f, err := fsys.OpenFile(home.File(base, LogSuffix), os.O_RDWR, 0o644)
	if err != nil {
		return Recovery{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Recovery{}, err
	}
	ix := NewIndexer(opt)
	ix.base = base
	end, next, reason, err := validate(f, base, info.Size(), ix, visit)
	if err != nil {
		return Recovery{}, fmt.Errorf("recovering %s: %w", f.Name(), err)
	}
	r := Recovery{Reason: reason}
	if end < info.Size() {
		if r.Cut, err = notZero(f, end, info.Size()); err != nil {
			return Recovery{}, fmt.Errorf("recovering %s: %w", f.Name(), err)
		}
		if r.Cut == 0 {
			r.Reason = nil
		}
		if err := f.Truncate(end); err != nil {
			return Recovery{}, fmt.Errorf("recovering %s: %w", f.Name(), err)
		}
	}
	index, times, maxTS := ix.Finish()
	r.Segment = New(home, Facts{Base: base, Next: next, Size: end, MaxTimestamp: maxTS, TimestampSet: true})
	for suffix, b := range map[string][]byte{IndexSuffix: index, TimeSuffix: times} {
		if err := overwrite(fsys, home.File(base, suffix), b); err != nil {
			return Recovery{}, fmt.Errorf("recovering %s: %w", f.Name(), err)
		}
	}
	return r, nil
}

// overwrite makes b the contents of a file that may be there, and most often holds b
// already. It never truncates first: ext4 flushes such a file when it is closed.
func overwrite(fsys vfs.FS, name string, b []byte) error {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	was := make([]byte, min(info.Size(), int64(len(b))))
	if n, err := f.ReadAt(was, 0); err != nil && n < len(was) {
		return err
	}
	if !bytes.Equal(was, b) {
		if _, err := f.WriteAt(b, 0); err != nil {
			return err
		}
	}
	if info.Size() > int64(len(b)) {
		return f.Truncate(int64(len(b)))
	}
	return nil
}

// validate walks to the end of the whole batches. reason is why it ended.
func validate(f vfs.File, base kafka.Offset, size int64, ix *Indexer, visit func(record.Batch) error) (end int64, next kafka.Offset, reason, err error) {
	next = base
	for sc := NewScanner(f, 0, size); ; {
		step, serr := sc.Next()
		if errors.Is(serr, io.EOF) {
			return sc.Pos(), next, nil, nil
		}
		var corrupt *record.CorruptError
		if errors.Is(serr, ErrTorn) || errors.As(serr, &corrupt) {
			return sc.Pos(), next, serr, nil
		}
		if serr != nil {
			return 0, 0, nil, serr
		}
		b := step.Batch
		switch {
		case !b.ValidCRC():
			reason = fmt.Errorf("the batch at offset %d does not match its checksum", b.BaseOffset())
		case b.BaseOffset() < next || b.LastOffsetDelta() < 0:
			reason = fmt.Errorf("the batch [%d,%d] does not come after offset %d", b.BaseOffset(), b.LastOffset(), next-1)
		case b.LastOffset()-base > maxSpan:
			reason = fmt.Errorf("offset %d does not belong into a segment that begins at %d", b.LastOffset(), base)
		}
		if reason != nil {
			return step.Pos, next, reason, nil
		}
		if err := visit(b); err != nil {
			return 0, 0, nil, err
		}
		ix.add(b, step.Size)
		next = b.NextOffset()
	}
}

// notZero tells how many bytes there are from pos up to the last that is not zero.
func notZero(f vfs.File, pos, end int64) (int64, error) {
	buf := make([]byte, 64<<10)
	var last int64
	for at := pos; at < end; {
		b := buf[:min(int64(len(buf)), end-at)]
		n, err := f.ReadAt(b, at)
		if err != nil && n < len(b) {
			return 0, err
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != 0 {
				last = at + int64(i) + 1 - pos
				break
			}
		}
		at += int64(len(b))
	}
	return last, nil
}

// RemakeIndexes writes .index and .timeindex from the log. Nothing else may use the
// segment meanwhile.
func (s *Segment) RemakeIndexes(opt Options) error {
	fsys := s.home.Store.FS
	for _, suffix := range []string{IndexSuffix, TimeSuffix} {
		if err := fsys.Remove(s.file(suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	w, err := OpenWriter(s, opt)
	if err != nil {
		return err
	}
	return w.Close()
}

// Truncate cuts the segment before the first batch that ends at or behind offset, and
// returns it as it is then. The old value serves readers of what stays.
func (s *Segment) Truncate(offset kafka.Offset, opt Options) (*Segment, error) {
	h, err := s.acquire()
	if err != nil {
		return nil, err
	}
	size := s.Size()
	at, err := s.locate(h, offset, size)
	if err == nil && at.pos < 0 {
		at = place{pos: size, base: s.Next()}
	}
	h.Release()
	if err != nil {
		return nil, err
	}
	next := min(at.base, max(offset, s.Base))
	s.Retire()
	f, err := s.home.Store.FS.OpenFile(s.file(LogSuffix), os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = f.Truncate(at.pos)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	cut := New(s.home, Facts{Base: s.Base, Next: next, Size: at.pos})
	return cut, cut.RemakeIndexes(opt)
}

// Discover finds the end of a segment that was closed: the last index entry leads
// near it. An error means that it was not closed well.
func Discover(home *Home, base kafka.Offset, size int64) (kafka.Offset, error) {
	s := New(home, Facts{Base: base, Next: base + maxSpan, Size: size})
	h, err := s.acquire()
	if err != nil {
		return 0, err
	}
	defer s.Retire()
	defer h.Release()
	e, err := s.floor(h, nil, func(indexEntry) bool { return false })
	if err != nil {
		return 0, err
	}
	next := base
	sc := newScanner(h.log, int64(e.pos), size)
	defer sc.done()
	for {
		step, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return next, nil
		}
		if err != nil {
			return 0, s.damaged(sc.Pos(), err)
		}
		if step.Batch.BaseOffset() < next {
			return 0, s.damaged(step.Pos, fmt.Errorf("offset %d after %d", step.Batch.BaseOffset(), next-1))
		}
		next = step.Batch.NextOffset()
	}
}

// TrimFile cuts the .log to the segment's batches: what a failed write left goes. No
// Writer may have it open.
func (s *Segment) TrimFile() error {
	f, err := s.home.Store.FS.OpenFile(s.file(LogSuffix), os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	err = f.Truncate(s.Size())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
