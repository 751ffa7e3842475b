package commitlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"syscall"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

const logFile = "/logs/orders-3/00000000000000000000.log"

// cutFile leaves the first n bytes of a file.
func cutFile(t testing.TB, fsys vfs.FS, name string, n int64) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(n); err != nil {
		t.Fatal(err)
	}
}

func TestEveryCutOfALogKeepsTheWholeBatchesBeforeIt(t *testing.T) {
	m := vfs.NewMem()
	cfg := &commitlog.Config{IndexInterval: 100}
	d, l := open(t, m, "/logs", cfg, nil)
	var ends []int64
	var all []byte
	for i := range 8 {
		b := batch(1+i%3, 10, int64(1000+i))
		appendTo(t, l, b)
		all = append(all, b...)
		ends = append(ends, int64(len(all)))
	}
	d.Abandon()
	for cut := range int64(len(all)) + 1 {
		c := m.Kill()
		cutFile(t, c, logFile, cut)
		var log bytes.Buffer
		d, l := open(t, c, "/logs", cfg, &log)
		var whole int64
		for _, e := range ends {
			if e <= cut {
				whole = e
			}
		}
		if got := readAll(t, l, 0); !bytes.Equal(got, all[:whole]) {
			t.Fatalf("cut at %d: %d bytes are back, want %d", cut, len(got), whole)
		}
		if reported := strings.Contains(log.String(), "was cut"); reported != (len(bytes.Trim(all[whole:cut], "\x00")) > 0) {
			t.Fatalf("cut at %d of whole %d: logged %q", cut, whole, log.String())
		}
		appendTo(t, l, batch(1, 5, 3000))
		readAll(t, l, 0)
		d.Abandon()
	}
}

func TestABitFlipCutsThereAndSetsLaterSegmentsAside(t *testing.T) {
	m := vfs.NewMem()
	cfg := &commitlog.Config{SegmentBytes: 400}
	d, l := open(t, m, "/logs", cfg, nil)
	for i := range 9 {
		appendTo(t, l, batch(2, 10, int64(1000+i)))
	}
	segs := mustSegments(t, l)
	if len(segs) < 3 {
		t.Fatalf("%d segments, want 3", len(segs))
	}
	first, err := vfs.ReadFile(m, logFile)
	if err != nil {
		t.Fatal(err)
	}
	d.Abandon()
	for at := range len(first) {
		if in := at % (len(first) / int(segs[0].Next/2)); in < 8 || in >= 12 && in < 16 {
			continue // offset and leader epoch are outside of the checksum
		}
		c := m.Kill()
		f, err := c.OpenFile(logFile, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte{first[at] ^ 0x10}, int64(at))
		f.Close()
		var log bytes.Buffer
		d, l := open(t, c, "/logs", cfg, &log)
		got := readAll(t, l, 0)
		if !bytes.HasPrefix(first, got) || len(got) > at {
			t.Fatalf("flip at %d: %d bytes are back, which are not the log's beginning", at, len(got))
		}
		d.Abandon()
		if len(got) < len(first) && !strings.Contains(names(t, c, "/logs"), "-stray") {
			t.Fatalf("flip at %d: no folder of what was set aside in %s", at, names(t, c, "/logs"))
		}
	}
}

func TestZerosBehindTheLogAreItsEndAndNoDamage(t *testing.T) {
	m := vfs.NewMem()
	cfg := &commitlog.Config{WriteAhead: 4096}
	d, l := open(t, m, "/logs", cfg, nil)
	want := mustAppend(t, l, 5)
	d.Abandon()
	c := m.Kill()
	if info, err := c.Stat(logFile); err != nil || info.Size() < 4096 {
		t.Fatalf("file is not written ahead: %v, %v", info.Size(), err)
	}
	var log bytes.Buffer
	d, l = open(t, c, "/logs", cfg, &log)
	if got := readAll(t, l, 0); !bytes.Equal(got, want) || log.Len() > 0 {
		t.Errorf("%d bytes are back, want %d; logged %q", len(got), len(want), log.String())
	}
	want = append(want, mustAppend(t, l, 1)...)
	d.Sweep(5000 + 2000)
	if info, _ := c.Stat(logFile); info.Size() != int64(len(want)) {
		t.Errorf("idle log's file has %d bytes, want %d", info.Size(), len(want))
	}
	d.Abandon()
}

