package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/vfs"
	"varve/ha/controller"
	"varve/ha/journal"
	"varve/ha/journal/filejournal"
)

// open opens the journal of fsys and a runner on it that leads.
func open(t *testing.T, fsys vfs.FS, o Options) (*Runner, *filejournal.Journal) {
	t.Helper()
	j, err := filejournal.Open(fsys, "/meta", filejournal.Options{FileBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	var ids atomic.Uint64
	o.Who, o.ClusterID = "test", "cluster"
	o.Controller.NewID = func() (id kafka.TopicID) {
		n := ids.Add(1)
		id[0], id[1], id[15] = byte(n), byte(n>>8), 1
		return id
	}
	r, err := Start(t.Context(), j, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); j.Close() })
	if err := r.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, j
}

func register(t *testing.T, r *Runner) kafka.BrokerEpoch {
	t.Helper()
	a, err := r.Do(t.Context(), controller.RegisterBroker{ID: 1, Incarnation: [16]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	b := a.(controller.BrokerRegistered)
	if b.Err != nil {
		t.Fatal(b.Err)
	}
	return b.Epoch
}

func create(ctx context.Context, r *Runner, name string, partitions int32) error {
	a, err := r.Do(ctx, controller.CreateTopics{Topics: []controller.NewTopic{{Name: name, Partitions: partitions, ReplicationFactor: 1}}})
	if err != nil {
		return err
	}
	if e := a.(controller.TopicsCreated).Topics[0].Err; e != nil {
		return e
	}
	return nil
}

// TestWatchersSeeATopicBeforeItsCreatorIsAnswered is what lets a client produce right
// after CreateTopics.
func TestWatchersSeeATopicBeforeItsCreatorIsAnswered(t *testing.T) {
	r, _ := open(t, vfs.NewMem(), Options{})
	register(t, r)
	var seen sync.Map
	r.Watch(func(old, new *metadata.Image) {
		for _, is := range metadata.Changed(old, new) {
			if is != nil {
				seen.Store(is.Name, true)
			}
		}
	})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := fmt.Sprint("t", i)
			if err := create(t.Context(), r, name, 3); err != nil {
				t.Error(err)
			}
			if _, ok := seen.Load(name); !ok {
				t.Errorf("%s was answered before its watcher saw it", name)
			}
		})
	}
	all.Wait()
	if err := create(t.Context(), r, "t7", 1); err == nil || err.(*kafka.Error).Code != kafka.TopicAlreadyExists {
		t.Errorf("creating t7 again: %v", err)
	}
	if edits := r.Position().N; edits > 53 {
		t.Errorf("50 topics took %d edits", edits)
	}
}

// TestARestartFindsEverythingAndRaisesEpochs kills the process at any of its edits.
func TestARestartFindsEverythingAndRaisesEpochs(t *testing.T) {
	mem := vfs.NewMem()
	r, _ := open(t, mem, Options{SnapshotEdits: 10})
	register(t, r)
	for i := range 25 {
		if err := create(t.Context(), r, fmt.Sprint("t", i), 2); err != nil {
			t.Fatal(err)
		}
	}
	for start := range 3 {
		mem = mem.PowerCut(nil)
		r, _ := open(t, mem, Options{SnapshotEdits: 10})
		a, err := r.Do(t.Context(), controller.RegisterBroker{ID: 1, Incarnation: [16]byte{2 + byte(start)}})
		if err != nil || a.(controller.BrokerRegistered).Err != nil {
			t.Fatal(a, err)
		}
		if n := r.Image().TopicCount(); n != 25 {
			t.Fatalf("%d topics after a power cut, want 25", n)
		}
		p, _ := r.Image().Partition(kafka.TopicPartition{Topic: "t3", Partition: 1})
		if p.LeaderEpoch != kafka.LeaderEpoch(start+1) || p.Leader != 1 {
			t.Fatalf("start %d: leader %d epoch %d, want 1 and %d (A5)", start, p.Leader, p.LeaderEpoch, start+1)
		}
	}
}

