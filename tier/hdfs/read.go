package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	library "github.com/colinmarc/hdfs/v2"

	"varve/tier"
)

const (
	maxStreams = 4        // kept open by one Reader between reads
	maxSkip    = 64 << 10 // bytes that a stream reads over instead of connecting anew
)

// Open opens a complete file for ranged reads. Streams name the file by its inode,
// so that a rename does not end them.
func (s *Store) Open(ctx context.Context, name string) (tier.Reader, error) {
	doing := "reading " + name
	if err := s.check(ctx, doing, name); err != nil {
		return nil, err
	}
	status, err := s.nn.Stat(ctx, s.Path(name))
	if err != nil {
		return nil, s.fail(doing, err)
	}
	if status.Dir {
		return nil, s.fail(doing, errors.New("is a folder"))
	}
	path := s.Path(name)
	if status.ID != 0 {
		path = fmt.Sprintf("/.reserved/.inodes/%d", status.ID)
	}
	return &reader{store: s, doing: doing, path: path, size: status.Length}, nil
}

// A reader serves ranged reads from sequential streams. The library's own ReadAt
// shares one position among its callers and connects anew for each read; here each
// read takes a stream for itself, best the one that stands where it begins.
type reader struct {
	store *Store
	doing string
	path  string
	size  int64

	mu struct {
		sync.Mutex
		idle   []*stream // the one used last at the end
		closed bool
	}
}

// A stream is one library reader and the position it stands at.
type stream struct {
	*library.FileReader
	pos int64
}

func (r *reader) Size() int64 { return r.size }

// ReadAt reads from one stream; if that breaks (a DataNode died, blocks moved, the
// block token ran out) once more from a new one.
func (r *reader) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, r.store.fail(r.doing, fmt.Errorf("position %d", off))
	}
	if off >= r.size {
		return 0, io.EOF
	}
	part := b[:min(int64(len(b)), r.size-off)]
	n, err := r.read(part, off, false)
	if err != nil && !errors.Is(err, errClosed) {
		var m int
		m, err = r.read(part[n:], off+int64(n), true)
		n += m
	}
	if err != nil {
		return n, r.store.fail(fmt.Sprintf("%s at %d", r.doing, off), kind(err))
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) read(b []byte, off int64, anew bool) (int, error) {
	s, err := r.take(off, anew)
	if err != nil {
		return 0, err
	}
	if s.pos != off {
		if _, err := s.Seek(off, io.SeekStart); err != nil {
			s.Close()
			return 0, err
		}
		s.pos = off
	}
	n, err := io.ReadFull(s, b)
	if err != nil {
		s.Close()
		return n, err
	}
	s.pos += int64(n)
	r.give(s)
	return n, nil
}

// take picks the idle stream that stands at off or shortly before it, else makes a
// new one; anew wants a new one in any case.
func (r *reader) take(off int64, anew bool) (*stream, error) {
	r.mu.Lock()
	if r.mu.closed {
		r.mu.Unlock()
		return nil, errClosed
	}
	best := -1
	for i, s := range r.mu.idle {
		if gap := off - s.pos; gap >= 0 && gap <= maxSkip && (best < 0 || s.pos > r.mu.idle[best].pos) {
			best = i
		}
	}
	if best >= 0 && !anew {
		s := r.mu.idle[best]
		r.mu.idle = append(r.mu.idle[:best], r.mu.idle[best+1:]...)
		r.mu.Unlock()
		return s, nil
	}
	r.mu.Unlock()
	f, err := r.store.openFile(r.path)
	if err != nil {
		return nil, err
	}
	return &stream{FileReader: f}, nil
}

// openFile asks the NameNode for a file until one answers or patience ends. A client
// that failed is replaced: for five seconds it would not ask the NameNodes again
// that have refused it.
func (s *Store) openFile(path string) (*library.FileReader, error) {
	end := time.Now().Add(s.o.Patience)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := s.pool.forReading()
		if err == nil {
			var f *library.FileReader
			if f, err = c.Open(path); err == nil {
				return f, nil
			}
			if away(err) {
				s.pool.replace(c)
			}
		}
		if !away(err) || time.Now().Add(pause).After(end) || !sleep(s.pool.life, pause) {
			return nil, err
		}
	}
}

// give puts a stream back for the read that goes on where it stands.
func (r *reader) give(s *stream) {
	var drop *stream
	r.mu.Lock()
	switch {
	case r.mu.closed || s.pos >= r.size:
		drop = s
	default:
		r.mu.idle = append(r.mu.idle, s)
		if len(r.mu.idle) > maxStreams {
			drop = r.mu.idle[0]
			r.mu.idle = r.mu.idle[1:]
		}
	}
	r.mu.Unlock()
	if drop != nil {
		drop.Close()
	}
}

// Close ends the idle streams; reads under way end theirs themselves.
func (r *reader) Close() error {
	r.mu.Lock()
	idle := r.mu.idle
	r.mu.idle, r.mu.closed = nil, true
	r.mu.Unlock()
	for _, s := range idle {
		s.Close()
	}
	return nil
}