func TestLostAndBadIndexesCostNoRecord(t *testing.T) {
	m := vfs.NewMem()
	cfg := &commitlog.Config{SegmentBytes: 1500, IndexInterval: 100}
	d, l := open(t, m, "/logs", cfg, nil)
	want := mustAppend(t, l, 40)
	closeClean(t, d)
	for _, suffix := range []string{".index", ".timeindex"} {
		for what, spoil := range map[string]func(fsys vfs.FS, name string){
			"gone":  func(fsys vfs.FS, name string) { fsys.Remove(name) },
			"empty": func(fsys vfs.FS, name string) { cutFile(t, fsys, name, 0) },
			"torn":  func(fsys vfs.FS, name string) { cutFile(t, fsys, name, 13) },
			"noise": func(fsys vfs.FS, name string) {
				vfs.WriteFile(fsys, name, bytes.Repeat([]byte{0, 0, 0, 9, 0, 0, 0, 77}, 6), true)
			},
		} {
			for _, clean := range []bool{true, false} {
				c := m.Kill()
				for _, n := range strings.Fields(names(t, c, "/logs/orders-3")) {
					if strings.HasSuffix(n, suffix) {
						spoil(c, "/logs/orders-3/"+n)
					}
				}
				if !clean {
					c.Remove("/logs/.kafka_cleanshutdown")
				}
				d, l := open(t, c, "/logs", cfg, nil)
				if got := readAll(t, l, 0); !bytes.Equal(got, want) {
					t.Errorf("%s %s, clean %v: %d bytes are back, want %d", suffix, what, clean, len(got), len(want))
				}
				mustAppend(t, l, 2)
				readAll(t, l, 3)
				d.Abandon()
			}
		}
	}
}

// The life of a log, cut off after each operation on the file system: what was flushed
// is there, in order, and nothing that was not appended.
func TestAPowerCutAfterAnyOperationLosesNothingFlushed(t *testing.T) {
	cfg := &commitlog.Config{SegmentBytes: 700, IndexInterval: 100, FlushMessages: 1, WriteAhead: 1024, RetentionBytes: 1 << 40}
	type cut struct {
		m     *vfs.Mem
		acked int
		op    vfs.Op
	}
	for seed := range int64(3) {
		m := vfs.NewMem()
		if err := m.MkdirAll("/logs", 0o755); err != nil {
			t.Fatal(err)
		}
		m.SyncDir("/")
		r := rand.New(rand.NewSource(seed))
		var cuts []cut
		acked := 0
		m.Rule(func(op vfs.Op) error {
			if op.Changes() {
				torn := r
				if seed == 0 {
					torn = nil
				}
				cuts = append(cuts, cut{m.PowerCut(torn), acked, op})
			}
			return nil
		})
		var all []byte
		life := func() {
			d, l := open(t, m, "/logs", cfg, nil)
			if err := l.StartEpoch(kafka.LeaderEpoch(acked)); err != nil {
				t.Fatal(err)
			}
			for range 7 {
				b := sequenced(5, int32(acked), 1, false)
				appendTo(t, l, b)
				all = append(all, b...)
				acked++
			}
			if err := d.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			closeClean(t, d)
		}
		life()
		life()
		m.Rule(nil)
		for i, c := range cuts {
			var log bytes.Buffer
			d, l := open(t, c.m, "/logs", cfg, &log)
			where := fmt.Sprintf("seed %d, cut %d before %s %s", seed, i, c.op.Kind, c.op.Name)
			if int(l.End()) < c.acked {
				t.Fatalf("%s: ends at %d, %d were flushed\n%s", where, l.End(), c.acked, log.String())
			}
			if got := readAll(t, l, 0); !bytes.HasPrefix(all, got) {
				t.Fatalf("%s: what is back is not what was appended", where)
			}
			if a, err := l.Append(sequenced(5, int32(l.End()), 1, false), 0); err != nil || a.Duplicate {
				t.Fatalf("%s: the producer cannot go on: %+v, %v", where, a, err)
			}
			d.Abandon()
		}
	}
}