// TestALostTermAnswersUnknown takes the journal away from under a runner (A2, A3, A4).
func TestALostTermAnswersUnknown(t *testing.T) {
	lost := make(chan error, 1)
	r, j := open(t, vfs.NewMem(), Options{SteppedDown: func(err error) { lost <- err }})
	register(t, r)
	if err := create(t.Context(), r, "kept", 1); err != nil {
		t.Fatal(err)
	}
	term, err := j.Take(t.Context(), "another")
	if err != nil {
		t.Fatal(err)
	}
	// "kept" is there already: no edit is needed, and yet it must not be said (A3).
	var refusal *kafka.Error
	if err := create(t.Context(), r, "kept", 1); !errors.As(err, &refusal) || refusal.Code != kafka.NotController {
		t.Fatalf("a deposed controller answers %v, want NOT_CONTROLLER", err)
	}
	if err := <-lost; !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("stepped down for %v", err)
	}
	if r.Leading() {
		t.Fatal("still leading")
	}
	// It follows the other's edits.
	e, err := term.Append(t.Context(), journal.Pack(metadata.Encode(nil, []metadata.Record{metadata.Feature{Name: "f", Level: 3}})))
	if err != nil {
		t.Fatal(err)
	}
	if r.reachEnd(t.Context()); r.Position().N != e.N || r.Image().Feature("f") != 3 {
		t.Fatalf("at edit %d without the other's, want %d", r.Position().N, e.N)
	}
	term.Resign()
}

// TestAFailedSyncEndsTheTerm: what the disk holds is unknown, so nobody is told (H1).
func TestAFailedSyncEndsTheTerm(t *testing.T) {
	mem := vfs.NewMem()
	r, _ := open(t, mem, Options{})
	register(t, r)
	broken := errors.New("input/output error")
	mem.Rule(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			return broken
		}
		return nil
	})
	var refusal *kafka.Error
	if err := create(t.Context(), r, "t", 1); !errors.As(err, &refusal) || refusal.Code != kafka.NotController {
		t.Fatalf("answered %v", err)
	}
	mem.Rule(nil)
	if err := r.Lead(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("leads again after a failed sync: %v", err)
	}
}

// TestALargeTopicComesWhole creates more partitions than an edit holds (A15).
func TestALargeTopicComesWhole(t *testing.T) {
	r, _ := open(t, vfs.NewMem(), Options{Controller: controller.Config{MaxPartitions: 200_000}})
	register(t, r)
	var counts []int32
	r.Watch(func(_, new *metadata.Image) {
		if topic, ok := new.Topic("large"); ok {
			counts = append(counts, topic.Count())
		}
	})
	before := r.Position().N
	if err := create(t.Context(), r, "large", 100_000); err != nil {
		t.Fatal(err)
	}
	if edits := r.Position().N - before; edits < 2 {
		t.Errorf("took %d edit, want a frame of several", edits)
	}
	for _, n := range counts {
		if n != 100_000 {
			t.Errorf("a watcher saw %d of 100000 partitions", n)
		}
	}
}

// TestAnotherHistoryIsRefused is A11.
func TestAnotherHistoryIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	r, j := open(t, mem, Options{})
	register(t, r)
	at := r.Position()
	r.Close()
	j.Close()
	for name, seen := range map[string]Position{
		"an edit that is not there":   {at.N + 1, at.Hash},
		"another edit at that number": {at.N, [32]byte{1}},
	} {
		j, err := filejournal.Open(mem, "/meta", filejournal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), j, Options{Seen: seen}); err == nil {
			t.Errorf("%s: the log is followed", name)
		}
		j.Close()
	}
}

// BenchmarkCreateTopics asks what group commit gains: topics made by 16 clients.
func BenchmarkCreateTopics(b *testing.B) {
	dir := b.TempDir()
	j, err := filejournal.Open(vfs.OS{}, dir+"/meta", filejournal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	var ids atomic.Uint64
	r, err := Start(b.Context(), j, Options{ClusterID: "c", Controller: controller.Config{NewID: func() (id kafka.TopicID) {
		n := ids.Add(1)
		id[0], id[1], id[2] = byte(n), byte(n>>8), byte(n>>16)
		id[15] = 1
		return id
	}}})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	if err := r.Lead(b.Context()); err != nil {
		b.Fatal(err)
	}
	r.Do(b.Context(), controller.RegisterBroker{ID: 1})
	b.ReportAllocs()
	b.SetParallelism(8)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := create(b.Context(), r, fmt.Sprint("t", n.Add(1)), 1); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(n.Load())/float64(r.Position().N), "topics/edit")
}
