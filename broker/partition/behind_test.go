package partition_test

import (
	"bytes"
	"strings"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/vfs"
)

// newDisk gives the partition an empty log, as a disk that was replaced has.
func (r *tieredRig) newDisk() {
	r.t.Helper()
	r.dir.Abandon()
	r.disk = vfs.NewMem()
	r.onDisk((*commitlog.Dir).Create)
}

// restart opens the log as it was left by a machine that went down.
func (r *tieredRig) restart() {
	r.t.Helper()
	r.dir.Abandon()
	r.disk = r.disk.Kill()
	r.onDisk((*commitlog.Dir).Open)
}

func (r *tieredRig) onDisk(open func(*commitlog.Dir, kafka.TopicPartition, kafka.TopicID, *commitlog.Config) (*commitlog.Log, error)) {
	r.t.Helper()
	var err error
	if r.dir, err = commitlog.OpenDir(r.disk, "/logs", commitlog.DirOptions{ClusterID: "c", NodeID: 1}, 0); err != nil {
		r.t.Fatal(err)
	}
	s := tieredSettings()
	log, err := open(r.dir, orders, ordersID, &s.Log)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Partition = partition.New(log, s)
}

// A new disk: the log is empty, the tier holds what was there before.
func TestEmptyLogBeginsBehindTheTierBeforeItIsServed(t *testing.T) {
	inTier(t, func(r *tieredRig) {
		r.fill(8)
		was := r.Log().View().LocalStart
		r.Resign()
		r.newDisk()
		r.store.SetAway(true)
		r.lead(6, r.archive)
		if _, err := r.produce(1, batch(1, 10, noon)); codeOf(err) != kafka.NotLeaderOrFollower {
			t.Fatalf("an append before the tier has told: %v, want NOT_LEADER_OR_FOLLOWER", err)
		}
		var res partition.ReadResult
		if err := r.Read(plain(4), &res); codeOf(err) != kafka.ReplicaNotAvailable {
			t.Fatalf("a read before the tier has told: %v, want REPLICA_NOT_AVAILABLE", err)
		}
		if !r.Shut() {
			t.Error("it is not shut before the tier has told")
		}
		r.store.SetAway(false)
		r.open()
		if r.Shut() {
			t.Error("it is shut when the tier has told")
		}
		if done := r.put(batch(1, 10, noon)); done.Base != was {
			t.Errorf("the first append is at %d, want %d: behind the tier", done.Base, was)
		}
		if end, err := r.EndOffsetFor(kafka.NoEpoch, 5); err != nil || end.End != was {
			t.Errorf("epoch 5 ends at %+v, %v, want %d", end, err, was)
		}
		b := newBell()
		got, _ := r.await(plain(0), fresh(1, b), b)
		if len(got) == 0 || !bytes.HasPrefix(r.wrote, got) {
			t.Errorf("%d bytes at the start, want what was there before", len(got))
		}
	})
}

// Records that the tier's history does not have are set aside, never overwritten.
func TestDivergentTailIsSetAside(t *testing.T) {
	inTier(t, func(r *tieredRig) {
		r.fill(8)
		was := r.Log().View().LocalStart
		r.Resign()
		r.newDisk()
		r.lead(7, nil)
		r.put(batch(1, 10, noon))
		r.Resign()
		r.restart()
		r.lead(8, r.archive)
		r.open()
		if done := r.put(batch(1, 10, noon)); done.Base != was {
			t.Errorf("the first append is at %d, want %d", done.Base, was)
		}
		names, err := r.disk.ReadDir("/logs")
		if err != nil {
			t.Fatal(err)
		}
		var strays int
		for _, n := range names {
			if strings.HasSuffix(n.Name(), "-stray") {
				strays++
			}
		}
		if strays != 1 {
			t.Errorf("%d folders are set aside in %v, want 1", strays, names)
		}
		r.until("the tier goes on", func() bool { return r.Remote().Lag().Segments == 0 })
	})
}
