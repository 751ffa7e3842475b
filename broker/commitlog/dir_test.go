package commitlog_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/record"
	"varve/broker/vfs"
)

func TestAFolderOfAnotherClusterOrNodeOrInUseIsRefused(t *testing.T) {
	for name, meta := range map[string]string{
		"cluster":   "version=1\ncluster.id=other\nnode.id=1\n",
		"node":      "version=1\ncluster.id=c\nnode.id=2\n",
		"version 0": "version=0\ncluster.id=c\nbroker.id=2\n",
	} {
		m := vfs.NewMem()
		m.Mkdir("/logs", 0o755)
		vfs.WriteFile(m, "/logs/meta.properties", []byte(meta), true)
		var foreign *commitlog.ForeignError
		if _, err := commitlog.OpenDir(m, "/logs", commitlog.DirOptions{ClusterID: "c", NodeID: 1}, 0); !errors.As(err, &foreign) {
			t.Errorf("%s: %v, want a ForeignError", name, err)
		}
	}
	m := vfs.NewMem()
	d, _ := open(t, m, "/logs", &commitlog.Config{}, nil)
	if _, err := commitlog.OpenDir(m, "/logs", commitlog.DirOptions{ClusterID: "c", NodeID: 1}, 0); !errors.Is(err, fs.ErrExist) {
		t.Errorf("in use: %v", err)
	}
	closeClean(t, d)
	b, _ := vfs.ReadFile(m, "/logs/meta.properties")
	if s := string(b); !strings.Contains(s, "version=1\ncluster.id=c\nnode.id=1\ndirectory.id=") {
		t.Errorf("meta.properties holds %q", s)
	}
}

// A folder as a stopped Kafka leaves it: version 0, no summary of ours, checkpoints.
func TestAKafkasFolderIsAdopted(t *testing.T) {
	m := vfs.NewMem()
	d, l := open(t, m, "/logs", &commitlog.Config{SegmentBytes: 600}, nil)
	want := mustAppend(t, l, 12)
	if err := l.SetLogStart(4); err != nil {
		t.Fatal(err)
	}
	closeClean(t, d)
	for _, n := range strings.Fields(names(t, m, "/logs")) {
		if strings.HasPrefix(n, ".varve") {
			m.Remove("/logs/" + n)
		}
	}
	vfs.WriteFile(m, "/logs/meta.properties", []byte("#\n#Mon\ncluster.id=c\nversion=0\nbroker.id=1\n"), true)
	vfs.WriteFile(m, "/logs/.kafka_cleanshutdown", []byte(`{"version":0,"brokerEpoch":12}`), true)
	m.Mkdir("/logs/gone-0.0123456789abcdef0123456789abcdef-delete", 0o755)
	m.Mkdir("/logs/a.b-c-12.0123456789abcdef0123456789abcdef-stray", 0o755)
	var log bytes.Buffer
	d, l = open(t, m, "/logs", &commitlog.Config{}, &log)
	if l.End() != 24 || l.Start() != 4 || l.Flushed() != 24 {
		t.Errorf("end %d, start %d, flushed %d; want 24, 4, 24", l.End(), l.Start(), l.Flushed())
	}
	got := readAll(t, l, 4)
	if !bytes.HasSuffix(want, got) || len(got) == 0 {
		t.Errorf("%d bytes are back of %d", len(got), len(want))
	}
	kinds := ""
	for _, f := range d.Partitions() {
		kinds += fmt.Sprintf("%v:%d ", f.Partition, f.Kind)
	}
	if kinds != "a.b-c-12:2 gone-0:1 orders-3:0 " {
		t.Errorf("found %s", kinds)
	}
	d.Sweep(70_000)
	if s := names(t, m, "/logs"); strings.Contains(s, "-delete") || !strings.Contains(s, "-stray") {
		t.Errorf("after a sweep: %s", s)
	}
	d.Abandon()
}

