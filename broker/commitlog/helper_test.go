package commitlog_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

var orders = kafka.TopicPartition{Topic: "orders", Partition: 3}

var ordersID = kafka.TopicID{1, 2, 3}

// open opens a Dir on a file system, and its one log, which is made if need be.
func open(t testing.TB, fsys vfs.FS, dir string, cfg *commitlog.Config, log io.Writer) (*commitlog.Dir, *commitlog.Log) {
	t.Helper()
	opt := commitlog.DirOptions{ClusterID: "c", NodeID: 1, BootID: "b"}
	if log != nil {
		opt.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	d, err := commitlog.OpenDir(fsys, dir, opt, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range d.Partitions() {
		if f.Kind == commitlog.Live && f.Partition == orders {
			l, err := d.Open(orders, ordersID, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return d, l
		}
	}
	l, err := d.Create(orders, ordersID, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d, l
}

// batch builds a batch of n records with values of size bytes.
func batch(n, size int, ts int64) record.Batch {
	var w record.Builder
	for i := range n {
		w.Add(record.Record{Timestamp: ts + int64(i), Key: fmt.Appendf(nil, "k%d", i), Value: bytes.Repeat([]byte{'v'}, size)})
	}
	return record.Batch(w.AppendTo(nil))
}

// sequenced is a batch of an idempotent producer.
func sequenced(pid kafka.ProducerID, seq int32, n int, txn bool) record.Batch {
	w := record.Builder{Producer: &record.Producer{ID: pid, Epoch: 0, Sequence: seq}, Transactional: txn}
	for i := range n {
		w.Add(record.Record{Timestamp: int64(1000 + i), Value: []byte("value")})
	}
	return record.Batch(w.AppendTo(nil))
}

func appendTo(t testing.TB, l *commitlog.Log, b record.Batch) commitlog.Appended {
	t.Helper()
	a, err := l.Append(b, 5000)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func closeClean(t testing.TB, d *commitlog.Dir) {
	t.Helper()
	if err := d.CloseClean(context.Background(), 7); err != nil {
		t.Fatal(err)
	}
}

// runBytes reads a run and releases it.
func runBytes(t testing.TB, r vfs.Run) []byte {
	t.Helper()
	defer r.Release()
	b := make([]byte, r.N)
	if r.N == 0 {
		return b
	}
	if _, err := r.File.ReadAt(b, r.Pos); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return b
}

// readAll reads the log from an offset to its end and checks that batches follow one
// another; it returns their bytes.
func readAll(t testing.TB, l *commitlog.Log, from kafka.Offset) []byte {
	t.Helper()
	var all []byte
	next := from
	for next < l.End() {
		run, info, err := l.Read(next, 700, l.End(), true)
		if err != nil {
			t.Fatalf("reading at %d: %v", next, err)
		}
		if run.N == 0 {
			t.Fatalf("nothing at %d of %d", next, l.End())
		}
		b := runBytes(t, run)
		all = append(all, b...)
		for len(b) > 0 {
			one, rest, err := record.Parse(b)
			if err != nil {
				t.Fatalf("run at %d: %v", next, err)
			}
			if !one.ValidCRC() || one.BaseOffset() > next || one.NextOffset() <= next {
				t.Fatalf("run at %d holds %v", next, one)
			}
			next, b = one.NextOffset(), rest
		}
		if info.Next != next {
			t.Fatalf("run ends at %d, says %d", next, info.Next)
		}
	}
	return all
}
