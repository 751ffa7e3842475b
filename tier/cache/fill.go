package cache

import (
	"context"
	"fmt"
	"os"
	"time"
)

// A stream is the fills of one container, done one after the other.
type stream struct {
	src     Source
	queue   []int64 // chunks to fetch, in order
	fills   map[int64]*fill
	running bool
}

// A fill is a chunk that is being fetched, or failed to be.
type fill struct {
	wakes []func()
	err   error
	until time.Time // err stands; no new fill before
	told  bool
}

// Want sees to it that the bytes of src from pos up to end are fetched, and two chunks
// beyond. It answers true when they are there; else wake is called once, when any
// missing one has come or failed. The error of a failed fill is returned to whoever
// asks next, while it is fresh.
func (c *Cache) Want(src Source, pos, end int64, wake func()) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end = min(end, src.Size())
	last := (end - 1) / ChunkBytes
	there := true
	for i := pos / ChunkBytes; i <= last+ahead && i*ChunkBytes < src.Size(); i++ {
		if c.hasLocked(src.ID(), i) {
			continue
		}
		f, err := c.fillLocked(src, i)
		if i > last {
			continue
		}
		if err != nil {
			return false, err
		}
		if there && wake != nil { // one wake is enough: it comes with the first missing chunk
			f.wakes = append(f.wakes, wake)
		}
		there = false
	}
	if there {
		c.mu.stats.Hits++
	} else {
		c.mu.stats.Misses++
	}
	return there, nil
}

func (c *Cache) hasLocked(id string, chunk int64) bool {
	s := c.mu.stretches[key{id, chunk * ChunkBytes / stretchBytes}]
	return s != nil && s.have&(1<<(chunk%(stretchBytes/ChunkBytes))) != 0
}

// fillLocked queues the fill of a chunk unless it is under way (single flight) or has
// failed a moment ago.
func (c *Cache) fillLocked(src Source, chunk int64) (*fill, error) {
	st := c.mu.streams[src.ID()]
	if st == nil {
		st = &stream{src: src, fills: map[int64]*fill{}}
		c.mu.streams[src.ID()] = st
	}
	if f := st.fills[chunk]; f != nil {
		if f.err == nil {
			return f, nil
		}
		if time.Now().Before(f.until) || !f.told {
			f.told = true
			return nil, f.err
		}
	}
	f := &fill{}
	st.fills[chunk] = f
	st.queue = append(st.queue, chunk)
	if !st.running {
		st.running = true
		c.mu.ready = append(c.mu.ready, st)
	}
	if c.mu.workers < c.cfg.Workers && c.ctx.Err() == nil {
		c.mu.workers++
		c.wg.Add(1)
		go c.work()
	}
	return f, nil
}

// work fills chunks until there are none: each stream in turn, one chunk.
func (c *Cache) work() {
	defer c.wg.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.mu.ready) > 0 && c.ctx.Err() == nil {
		st := c.mu.ready[0]
		c.mu.ready = c.mu.ready[1:]
		chunk := st.queue[0]
		st.queue = st.queue[1:]
		c.mu.Unlock()
		err := c.fetch(st.src, chunk)
		c.mu.Lock()
		wakes := c.doneLocked(st, chunk, err)
		c.mu.Unlock()
		for _, wake := range wakes {
			wake()
		}
		c.mu.Lock()
	}
	c.mu.workers--
}

func (c *Cache) doneLocked(st *stream, chunk int64, err error) []func() {
	f := st.fills[chunk]
	wakes := f.wakes
	f.wakes = nil
	if err != nil {
		c.mu.stats.Failures++
		f.err, f.until = err, time.Now().Add(c.cfg.Pause)
	} else {
		delete(st.fills, chunk)
	}
	switch {
	case len(st.queue) > 0:
		c.mu.ready = append(c.mu.ready, st)
	default:
		st.running = false
		if len(st.fills) == 0 {
			delete(c.mu.streams, st.src.ID())
		}
	}
	return wakes
}

// fetch brings one chunk: from the store, checked, to its file, then in the bitmap.
func (c *Cache) fetch(src Source, chunk int64) error {
	buf := c.bufs.Get().(*[]byte)
	defer c.bufs.Put(buf)
	pos := chunk * ChunkBytes
	b := (*buf)[:min(ChunkBytes, src.Size()-pos)]
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.FillTime)
	defer cancel()
	if err := src.Fill(ctx, b, pos); err != nil {
		return err
	}
	s, err := c.stretch(key{src.ID(), pos / stretchBytes})
	if err != nil {
		return err
	}
	defer s.Release()
	if _, err := s.file.WriteAt(b, pos%stretchBytes); err != nil {
		return fmt.Errorf("writing the chunk cache: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.stats.Fills++
	c.mu.stats.FillBytes += int64(len(b))
	if s.elem != nil {
		s.have |= 1 << (chunk % (stretchBytes / ChunkBytes))
		s.bytes += int64(len(b))
		c.mu.bytes += int64(len(b))
		c.evictLocked()
	}
	return nil
}

// stretch finds or makes the file of a stretch and holds it.
func (c *Cache) stretch(k key) (*stretch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stretches[k]
	if s == nil {
		// Made under the lock: one small local call in 16 MiB, and no second maker.
		file, err := c.cfg.FS.OpenFile(c.name(k), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
		if err != nil {
			return nil, fmt.Errorf("making a file of the chunk cache: %w", err)
		}
		s = &stretch{cache: c, key: k, file: file}
		s.elem = c.mu.lru.PushFront(s)
		c.mu.stretches[k] = s
	}
	s.refs++
	return s, nil
}
