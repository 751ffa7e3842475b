package segment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

func newHome(t testing.TB, descriptors int) *Home {
	t.Helper()
	m := vfs.NewMem()
	if err := m.MkdirAll("/logs/a-0", 0o755); err != nil {
		t.Fatal(err)
	}
	return &Home{Store: &Store{FS: m, Path: "/logs", Files: NewFiles(descriptors)}, Name: "a-0"}
}

// fill makes a closed segment of n batches of two records.
func fill(t testing.TB, home *Home, base kafka.Offset, n int) *Segment {
	t.Helper()
	s := New(home, Facts{Base: base, Next: base, TimestampSet: true, MaxTimestamp: NoTimestamp})
	w, err := OpenWriter(s, Options{IndexInterval: 200, IndexBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		var b record.Builder
		b.Add(record.Record{Timestamp: int64(i), Value: []byte("one")})
		b.Add(record.Record{Timestamp: int64(i), Value: []byte("two")})
		x := record.Batch(b.AppendTo(nil))
		x.Stamp(s.Next(), 0)
		if err := w.Append(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFilesStayWithinTheirNumberAndCloseWithTheLastReader(t *testing.T) {
	home := newHome(t, 32) // eight segments for readers
	var segs []*Segment
	for i := range 40 {
		segs = append(segs, fill(t, home, kafka.Offset(1000*i), 3))
	}
	held, _, err := segs[0].Read(Want{From: 0, Bound: 100, Max: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segs {
		run, got, err := s.Read(Want{From: s.Base + 2, Bound: s.Base + 100, Max: 1 << 20})
		if err != nil || got.First != s.Base+2 || got.Next != s.Base+6 {
			t.Fatalf("segment %d: %+v, %v", s.Base, got, err)
		}
		run.Release()
		if n := home.Store.Files.Open(); n > 9 {
			t.Fatalf("%d segments are open, want 8 and the one that is held", n)
		}
	}
	if err := segs[0].Remove(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, held.N)
	if _, err := held.File.ReadAt(b, held.Pos); err != nil {
		t.Errorf("the run of a removed segment: %v", err)
	}
	held.Release()
	if _, err := held.File.ReadAt(b, held.Pos); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after its last reader the file is not closed: %v", err)
	}
}

func TestEveryOffsetIsFoundByIndexByTailAndByScan(t *testing.T) {
	home := newHome(t, 32)
	s := fill(t, home, 100, 200)
	check := func(how string) {
		t.Helper()
		for o := s.Base; o < s.Next(); o++ {
			run, got, err := s.Read(Want{From: o, Bound: s.Next(), Max: 300, MinOne: true})
			if err != nil || got.First != o/2*2 || run.N == 0 || run.N > 300 {
				t.Fatalf("%s: offset %d: %+v of %d bytes, %v", how, o, got, run.N, err)
			}
			run.Release()
		}
	}
	check("index file")
	w, err := OpenWriter(s, Options{IndexInterval: 200, IndexBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	check("index in memory")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := home.Store.FS.Remove(home.File(100, IndexSuffix)); err != nil {
		t.Fatal(err)
	}
	check("scan")
}

// Whatever the bytes are, a Scanner ends, within them.
func FuzzScanner(f *testing.F) {
	home := newHome(f, 32)
	fill(f, home, 0, 3)
	good, err := vfs.ReadFile(home.Store.FS, home.File(0, LogSuffix))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(good, make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := vfs.NewMem()
		if err := vfs.WriteFile(m, "/x", b, false); err != nil {
			t.Fatal(err)
		}
		file, err := m.Open("/x")
		if err != nil {
			t.Fatal(err)
		}
		for _, sc := range []*Scanner{NewScanner(file, 0, int64(len(b))), newScanner(file, 0, int64(len(b)))} {
			var end int64
			for {
				step, err := sc.Next()
				if errors.Is(err, io.EOF) != (end == int64(len(b)) && err != nil) {
					t.Fatalf("ended with %v at %d of %d", err, end, len(b))
				}
				if err != nil {
					break
				}
				if step.Pos != end || step.Size < record.HeaderSize || step.Pos+step.Size > int64(len(b)) {
					t.Fatalf("step %+v after %d of %d", fmt.Sprint(step.Pos, step.Size), end, len(b))
				}
				end = step.Pos + step.Size
			}
		}
	})
}