func TestTheFirstFailedWriteClosesTheLogAndAFullDiskHeals(t *testing.T) {
	for name, fault := range map[string]error{"full": syscall.ENOSPC, "no descriptor": syscall.EMFILE, "broken": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMem()
			cfg := &commitlog.Config{}
			d, l := open(t, m, "/logs", cfg, nil)
			want := mustAppend(t, l, 3)
			m.Rule(func(op vfs.Op) error {
				if op.Kind == vfs.OpWrite {
					return &vfs.ShortWrite{Keep: 20, Err: fault}
				}
				return nil
			})
			var failed *commitlog.StorageError
			if _, err := l.Append(batch(1, 10, 0), 0); !errors.As(err, &failed) || !errors.Is(err, fault) {
				t.Fatalf("append: %v", err)
			}
			m.Rule(nil)
			if _, err := l.Append(batch(1, 10, 0), 0); err == nil {
				t.Fatal("an append behind a torn one went through")
			}
			if got := readAll(t, l, 0); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes are readable, want %d", len(got), len(want))
			}
			d.Sweep(10_000)
			_, err := l.Append(batch(1, 10, 0), 0)
			if full := vfs.Full(fault); full && err != nil || !full && (err == nil || d.Failed() == nil) {
				t.Fatalf("after a sweep: append %v, dir %v", err, d.Failed())
			}
			d.Abandon()
			d, l = open(t, m.Kill(), "/logs", cfg, nil)
			if got := readAll(t, l, 0); !bytes.HasPrefix(got, want) {
				t.Fatalf("%d bytes are back, want %d", len(got), len(want))
			}
			d.Abandon()
		})
	}
}

func TestEpochsAndTransactionsAreMadeAgainFromTheLog(t *testing.T) {
	m := vfs.NewMem()
	cfg := &commitlog.Config{}
	d, l := open(t, m, "/logs", cfg, nil)
	l.StartEpoch(3)
	appendTo(t, l, sequenced(7, 0, 2, true))
	l.StartEpoch(5)
	appendTo(t, l, sequenced(8, 0, 2, true))
	marker := record.Batch(record.AppendEndTxn(nil, record.Producer{ID: 7}, record.EndTxnMarker{}, 2000))
	if _, err := l.AppendFrom(marker, commitlog.Origin{Internal: true}, 0); err != nil {
		t.Fatal(err)
	}
	check := func(when string, l *commitlog.Log) {
		t.Helper()
		e, err := l.Epochs()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(e.List()); got != "[{3 0} {5 2}]" {
			t.Errorf("%s: epochs %s", when, got)
		}
		if epoch, end := e.EndOffsetFor(4, l.End()); epoch != 3 || end != 2 {
			t.Errorf("%s: epoch 4 ends as %d at %d, want 3 at 2", when, epoch, end)
		}
		for hw, want := range map[kafka.Offset]kafka.Offset{4: 0, 5: 2} {
			if hw == 4 && when == "later" {
				continue
			}
			if lso, err := l.FirstUnstable(hw); err != nil || lso != want {
				t.Errorf("%s: last stable offset below %d is %d, %v; want %d", when, hw, lso, err, want)
			}
		}
		aborted, err := l.Aborted(0, 2)
		if got := fmt.Sprint(aborted); err != nil || got != "[{7 0 4 2}]" {
			t.Errorf("%s: aborted %s, %v", when, got, err)
		}
	}
	for _, name := range []string{"at once", "later"} {
		check(name, l)
	}
	d.Abandon()
	c := m.Kill()
	c.Remove("/logs/orders-3/leader-epoch-checkpoint")
	d, l = open(t, c, "/logs", cfg, nil)
	check("after a kill", l)
	closeClean(t, d)
	d, l = open(t, c, "/logs", cfg, nil)
	check("later", l)
	d.Abandon()
}
