package segment

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"varve/broker/vfs"
)

// Files bounds how many segments have files open. It is shared by a broker's log
// dirs. A segment that is read costs two descriptors, .log and .index; one that is
// written, one.
type Files struct {
	mu struct {
		sync.Mutex
		open []*handle // a ring for the clock hand
		hand int
	}
	max        int
	writers    atomic.Int64
	maxWriters int64
}

// NewFiles shares out descriptors: half of them to segments that are written, the rest
// to those that are read, two each. What is read at this moment may come on top.
func NewFiles(descriptors int) *Files {
	return &Files{max: max(descriptors/4, 4), maxWriters: int64(max(descriptors/2, 4))}
}

// Crowded tells whether more segments are being written than there should be.
func (c *Files) Crowded() bool { return c.writers.Load() > c.maxWriters }

// Open tells how many segments are open.
func (c *Files) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.open)
}

// A handle is a segment's open files. It counts its uses, the cache's being one of
// them, and closes with the last. Runs hand it out as their owner.
type handle struct {
	refs    atomic.Int64
	used    atomic.Bool // since the clock hand passed
	log     vfs.File
	index   vfs.File // nil where there is none
	entries int64    // in index, when it was opened
	live    atomic.Pointer[live]
	owned   atomic.Bool // by the segment, not by the cache: it is being written
}

// Release implements vfs.Releaser.
func (h *handle) Release() {
	switch n := h.refs.Add(-1); {
	case n == 0:
		h.log.Close()
		if h.index != nil {
			h.index.Close()
		}
	case n < 0:
		panic("segment: files released more often than taken")
	}
}

// retain takes a use, unless the files are closed already.
func (h *handle) retain() bool {
	for {
		n := h.refs.Load()
		if n == 0 {
			return false
		}
		if h.refs.CompareAndSwap(n, n+1) {
			if !h.used.Load() {
				h.used.Store(true)
			}
			return true
		}
	}
}

// acquire returns the segment's open files with a use taken, opening them if need be.
func (s *Segment) acquire() (*handle, error) {
	for {
		h := s.open.Load()
		if h == nil {
			return s.openFiles(os.O_RDONLY)
		}
		if h.retain() {
			return h, nil
		}
		s.open.CompareAndSwap(h, nil)
	}
}

// openFiles opens the files and puts them into the cache; one use is the caller's.
func (s *Segment) openFiles(flag int) (*handle, error) {
	fsys := s.home.Store.FS
	log, err := fsys.OpenFile(s.file(LogSuffix), flag, 0o644)
	if err != nil {
		return nil, err
	}
	if flag&os.O_RDWR != 0 {
		return s.own(log), nil
	}
	index, err := fsys.OpenFile(s.file(IndexSuffix), flag, 0o644)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Close()
		return nil, err
	}
	h := &handle{log: log}
	if err == nil {
		h.index = index
		info, err := index.Stat()
		if err != nil {
			log.Close()
			index.Close()
			return nil, err
		}
		h.entries = info.Size() / indexEntrySize
	}
	h.refs.Store(2)
	h.used.Store(true)
	if !s.open.CompareAndSwap(nil, h) {
		h.refs.Store(1)
		h.Release()
		return s.acquire()
	}
	s.home.Store.Files.add(h)
	if s.open.Load() != h { // retired meanwhile
		s.home.Store.Files.forget(h)
	}
	return h, nil
}

// own puts a writer's file in the place of readers'. The indexes are in memory.
func (s *Segment) own(log vfs.File) *handle {
	h := &handle{log: log}
	h.refs.Store(2)
	h.owned.Store(true)
	s.home.Store.Files.writers.Add(1)
	if old := s.open.Swap(h); old != nil {
		s.home.Store.Files.forget(old)
	}
	return h
}

// Retire closes the segment's files as soon as nobody reads them.
func (s *Segment) Retire() {
	if h := s.open.Swap(nil); h != nil {
		s.home.Store.Files.forget(h)
	}
}

// add takes a handle in and puts out another where there are too many: the first
// that nobody used since the hand passed last.
func (c *Files) add(h *handle) {
	c.mu.Lock()
	var out *handle
	if len(c.mu.open) >= c.max {
		for range 2 * len(c.mu.open) {
			c.mu.hand = (c.mu.hand + 1) % len(c.mu.open)
			o := c.mu.open[c.mu.hand]
			if o.refs.Load() > 1 || o.used.Swap(false) {
				continue
			}
			out = o
			c.mu.open[c.mu.hand] = h
			break
		}
	}
	if out == nil {
		c.mu.open = append(c.mu.open, h)
	}
	c.mu.Unlock()
	if out != nil {
		out.Release()
	}
}

// forget takes a handle out and gives the cache's use back.
func (c *Files) forget(h *handle) {
	if h.owned.Swap(false) {
		c.writers.Add(-1)
		h.Release()
		return
	}
	c.mu.Lock()
	found := false
	for i, o := range c.mu.open {
		if o == h {
			last := len(c.mu.open) - 1
			c.mu.open[i] = c.mu.open[last]
			c.mu.open[last] = nil
			c.mu.open = c.mu.open[:last]
			c.mu.hand = 0
			found = true
			break
		}
	}
	c.mu.Unlock()
	if found {
		h.Release()
	}
}