func TestADeletedLogsFolderGoesAfterItsDelayAndAnotherMayTakeItsName(t *testing.T) {
	m := vfs.NewMem()
	d, l := open(t, m, "/logs", &commitlog.Config{}, nil)
	mustAppend(t, l, 2)
	run, _, err := l.Read(0, 1000, 4, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Delete(l, 1000); err != nil {
		t.Fatal(err)
	}
	if b := runBytes(t, run); len(b) == 0 {
		t.Error("a reader lost its run")
	}
	if _, err := l.Append(batch(1, 1, 0), 0); !errors.Is(err, commitlog.ErrClosed) {
		t.Errorf("append to a deleted log: %v", err)
	}
	if _, _, err := l.Read(0, 1, 1, true); !errors.Is(err, commitlog.ErrClosed) {
		t.Errorf("read of a deleted log: %v", err)
	}
	again, err := d.Create(orders, kafka.TopicID{9}, &commitlog.Config{})
	if err != nil || again.End() != 0 {
		t.Fatalf("made again: %v", err)
	}
	d.Sweep(60_000)
	if s := names(t, m, "/logs"); !strings.Contains(s, "-delete") {
		t.Errorf("too soon gone: %s", s)
	}
	d.Sweep(61_000)
	if s := names(t, m, "/logs"); strings.Contains(s, "-delete") {
		t.Errorf("still there: %s", s)
	}
	closeClean(t, d)
	d, err = commitlog.OpenDir(m, "/logs", commitlog.DirOptions{NodeID: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var other *commitlog.MismatchError
	if _, err := d.Open(orders, ordersID, &commitlog.Config{}); !errors.As(err, &other) {
		t.Errorf("opened as the older topic: %v", err)
	}
	d.Abandon()
}

func TestTheFilesAreKafkasByteForByte(t *testing.T) {
	m := vfs.NewMem()
	d, l := open(t, m, "/logs", &commitlog.Config{IndexInterval: 150}, nil)
	l.StartEpoch(2)
	for i := range 5 {
		appendTo(t, l, batch(2, 10, int64(0x1000-i*16))) // 99 bytes each; the first is the youngest
	}
	appendTo(t, l, sequenced(9, 4, 3, false))
	closeClean(t, d)
	for name, want := range map[string]string{
		// An entry names the batch before which more than 150 bytes lay since the last:
		// the third (offsets 4-5, at 198) and the fifth (8-9, at 396).
		"00000000000000000000.index": "00000005 000000c6 00000009 0000018c",
		// The highest timestamp so far, 0x1001, of the batch that ends at offset 1.
		"00000000000000000000.timeindex": "0000000000001001 00000001",
		"leader-epoch-checkpoint":        hex.EncodeToString([]byte("0\n1\n2 0\n")),
		"00000000000000000013.snapshot": "0001" + " 00000000 " + "00000001" + "0000000000000009" + "0000" + "00000006" + "000000000000000c" +
			"00000002" + "00000000000003ea" + "ffffffff" + "ffffffffffffffff",
	} {
		b, err := vfs.ReadFile(m, "/logs/orders-3/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".snapshot") {
			copy(b[2:6], make([]byte, 4)) // its checksum is the producer room's test
		}
		if got := hex.EncodeToString(b); got != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%s holds\n%s, want\n%s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"recovery-point-offset-checkpoint": "0\n1\norders 3 13\n",
		"log-start-offset-checkpoint":      "0\n1\norders 3 0\n",
		".kafka_cleanshutdown":             `{"version":0,"brokerEpoch":7}`,
	} {
		if b, err := vfs.ReadFile(m, "/logs/"+name); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v; want %q", name, b, err, want)
		}
	}
}

func TestReadersRunBesideAppendsRollsAndDeletion(t *testing.T) {
	dir := t.TempDir()
	d, l := open(t, vfs.OS{}, dir, &commitlog.Config{SegmentBytes: 20_000, IndexInterval: 500, WriteAhead: 4096, FlushMessages: 400}, nil)
	const n = 3000
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				v, end := l.View(), l.End()
				if v.LocalStart == end {
					continue
				}
				from := v.LocalStart + (end-v.LocalStart)/2
				run, info, err := l.Read(from, 3000, end, true)
				if errors.Is(err, commitlog.ErrOffsetOutOfRange) || errors.Is(err, commitlog.ErrNotLocal) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				b := runBytes(t, run)
				if len(b) == 0 {
					t.Errorf("nothing at %d below %d", from, end)
					return
				}
				first, _, err := record.Parse(b)
				if err != nil || !first.ValidCRC() || first.BaseOffset() > from || first.LastOffset() < from || info.First != first.BaseOffset() {
					t.Errorf("at %d: %v, %v", from, first, err)
					return
				}
			}
		})
	}
	wg.Go(func() { // a second writer
		for range n {
			if _, err := l.Append(batch(1, 50, 1000), 1000); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range n {
		if _, err := l.Append(batch(2, 50, 1000), 1000); err != nil {
			t.Fatal(err)
		}
		if i%300 == 0 {
			if _, _, err := l.DropLocal(l.End() - 500); err != nil {
				t.Error(err)
			}
			d.Sweep(int64(1000 + i))
		}
	}
	close(done)
	wg.Wait()
	if l.End() != 3*n {
		t.Errorf("end is %d, want %d", l.End(), 3*n)
	}
	readAll(t, l, l.View().LocalStart)
	closeClean(t, d)
}

func TestAnExportIsASegmentOfJustItsRange(t *testing.T) {
	m := vfs.NewMem()
	d, l := open(t, m, "/logs", &commitlog.Config{SegmentBytes: 500, IndexInterval: 100}, nil)
	l.StartEpoch(1)
	appendTo(t, l, sequenced(7, 0, 2, true))
	mustAppend(t, l, 10)
	marker := record.Batch(record.AppendEndTxn(nil, record.Producer{ID: 7}, record.EndTxnMarker{}, 2000))
	if _, err := l.AppendFrom(marker, commitlog.Origin{Internal: true}, 0); err != nil {
		t.Fatal(err)
	}
	e, err := l.Export(kafka.Range{Start: 0, End: 11}) // in the middle of [10,12)
	if err != nil {
		t.Fatal(err)
	}
	if e.Base != 0 || e.Range.End != 10 || len(e.Runs) < 2 {
		t.Errorf("export from %d of %v in %d runs, want 0, [0,10), several", e.Base, e.Range, len(e.Runs))
	}
	if got := fmt.Sprint(e.Aborted); got != "[{7 0 22 23}]" || len(e.TxnIndex) > 0 {
		t.Errorf("aborted %s, txn index %x; want the transaction whose marker comes later, and nothing", got, e.TxnIndex)
	}
	if _, _, err := l.DropLocal(20); err != nil { // the files are held
		t.Fatal(err)
	}
	c := vfs.NewMem()
	c.MkdirAll("/logs/orders-3", 0o755)
	var all []byte
	for _, r := range e.Runs {
		b := make([]byte, r.N)
		if _, err := r.File.ReadAt(b, r.Pos); err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	if int64(len(all)) != e.Size {
		t.Errorf("runs have %d bytes, export says %d", len(all), e.Size)
	}
	for suffix, b := range map[string][]byte{".log": all, ".index": e.OffsetIndex, ".timeindex": e.TimeIndex} {
		vfs.WriteFile(c, "/logs/orders-3/00000000000000000000"+suffix, b, true)
	}
	vfs.WriteFile(c, "/logs/.kafka_cleanshutdown", nil, true)
	d2, l2 := open(t, c, "/logs", &commitlog.Config{}, nil)
	if got := readAll(t, l2, 0); !bytes.Equal(got, all) || l2.End() != 10 {
		t.Errorf("as a segment it has %d bytes up to %d, want %d up to 10", len(got), l2.End(), len(all))
	}
	s := producer.New(producer.Params{})
	if err := s.UnmarshalSnapshot(e.Snapshot); err != nil || s.OpenTxns() != 1 {
		t.Errorf("snapshot: %v, %d open transactions, want 1", err, s.OpenTxns())
	}
	e.Release()
	d2.Abandon()
	d.Abandon()
}

func TestTruncationLeavesWholeBatchesBelowAndForgetsTheRest(t *testing.T) {
	for to := kafka.Offset(0); to <= 24; to++ {
		m := vfs.NewMem()
		cfg := &commitlog.Config{SegmentBytes: 500, IndexInterval: 100}
		d, l := open(t, m, "/logs", cfg, nil)
		l.StartEpoch(1)
		want := mustAppend(t, l, 6)
		l.StartEpoch(2)
		want = append(want, mustAppend(t, l, 6)...)
		if err := l.TruncateTo(to); err != nil {
			t.Fatal(err)
		}
		end := to / 2 * 2
		if got := readAll(t, l, 0); l.End() != end || !bytes.HasPrefix(want, got) {
			t.Fatalf("truncated to %d: ends at %d, want %d", to, l.End(), end)
		}
		e, _ := l.Epochs()
		if wantEpoch := map[bool]kafka.LeaderEpoch{true: 2, false: 1}[end > 12]; end > 0 && e.Latest() != wantEpoch {
			t.Fatalf("truncated to %d: epoch %d, want %d", to, e.Latest(), wantEpoch)
		}
		mustAppend(t, l, 3)
		got := readAll(t, l, 0)
		d.Abandon()
		d, l = open(t, m.Kill(), "/logs", cfg, nil)
		if again := readAll(t, l, 0); !bytes.Equal(got, again) {
			t.Fatalf("truncated to %d: %d bytes are back after a kill, want %d", to, len(again), len(got))
		}
		d.Abandon()
	}
}

func TestABatchWithRottenRecordsIsFoundByItsTimeAndHidesNoOther(t *testing.T) {
	d, l := open(t, vfs.NewMem(), "/logs", &commitlog.Config{}, nil)
	defer d.Abandon()
	appendTo(t, l, batch(3, 10, 1000))
	rotten := batch(3, 10, 2000)
	rotten[22] |= byte(record.CodecGzip)
	rotten.SetMaxTimestamp(2010, false) // and the checksum
	appendTo(t, l, rotten)
	appendTo(t, l, batch(3, 10, 3000))
	for ts, want := range map[int64]kafka.Offset{1001: 1, 1500: 3, 2010: 3, 2011: 6, 3001: 7} {
		if hit, found, err := l.OffsetForTime(ts, l.End()); err != nil || !found || hit.Offset != want {
			t.Errorf("time %d: offset %d, %v, %v; want %d", ts, hit.Offset, found, err, want)
		}
	}
}

func TestTimesAreFoundInOpenAndSealedSegments(t *testing.T) {
	m := vfs.NewMem()
	d, l := open(t, m, "/logs", &commitlog.Config{SegmentBytes: 900, IndexInterval: 100}, nil)
	for i := range 30 {
		appendTo(t, l, batch(3, 10, int64(1000+10*i))) // record 3i+j has time 1000+10i+j
	}
	for i := range 30 {
		for j := range 3 {
			hit, found, err := l.OffsetForTime(int64(1000+10*i+j), l.End())
			if want := kafka.Offset(3*i + j); err != nil || !found || hit.Offset != want {
				t.Fatalf("time %d: offset %d, %v, %v; want %d", 1000+10*i+j, hit.Offset, found, err, want)
			}
		}
	}
	if hit, found, _ := l.OffsetForTime(1005, l.End()); !found || hit.Offset != 3 || hit.Timestamp != 1010 {
		t.Errorf("between: %+v, want offset 3 at 1010", hit)
	}
	if _, found, _ := l.OffsetForTime(1010, 3); found {
		t.Error("found above the bound")
	}
	if hit, found, err := l.MaxTimestamp(l.End()); err != nil || !found || hit.Offset != 89 {
		t.Errorf("newest: %+v, %v, %v; want offset 89", hit, found, err)
	}
	d.Abandon()
}
