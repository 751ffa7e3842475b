package segment

import (
	"errors"
	"io"
	"sync"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

// A Scanner walks the batches of a stretch of a file. It reads headers, or whole
// batches where asked to. It trusts lengths only as far as they stay in the stretch.
type Scanner struct {
	f     vfs.File
	pos   int64 // of the next batch
	end   int64
	whole bool

	buf    []byte
	bufPos int64
}

// A Step is one batch that a Scanner came to.
type Step struct {
	Batch record.Batch // its header, or all of it; good until the next step
	Pos   int64
	Size  int64
}

// scanWindow is how much a Scanner reads at least.
const scanWindow = 4096

var scanners = sync.Pool{New: func() any { return &Scanner{buf: make([]byte, 0, scanWindow)} }}

// newScanner takes a Scanner of headers from the pool; done gives it back.
func newScanner(f vfs.File, pos, end int64) *Scanner {
	s := scanners.Get().(*Scanner)
	*s = Scanner{f: f, pos: pos, end: end, buf: s.buf[:0]}
	return s
}

func (s *Scanner) done() {
	s.f = nil
	if cap(s.buf) <= 64<<10 {
		scanners.Put(s)
	}
}

// NewScanner walks the whole batches of f in [pos, end).
func NewScanner(f vfs.File, pos, end int64) *Scanner {
	return &Scanner{f: f, pos: pos, end: end, whole: true, buf: make([]byte, 0, min(256<<10, max(end-pos, 1)))}
}

// ErrTorn says that a batch's length leads out of the stretch, or that there is no batch.
var ErrTorn = errors.New("no whole batch")

// Next comes to the next batch. At the end of the stretch it answers io.EOF, and
// ErrTorn or a *record.CorruptError where there is no batch at Pos.
func (s *Scanner) Next() (Step, error) {
	if s.pos >= s.end {
		return Step{}, io.EOF
	}
	if s.end-s.pos < record.HeaderSize {
		return Step{}, ErrTorn
	}
	head, err := s.bytes(s.pos, record.HeaderSize)
	if err != nil {
		return Step{}, err
	}
	size := record.SizeOf(head)
	if _, _, err := record.Parse(head); err != nil && !errors.Is(err, record.ErrShort) {
		return Step{}, err
	}
	if size > s.end-s.pos {
		return Step{}, ErrTorn
	}
	step := Step{Batch: record.Batch(head), Pos: s.pos, Size: size}
	if s.whole {
		b, err := s.bytes(s.pos, int(size))
		if err != nil {
			return Step{}, err
		}
		step.Batch = record.Batch(b)
	}
	s.pos += size
	return step, nil
}

// Pos is where the next batch would be.
func (s *Scanner) Pos() int64 { return s.pos }

// bytes returns n bytes at pos out of the buffer, filling it from there if need be.
func (s *Scanner) bytes(pos int64, n int) ([]byte, error) {
	if at := pos - s.bufPos; at >= 0 && at+int64(n) <= int64(len(s.buf)) {
		return s.buf[at : at+int64(n) : at+int64(n)], nil
	}
	want := max(n, scanWindow)
	if s.whole {
		want = max(n, cap(s.buf))
	}
	want = int(min(int64(want), s.end-pos))
	if cap(s.buf) < want {
		s.buf = make([]byte, want)
	}
	s.buf, s.bufPos = s.buf[:want], pos
	if got, err := s.f.ReadAt(s.buf, pos); err != nil && got < n {
		s.buf = s.buf[:0]
		if errors.Is(err, io.EOF) {
			return nil, ErrTorn
		}
		return nil, err
	} else if got < want {
		s.buf = s.buf[:got]
	}
	return s.buf[:n:n], nil
}

// Walk visits the whole batches of the segment that end behind from.
func (s *Segment) Walk(from kafka.Offset, visit func(record.Batch) error) error {
	if s.Size() == 0 {
		return nil
	}
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.Release()
	at, err := s.locate(h, from, s.size.Load())
	if err != nil || at.pos < 0 {
		return err
	}
	for sc := NewScanner(h.log, at.pos, s.size.Load()); ; {
		step, err := sc.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.damaged(sc.Pos(), err)
		}
		if err := visit(step.Batch); err != nil {
			return err
		}
	}
}

// First shows the header of the segment's first batch, if there is one.
func (s *Segment) First(see func(record.Batch)) error {
	size := s.Size()
	if size == 0 {
		return nil
	}
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.Release()
	sc := newScanner(h.log, 0, size)
	defer sc.done()
	step, err := sc.Next()
	if err != nil {
		return s.damaged(0, err)
	}
	see(step.Batch)
	return nil
}

// Sync makes durable what the .log holds.
func (s *Segment) Sync() error {
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.Release()
	return h.log.Sync()
}
