// Package cache keeps stretches of containers on the local disk: the bytes that cold
// readers read, fetched once, in chunks of 1 MiB that are checked before they count.
//
//	<dir>/<container uuid>-<stretch>    16 MiB of the container's log, with holes
//
// A stretch is a file so that a run of many batches, over chunk borders, goes to the
// reader by sendfile as it would from the log itself. A fresh chunk is served from its
// file too: its pages are in memory anyway, and a second path that sends the buffer of
// the fill would save a page fault and cost a copy to the socket.
//
// The folder is emptied at start: what the last process wrote is not known to be whole.
//
// Fills run in the order of a queue of streams, one chunk a turn and one turn at a time
// per container, so that the store sees one forward read per container and many
// containers share the workers fairly. Nobody's time-out ends a fill: who asks again
// finds it done. A failure is told once to whoever reads next and is then forgotten,
// after a pause in which the store is not asked again.
package cache

import (
	"container/list"
	"context"
	"fmt"
	"path"
	"sync"
	"time"

	"varve/broker/vfs"
)

const (
	// ChunkBytes is the unit of fills.
	ChunkBytes = 1 << 20
	// stretchBytes is the unit of files and of eviction.
	stretchBytes = 16 * ChunkBytes
	// ahead is how many chunks are fetched beyond those that were asked for.
	ahead = 2
)

// Config says how much to keep and how hard to fill. The zero value is usable with FS
// and Dir.
type Config struct {
	FS       vfs.FS
	Dir      string
	Bytes    int64         // kept on disk at most; 0 = 1 GiB. Stretches in use are kept beyond it
	Workers  int           // fills at a time; 0 = 8
	Pause    time.Duration // after a failed fill; 0 = 1 s
	FillTime time.Duration // a fill that takes longer has failed; 0 = 60 s
}

func (c Config) withDefaults() Config {
	if c.Bytes == 0 {
		c.Bytes = 1 << 30
	}
	if c.Workers == 0 {
		c.Workers = 8
	}
	if c.Pause == 0 {
		c.Pause = time.Second
	}
	if c.FillTime == 0 {
		c.FillTime = time.Minute
	}
	return c
}

// A Source is a container's log on the store. Fill reads exactly len(b) bytes at pos, a
// multiple of ChunkBytes, and checks them.
type Source interface {
	ID() string // never another source's
	Size() int64
	Fill(ctx context.Context, b []byte, pos int64) error
}

// A Cache is safe for concurrent use.
type Cache struct {
	cfg  Config
	bufs sync.Pool
	wg   sync.WaitGroup
	ctx  context.Context
	stop context.CancelFunc

	mu struct {
		sync.Mutex
		stretches map[key]*stretch
		lru       list.List // of *stretch, the most recent in front
		streams   map[string]*stream
		ready     []*stream // have something to fill and nobody does
		workers   int       // running
		bytes     int64     // on disk
		stats     Stats
	}
}

// Stats count what the cache did.
type Stats struct {
	Hits, Misses int64 // reads that found all their bytes, or not
	Fills        int64 // chunks fetched
	FillBytes    int64
	Failures     int64 // fills that failed
	Evictions    int64 // stretches
	Bytes        int64 // on disk now
}

type key struct {
	id string
	n  int64 // stretch number
}

// Open empties the folder and makes a cache in it.
func Open(cfg Config) (*Cache, error) {
	c := &Cache{cfg: cfg.withDefaults()}
	c.bufs.New = func() any { b := make([]byte, ChunkBytes); return &b }
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.mu.stretches, c.mu.streams = map[key]*stretch{}, map[string]*stream{}
	if err := cfg.FS.RemoveAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("emptying the chunk cache %s: %w", cfg.Dir, err)
	}
	if err := cfg.FS.MkdirAll(cfg.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the chunk cache %s: %w", cfg.Dir, err)
	}
	return c, nil
}

// Close ends the fills and removes the files.
func (c *Cache) Close() error {
	c.stop()
	c.wg.Wait()
	c.mu.Lock()
	for _, s := range c.mu.stretches {
		c.dropLocked(s)
	}
	c.mu.Unlock()
	return c.cfg.FS.RemoveAll(c.cfg.Dir)
}

// Empty lets all go that nobody holds.
func (c *Cache) Empty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.mu.stretches {
		if s.refs == 0 {
			c.dropLocked(s)
		}
	}
}

// Stats is a snapshot.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stats
	s.Bytes = c.mu.bytes
	return s
}

// A stretch is 16 MiB of a container's log, of which the chunks in have are there.
type stretch struct {
	cache *Cache
	key   key
	file  vfs.File
	elem  *list.Element // nil once evicted
	have  uint32        // bitmap of chunks
	refs  int           // under cache.mu
	bytes int64
}

// Release gives a run's hold on the stretch back.
func (s *stretch) Release() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.refs--
	if s.refs == 0 && s.elem == nil {
		s.file.Close()
	}
}

// until is the position up to which the stretch's bytes are there from pos on.
func (s *stretch) until(pos, size int64) int64 {
	start := s.key.n * stretchBytes
	i := (pos - start) / ChunkBytes
	for i < stretchBytes/ChunkBytes && s.have&(1<<i) != 0 {
		i++
	}
	return max(pos, min(start+i*ChunkBytes, size))
}

// View finds the bytes of src from pos on that are there in one file: the run holds
// them, N of them up to max, and must be released. N is 0 where none are.
func (c *Cache) View(src Source, pos int64, max int) vfs.Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stretches[key{src.ID(), pos / stretchBytes}]
	if s == nil {
		return vfs.Run{}
	}
	n := min(s.until(pos, src.Size())-pos, int64(max))
	if n <= 0 {
		return vfs.Run{}
	}
	s.refs++
	c.mu.lru.MoveToFront(s.elem)
	return vfs.Run{File: s.file, Pos: pos - s.key.n*stretchBytes, N: int(n), Owner: s}
}

// ReadAt copies bytes that are there: fewer than len(b) where some are not.
func (c *Cache) ReadAt(src Source, b []byte, pos int64) (int, error) {
	n := 0
	for n < len(b) && pos+int64(n) < src.Size() {
		r := c.View(src, pos+int64(n), len(b)-n)
		if r.N == 0 {
			return n, nil
		}
		m, err := r.File.ReadAt(b[n:n+r.N], r.Pos)
		r.Release()
		n += m
		if m < r.N {
			return n, fmt.Errorf("reading the chunk cache of %s at %d: %w", src.ID(), pos, err)
		}
	}
	return n, nil
}

// evictLocked makes room by letting go of what was used longest ago.
func (c *Cache) evictLocked() {
	for e := c.mu.lru.Back(); e != nil && c.mu.bytes > c.cfg.Bytes; {
		s := e.Value.(*stretch)
		e = e.Prev()
		if s.refs == 0 {
			c.dropLocked(s)
			c.mu.stats.Evictions++
		}
	}
}

// dropLocked forgets a stretch; its file is closed by its last reader.
func (c *Cache) dropLocked(s *stretch) {
	c.mu.lru.Remove(s.elem)
	s.elem = nil
	delete(c.mu.stretches, s.key)
	c.mu.bytes -= s.bytes
	_ = c.cfg.FS.Remove(c.name(s.key)) // what is left is removed at the next start
	if s.refs == 0 {
		s.file.Close()
	}
}

func (c *Cache) name(k key) string { return path.Join(c.cfg.Dir, fmt.Sprintf("%s-%d", k.id, k.n)) }
