package segment

import (
	"fmt"
	"os"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

// Options are what a Writer keeps to.
type Options struct {
	IndexInterval int // bytes of log between two index entries; 4096 in Kafka
	IndexBytes    int // how long an index may become; 10 MiB in Kafka
	WriteAhead    int // bytes of zeros that the .log is extended by at a time; 0: none
}

// A Writer appends to the last segment of a log. It serves one caller at a time. The
// indexes are kept in memory for readers and written in pieces: after a crash they
// are made again from the log.
type Writer struct {
	s   *Segment
	h   *handle
	opt Options

	pos   int64 // end of the batches in the .log
	ahead int64 // end of the .log: zeros from pos on
	since int   // bytes since the last index entry

	maxTS     int64
	maxTSLast uint32
	lastTime  int64 // timestamp of the last time index entry

	indexDone, timesDone int // entries that are in the files
	closed               bool
}

// zeros is what is written ahead.
var zeros [256 << 10]byte

// OpenWriter opens a segment for appending, with whatever its indexes hold; an index
// that does not fit the log is made again. A segment that has no files gets
// its .log at once; the indexes come when they are written first.
func OpenWriter(s *Segment, opt Options) (*Writer, error) {
	h, err := s.openFiles(os.O_RDWR | os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("opening a segment to append: %w", err)
	}
	w := &Writer{s: s, h: h, opt: opt, pos: s.Size(), maxTS: NoTimestamp, lastTime: NoTimestamp}
	if err := w.open(); err != nil {
		h.Release()
		s.Retire()
		return nil, fmt.Errorf("opening segment %s to append: %w", s.file(LogSuffix), err)
	}
	return w, nil
}

func (w *Writer) open() error {
	info, err := w.h.log.Stat()
	if err != nil {
		return err
	}
	w.ahead = info.Size()
	if w.ahead < w.pos {
		return w.s.damaged(w.ahead, fmt.Errorf("the file ends where %d bytes are expected", w.pos))
	}
	l := &live{}
	if !w.loadIndexes(l) {
		if err := w.rebuild(l); err != nil {
			return err
		}
	}
	w.h.live.Store(l)
	w.s.maxTS.Store(w.maxTS)
	return nil
}

// loadIndexes reads both index files; false means that they do not fit the log.
func (w *Writer) loadIndexes(l *live) bool {
	fsys := w.s.home.Store.FS
	if w.pos == 0 {
		return true
	}
	index, err := vfs.ReadFile(fsys, w.s.file(IndexSuffix))
	if err != nil || len(index)%indexEntrySize != 0 {
		return false
	}
	prev := indexEntry{}
	for ; len(index) > 0; index = index[indexEntrySize:] {
		e := decodeIndex(index)
		if e.pos <= prev.pos || e.last <= prev.last || int64(e.pos) >= w.pos {
			return false
		}
		l.index.append(e)
		prev = e
	}
	times, err := vfs.ReadFile(fsys, w.s.file(TimeSuffix))
	if err != nil && w.pos > 0 || len(times)%timeEntrySize != 0 {
		return false
	}
	for ; len(times) > 0; times = times[timeEntrySize:] {
		e := decodeTime(times)
		if e.ts <= w.maxTS || w.s.Base+kafka.Offset(e.last) >= w.s.Next() {
			return false
		}
		l.times.append(e)
		w.maxTS, w.maxTSLast, w.lastTime = e.ts, e.last, e.ts
	}
	if w.pos > 0 && w.maxTS == NoTimestamp {
		return false
	}
	w.indexDone, w.timesDone = len(l.index.all()), len(l.times.all())
	w.since = int(w.pos - int64(prev.pos))
	return true
}

// rebuild makes both indexes from the log and writes them.
func (w *Writer) rebuild(l *live) error {
	*l = live{}
	w.maxTS, w.lastTime, w.since, w.indexDone, w.timesDone = NoTimestamp, NoTimestamp, 0, 0, 0
	w.h.live.Store(l)
	sc := newScanner(w.h.log, 0, w.pos)
	defer sc.done()
	for sc.Pos() < w.pos {
		step, err := sc.Next()
		if err != nil {
			return w.s.damaged(sc.Pos(), err)
		}
		w.note(l, step.Batch, step.Pos, int(step.Size))
	}
	return w.replaceIndexes()
}

// replaceIndexes writes both files anew.
func (w *Writer) replaceIndexes() error {
	for _, suffix := range []string{IndexSuffix, TimeSuffix} {
		f, err := w.s.home.Store.FS.OpenFile(w.s.file(suffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	w.indexDone, w.timesDone = 0, 0
	return w.writeIndexes(true)
}

// Append writes a batch, which carries its offset and epoch, behind the last. When it
// fails the log must not be appended to any more: bytes of the batch may be there.
func (w *Writer) Append(b record.Batch) error {
	n := int64(len(b))
	if end := w.pos + n; end > w.ahead && w.opt.WriteAhead > len(b) {
		w.extend()
	}
	if _, err := w.h.log.WriteAt(b, w.pos); err != nil {
		return fmt.Errorf("appending %d bytes: %w", n, err)
	}
	pos := w.pos
	w.pos += n
	w.ahead = max(w.ahead, w.pos)
	l := w.h.live.Load()
	w.note(l, b, pos, len(b))
	l.tail.put(place{b.BaseOffset(), b.LastOffset(), pos, w.pos})
	w.s.maxTS.Store(w.maxTS)
	w.s.size.Store(w.pos)
	w.s.next.Store(int64(b.NextOffset()))
	return nil
}

// extend writes zeros behind the log, in one write that makes large pages; the batches
// then overwrite them, at half the cost of extending. Where there is no space, the
// batch itself may still fit.
func (w *Writer) extend() {
	n := min(w.opt.WriteAhead, len(zeros))
	if _, err := w.h.log.WriteAt(zeros[:n], w.ahead); err == nil {
		w.ahead += int64(n)
	}
}

// note enters a batch into the indexes, as Kafka does: an entry names the batch with
// which more than the interval has been written since the last.
func (w *Writer) note(l *live, b record.Batch, pos int64, n int) {
	last := uint32(b.LastOffset() - w.s.Base)
	if ts := b.MaxTimestamp(); ts > w.maxTS {
		w.maxTS, w.maxTSLast = ts, last
	}
	if w.since > w.opt.IndexInterval {
		l.index.append(indexEntry{last, uint32(pos)})
		w.noteTime(l)
		w.since = 0
	}
	w.since += n
}

// noteTime enters the highest timestamp so far, if it is news.
func (w *Writer) noteTime(l *live) {
	if w.maxTS > w.lastTime {
		l.times.append(timeEntry{w.maxTS, w.maxTSLast})
		w.lastTime = w.maxTS
	}
}

// IndexFull tells whether an index has no room for another entry.
func (w *Writer) IndexFull() bool {
	l := w.h.live.Load()
	return (int(l.index.n.Load())+1)*indexEntrySize > w.opt.IndexBytes ||
		(int(l.times.n.Load())+2)*timeEntrySize > w.opt.IndexBytes
}

// Trim cuts the zeros behind the log, if there are any.
func (w *Writer) Trim() (cut bool, err error) {
	if w.ahead == w.pos {
		return false, nil
	}
	if err := w.h.log.Truncate(w.pos); err != nil {
		return false, fmt.Errorf("cutting what was written ahead: %w", err)
	}
	w.ahead = w.pos
	return true, nil
}

// writeIndexes brings what is in memory into the files; forced adds the time entry
// that ends a time index.
func (w *Writer) writeIndexes(forced bool) error {
	l := w.h.live.Load()
	if forced {
		w.noteTime(l)
	}
	var b []byte
	index := l.index.all()
	for _, e := range index[w.indexDone:] {
		b = appendIndex(b, e)
	}
	if err := w.appendFile(IndexSuffix, b, int64(w.indexDone)*indexEntrySize); err != nil {
		return fmt.Errorf("writing the offset index: %w", err)
	}
	w.indexDone = len(index)
	times := l.times.all()
	b = b[:0]
	for _, e := range times[w.timesDone:] {
		b = appendTime(b, e)
	}
	if err := w.appendFile(TimeSuffix, b, int64(w.timesDone)*timeEntrySize); err != nil {
		return fmt.Errorf("writing the time index: %w", err)
	}
	w.timesDone = len(times)
	return nil
}

// appendFile writes b at a position of a file that is made at need.
func (w *Writer) appendFile(suffix string, b []byte, pos int64) error {
	if len(b) == 0 && pos > 0 {
		return nil
	}
	f, err := w.s.home.Store.FS.OpenFile(w.s.file(suffix), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, pos)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// AppendTxn adds an entry to the index of aborted transactions, at once: it is the one
// index that readers take from the file.
func (w *Writer) AppendTxn(entry []byte) error {
	f, err := w.s.home.Store.FS.OpenFile(w.s.file(TxnSuffix), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(entry, info.Size()-info.Size()%int64(len(entry)))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Sync makes the batches written so far durable. It may run beside Append.
func (w *Writer) Sync() error { return w.h.log.Sync() }

// Retain keeps the files open for a Sync beside the Writer's end; Release after it.
func (w *Writer) Retain() *Held {
	if !w.h.retain() {
		panic("segment: a writer's files are closed")
	}
	return &Held{w.h}
}

// Held are files kept open for a Sync.
type Held struct{ h *handle }

// Sync makes durable what the .log holds, and lets the files go.
func (h *Held) Sync() error {
	defer h.h.Release()
	return h.h.log.Sync()
}

// Close trims the log, completes the indexes and lets the files go. The segment may be
// opened for appending again.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	_, err := w.Trim()
	if ierr := w.writeIndexes(true); err == nil {
		err = ierr
	}
	w.h.live.Store(nil)
	w.s.Retire()
	w.h.Release()
	return err
}

// Abandon lets the files go as they are, after a failed write.
func (w *Writer) Abandon() {
	if w.closed {
		return
	}
	w.closed = true
	w.s.Retire()
	w.h.Release()
}

// Empty tells whether nothing has been appended to the segment.
func (w *Writer) Empty() bool { return w.pos == 0 }

// Release lets the files go without a Sync.
func (h *Held) Release() { h.h.Release() }
