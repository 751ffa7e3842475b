package partition_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/vfs"
	"varve/tier/archive"
)

var (
	orders   = kafka.TopicPartition{Topic: "orders", Partition: 3}
	ordersID = kafka.TopicID{1, 2, 3}
	noon     = time.Date(1999, 12, 31, 12, 0, 0, 0, time.UTC) // before the clock of a bubble begins
)

// A rig is one partition on a disk in memory.
type rig struct {
	t testing.TB
	*partition.Partition
	disk      *vfs.Mem
	dir       *commitlog.Dir
	validator record.Validator
}

// settings are those of a topic without configs of its own.
func settings() *partition.Settings {
	return &partition.Settings{Policy: record.DefaultPolicy(orders), MinISR: 1}
}

// rest makes a partition that nobody leads.
func rest(t testing.TB, s *partition.Settings) *rig {
	t.Helper()
	r := &rig{t: t, disk: vfs.NewMem()}
	var err error
	if r.dir, err = commitlog.OpenDir(r.disk, "/logs", commitlog.DirOptions{ClusterID: "c", NodeID: 1}, 0); err != nil {
		t.Fatal(err)
	}
	log, err := r.dir.Create(orders, ordersID, &s.Log)
	if err != nil {
		t.Fatal(err)
	}
	r.Partition = partition.New(log, s)
	return r
}

// led makes a partition that this broker leads alone, in epoch 5.
func led(t testing.TB, s *partition.Settings) *rig {
	t.Helper()
	r := rest(t, s)
	r.lead(5, nil)
	return r
}

// lead begins a term in which only this broker is in sync.
func (r *rig) lead(epoch kafka.LeaderEpoch, tier *archive.Archive) {
	r.t.Helper()
	term := partition.Term{Epoch: epoch, Broker: 1, Replicas: []kafka.BrokerID{1, 2}, ISR: []kafka.BrokerID{1}}
	if err := r.Lead(noon, term, tier); err != nil {
		r.t.Fatal(err)
	}
}

// batch is a batch of n records of size bytes, a millisecond apart.
func batch(n, size int, at time.Time) []byte {
	var w record.Builder
	for i := range n {
		w.Add(record.Record{Timestamp: at.UnixMilli() + int64(i), Value: bytes.Repeat([]byte{'v'}, size)})
	}
	return w.AppendTo(nil)
}

// produce appends with acks, and returns what the log made of it.
func (r *rig) produce(acks int16, records []byte) (partition.Appended, error) {
	return r.Append(partition.Append{Records: records, Acks: acks, Version: 11, Validator: &r.validator, Now: noon})
}

// put appends and expects no refusal.
func (r *rig) put(records []byte) partition.Appended {
	r.t.Helper()
	done, err := r.produce(1, records)
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

// get reads and returns a copy of the bytes.
func (r *rig) get(q partition.Read) ([]byte, partition.ReadResult) {
	r.t.Helper()
	var res partition.ReadResult
	if q.Max == 0 {
		q.Max = 1 << 20
	}
	if err := r.Read(q, &res); err != nil {
		r.t.Fatalf("reading at %d: %v", q.From, err)
	}
	return runBytes(r.t, res.Run), res
}

// plain is a read by a consumer that knows no epochs.
func plain(from kafka.Offset) partition.Read {
	return partition.Read{From: from, Epoch: kafka.NoEpoch, LastEpoch: kafka.NoEpoch, MinOne: true}
}

// runBytes copies a run's bytes and releases it.
func runBytes(t testing.TB, run vfs.Run) []byte {
	t.Helper()
	defer run.Release()
	if run.File == nil {
		return bytes.Clone(run.Bytes[:run.N])
	}
	b := make([]byte, run.N)
	if n, err := run.File.ReadAt(b, run.Pos); n < run.N && err != io.EOF {
		t.Fatalf("%d bytes of %d: %v", n, run.N, err)
	}
	return b
}

// wantCode checks that a refusal has a code.
func wantCode(t testing.TB, what string, err error, want kafka.Code) {
	t.Helper()
	if got := codeOf(err); got != want {
		t.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

// wantOffset checks an offset.
func wantOffset(t testing.TB, what string, got, want kafka.Offset) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %d, want %d", what, got, want)
	}
}
