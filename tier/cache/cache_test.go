package cache

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"varve/broker/vfs"
)

// A source is bytes that say where they are, behind a store that may be slow or fail.
type source struct {
	id   string
	size int64
	hold chan struct{} // a fill waits until it is closed

	mu    sync.Mutex
	fills []int64
	err   error
}

func (s *source) ID() string  { return s.id }
func (s *source) Size() int64 { return s.size }

func pattern(b []byte, pos int64) {
	for i := range b {
		b[i] = byte((pos + int64(i)) * 7 / 5)
	}
}

func (s *source) Fill(ctx context.Context, b []byte, pos int64) error {
	s.mu.Lock()
	s.fills = append(s.fills, pos/ChunkBytes)
	err := s.err
	s.mu.Unlock()
	if s.hold != nil {
		<-s.hold
	}
	pattern(b, pos)
	return err
}

func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fills)
}

func open(t *testing.T, cfg Config) *Cache {
	t.Helper()
	cfg.FS, cfg.Dir = vfs.NewMem(), "/cache"
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// get waits for a range and reads it back.
func get(t *testing.T, c *Cache, s Source, pos, end int64) []byte {
	t.Helper()
	for {
		woken := make(chan struct{}, 1)
		there, err := c.Want(s, pos, end, func() { woken <- struct{}{} })
		if err != nil {
			t.Fatal(err)
		}
		if !there {
			<-woken
			continue
		}
		b := make([]byte, end-pos)
		if n, err := c.ReadAt(s, b, pos); err != nil || n < len(b) {
			t.Fatalf("%d bytes of %d, %v", n, len(b), err)
		}
		return b
	}
}

func TestBytesComeBackOverChunkAndFileBorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, Config{})
		defer c.Close()
		s := &source{id: "a", size: 20*ChunkBytes + 77}
		for _, r := range [][2]int64{{0, 10}, {ChunkBytes - 5, ChunkBytes + 5}, {stretchBytes - 9, stretchBytes + ChunkBytes}, {s.size - 80, s.size}} {
			want := make([]byte, r[1]-r[0])
			pattern(want, r[0])
			if got := get(t, c, s, r[0], r[1]); !bytes.Equal(got, want) {
				t.Errorf("[%d,%d) differs", r[0], r[1])
			}
		}
		run := c.View(s, 3, 1<<30)
		if run.N < ChunkBytes+5 || run.Pos != 3 {
			t.Errorf("one run over chunks: %+v", run)
		}
		run.Release()
	})
}

func TestManyWhoWantOneChunkFetchItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, Config{})
		defer c.Close()
		s := &source{id: "a", size: ChunkBytes, hold: make(chan struct{})}
		wakes := 0
		for range 100 {
			if there, err := c.Want(s, 0, 10, func() { wakes++ }); there || err != nil {
				t.Fatal(there, err)
			}
		}
		close(s.hold)
		synctest.Wait()
		if s.count() != 1 || wakes != 100 {
			t.Errorf("%d fills, %d wakes", s.count(), wakes)
		}
	})
}

func TestReadingOnFetchesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, Config{})
		defer c.Close()
		s := &source{id: "a", size: 10 * ChunkBytes}
		get(t, c, s, 0, 10)
		synctest.Wait()
		if s.count() != 1+ahead {
			t.Errorf("%d chunks were fetched, want %d", s.count(), 1+ahead)
		}
		if there, err := c.Want(s, ChunkBytes, 2*ChunkBytes, nil); !there || err != nil {
			t.Errorf("the next chunk is there: %v, %v", there, err)
		}
	})
}

func TestContainersShareTheWorkersFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, Config{Workers: 1})
		defer c.Close()
		hold := make(chan struct{})
		a, b := &source{id: "a", size: 50 * ChunkBytes, hold: hold}, &source{id: "b", size: ChunkBytes}
		if _, err := c.Want(a, 0, a.size, nil); err != nil {
			t.Fatal(err)
		}
		at := -1
		if _, err := c.Want(b, 0, 1, func() { at = a.count() }); err != nil {
			t.Fatal(err)
		}
		close(hold)
		synctest.Wait()
		if at > 3 || at < 0 {
			t.Errorf("b came after %d chunks of a", at)
		}
	})
}

func TestFailureIsToldAndThenForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, Config{})
		defer c.Close()
		away := errors.New("the store is away")
		s := &source{id: "a", size: ChunkBytes, err: away}
		if _, err := c.Want(s, 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 3 { // within the pause: told, and not asked again
			if _, err := c.Want(s, 0, 1, nil); !errors.Is(err, away) {
				t.Errorf("got %v", err)
			}
		}
		if s.count() != 1 {
			t.Errorf("%d fills", s.count())
		}
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		get(t, c, s, 0, 10)
	})
}

func TestDiskIsBoundedAndReadersKeepWhatTheyHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, Config{Bytes: 3 * ChunkBytes})
		defer c.Close()
		first := &source{id: "first", size: ChunkBytes}
		get(t, c, first, 0, 10)
		run := c.View(first, 0, 10)
		for _, id := range strings.Split("b c d e f g", " ") {
			get(t, c, &source{id: id, size: ChunkBytes}, 0, 10)
		}
		if s := c.Stats(); s.Bytes > 3*ChunkBytes || s.Evictions < 3 {
			t.Errorf("%+v", s)
		}
		b, want := make([]byte, 10), make([]byte, 10)
		pattern(want, 0)
		if _, err := run.File.ReadAt(b, run.Pos); err != nil || !bytes.Equal(b, want) {
			t.Errorf("held bytes: %v, %v", b, err)
		}
		run.Release()
	})
}

func BenchmarkView(b *testing.B) {
	c, err := Open(Config{FS: vfs.NewMem(), Dir: "/cache"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	s := &source{id: "a", size: 4 * ChunkBytes}
	done := make(chan struct{}, 8)
	for {
		there, err := c.Want(s, 0, s.size, func() { done <- struct{}{} })
		if err != nil {
			b.Fatal(err)
		}
		if there {
			break
		}
		<-done
	}
	b.ReportAllocs()
	for b.Loop() {
		if there, err := c.Want(s, 0, 2*ChunkBytes, nil); !there || err != nil {
			b.Fatal(there, err)
		}
		r := c.View(s, 0, 2*ChunkBytes)
		r.Release()
	}
}
