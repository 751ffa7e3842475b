package commitlog_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/vfs"
)

func TestAppendedBatchesAreReadBackAcrossRollsAndStops(t *testing.T) {
	for name, ahead := range map[string]int{"plain": 0, "ahead": 4096} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMem()
			cfg := &commitlog.Config{SegmentBytes: 2000, IndexInterval: 300, WriteAhead: ahead}
			d, l := open(t, m, "/logs", cfg, nil)
			var want []byte
			for i := range 60 {
				b := batch(1+i%4, 20+i, int64(1000+i))
				a := appendTo(t, l, b)
				if a.Next != b.NextOffset() || a.Base != b.BaseOffset() {
					t.Fatalf("appended %+v, batch says %v", a, b)
				}
				want = append(want, b...)
			}
			if got := readAll(t, l, 0); !bytes.Equal(got, want) {
				t.Fatalf("read %d bytes, appended %d", len(got), len(want))
			}
			if n := len(mustSegments(t, l)); n < 4 {
				t.Fatalf("%d segments, want several", n)
			}
			end := l.End()
			closeClean(t, d)

			var log bytes.Buffer
			d, l = open(t, m, "/logs", cfg, &log)
			if !d.CleanStart() || l.End() != end || l.Flushed() != end {
				t.Fatalf("clean %v, end %d, flushed %d; want true, %d", d.CleanStart(), l.End(), l.Flushed(), end)
			}
			if got := readAll(t, l, 0); !bytes.Equal(got, want) {
				t.Fatalf("read %d bytes after a stop, appended %d", len(got), len(want))
			}
			want = append(want, mustAppend(t, l, 3)...)
			d.Abandon()

			d, l = open(t, m.Kill(), "/logs", cfg, &log)
			if d.CleanStart() {
				t.Fatal("start after a kill says it was clean")
			}
			if got := readAll(t, l, 0); !bytes.Equal(got, want) {
				t.Fatalf("read %d bytes after a kill, appended %d", len(got), len(want))
			}
			if log.Len() > 0 {
				t.Errorf("logged: %s", log.String())
			}
			closeClean(t, d)
		})
	}
}

func mustSegments(t testing.TB, l *commitlog.Log) []commitlog.SegmentInfo {
	t.Helper()
	s, err := l.Segments()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustAppend(t testing.TB, l *commitlog.Log, n int) (all []byte) {
	t.Helper()
	for range n {
		b := batch(2, 30, 2000)
		appendTo(t, l, b)
		all = append(all, b...)
	}
	return all
}

func TestANewPartitionHasItsFolderAndTopicIDOnly(t *testing.T) {
	m := vfs.NewMem()
	d, l := open(t, m, "/logs", &commitlog.Config{}, nil)
	if got := names(t, m, "/logs/orders-3"); got != "partition.metadata" {
		t.Errorf("folder holds %s", got)
	}
	b, err := vfs.ReadFile(m, "/logs/orders-3/partition.metadata")
	if err != nil || string(b) != "version: 0\ntopic_id: AQIDAAAAAAAAAAAAAAAAAA" {
		t.Errorf("partition.metadata holds %q, %v", b, err)
	}
	appendTo(t, l, batch(1, 10, 1000))
	if got := names(t, m, "/logs/orders-3"); !strings.Contains(got, "00000000000000000000.log") {
		t.Errorf("folder holds %s", got)
	}
	closeClean(t, d)
}

func names(t testing.TB, fsys vfs.FS, dir string) string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestReadsStayBelowTheBoundAndAboveTheStart(t *testing.T) {
	m := vfs.NewMem()
	d, l := open(t, m, "/logs", &commitlog.Config{IndexInterval: 100}, nil)
	defer d.Abandon()
	for range 100 {
		appendTo(t, l, batch(3, 30, 1000)) // batch i is [3i, 3i+3)
	}
	for bound := kafka.Offset(1); bound <= 300; bound++ {
		run, info, err := l.Read(0, 1<<20, bound, true)
		if err != nil {
			t.Fatal(err)
		}
		whole := bound / 3 * 3
		if got := info.Next; run.N > 0 && got != whole || run.N == 0 && whole != 0 {
			t.Fatalf("below %d: run of %d bytes up to %d, want up to %d", bound, run.N, got, whole)
		}
		run.Release()
	}
	if run, _, err := l.Read(5, 10, 300, false); run.N != 0 || err != nil {
		t.Errorf("a batch longer than max: %d bytes, %v; want none", run.N, err)
	}
	if _, _, err := l.Read(301, 10, 300, true); !errors.Is(err, commitlog.ErrOffsetOutOfRange) {
		t.Errorf("above the end: %v", err)
	}
	if run, _, err := l.Read(300, 10, 300, true); run.N != 0 || err != nil {
		t.Errorf("at the end: %d bytes, %v; want none", run.N, err)
	}
	if err := l.SetLogStart(7); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Read(6, 10, 300, true); !errors.Is(err, commitlog.ErrOffsetOutOfRange) {
		t.Errorf("below the start: %v", err)
	}
	if run, info, err := l.Read(7, 10, 300, true); err != nil || info.First != 6 {
		t.Errorf("at the start: run of %d from %d, %v; want the batch at 6", run.N, info.First, err)
	}
}

func TestARepeatedBatchIsAnsweredAsTheFirstTimeAlsoAfterAStop(t *testing.T) {
	m := vfs.NewMem()
	cfg := &commitlog.Config{}
	d, l := open(t, m, "/logs", cfg, nil)
	for i := range 8 {
		appendTo(t, l, sequenced(9, int32(2*i), 2, false))
	}
	check := func(when string) {
		t.Helper()
		end := l.End()
		for i := 3; i < 8; i++ {
			a := appendTo(t, l, sequenced(9, int32(2*i), 2, false))
			if !a.Duplicate || a.Base != kafka.Offset(2*i) {
				t.Errorf("%s: batch %d again: %+v, want a duplicate at %d", when, i, a, 2*i)
			}
		}
		var refused *kafka.Error
		if _, err := l.Append(sequenced(9, 99, 1, false), 0); !errors.As(err, &refused) || refused.Code != kafka.OutOfOrderSequenceNumber {
			t.Errorf("%s: sequence 99: %v", when, err)
		}
		if l.End() != end {
			t.Errorf("%s: end moved from %d to %d", when, end, l.End())
		}
	}
	check("at once")
	closeClean(t, d)
	d, l = open(t, m, "/logs", cfg, nil)
	check("after a clean stop")
	d.Abandon()
	d, l = open(t, m.Kill(), "/logs", cfg, nil)
	check("after a kill")
	d.Abandon()
}
