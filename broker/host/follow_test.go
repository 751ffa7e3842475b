package host

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/vfs"
	"varve/tier/archive"
	"varve/tier/cache"
	"varve/tier/faulty"
)

func TestTopicsAreMadeAndGrown(t *testing.T) {
	r := newRig(t)
	r.change(here("orders", 1, 2)...)
	first := r.find("orders", 1)
	r.wantCode("orders", 2, kafka.UnknownTopicOrPartition)
	r.wantCode("orders", -1, kafka.UnknownTopicOrPartition)
	r.wantCode("nothing", 0, kafka.UnknownTopicOrPartition)
	r.change(more(1, 2, 3))
	if r.find("orders", 1) != first {
		t.Error("a partition that was there became another when the topic grew")
	}
	if err := r.append("orders", 4, time.Now()); err != nil {
		t.Errorf("appending to a partition that came later: %v", err)
	}
	if n := len(r.host.Partitions()); n != 5 {
		t.Errorf("%d partitions, want 5", n)
	}
	if p, code := r.host.FindID(kafka.TopicID{1}, 1); p != first || code != kafka.None {
		t.Errorf("by id: %v, %v", p, code)
	}
	if _, code := r.host.FindID(kafka.TopicID{9}, 0); code != kafka.UnknownTopicID {
		t.Errorf("by an unknown id: %v", code)
	}
}

func TestADeletedTopicLeavesByItself(t *testing.T) {
	r := newRig(t)
	r.change(here("orders", 1, 1)...)
	p := r.find("orders", 0)
	r.change(metadata.RemoveTopic{ID: kafka.TopicID{1}})
	r.wantCode("orders", 0, kafka.UnknownTopicOrPartition)
	if _, leads := p.Epoch(); leads {
		t.Error("this broker leads a partition that is deleted")
	}
	if got := r.folders("/logs", "orders-0"); len(got) != 1 || !strings.HasSuffix(got[0], "-delete") {
		t.Errorf("folders: %v", got)
	}
	r.host.tick(time.Now().Add(2 * time.Minute))
	if got := r.folders("/logs", "orders-0"); got != nil {
		t.Errorf("folders after file.delete.delay.ms: %v", got)
	}
}

func TestATopicMadeAgainIsAnother(t *testing.T) {
	r := newRig(t)
	r.change(here("orders", 1, 1)...)
	if err := r.append("orders", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.change(append([]metadata.Record{metadata.RemoveTopic{ID: kafka.TopicID{1}}}, here("orders", 2, 1)...)...)
	p := r.find("orders", 0)
	if p.TopicID() != (kafka.TopicID{2}) || p.Log().End() != 0 {
		t.Errorf("id %v, log end %d, want a new log", p.TopicID(), p.Log().End())
	}
}

func TestTheLogOfAnOlderTopicIsSetAside(t *testing.T) {
	r := newRig(t)
	r.change(here("orders", 1, 1)...)
	if err := r.append("orders", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.host.Abandon()
	r.image = metadata.Empty().Apply(5, here("orders", 2, 1)) // deleted and made again meanwhile
	r.restart()
	if p := r.find("orders", 0); p.Log().End() != 0 {
		t.Errorf("the new topic's log ends at %d", p.Log().End())
	}
	got := r.folders("/logs", "orders-0")
	if len(got) != 2 || !strings.HasSuffix(got[1], "-stray") {
		t.Errorf("folders: %v, want the new one and the old one aside", got)
	}
}

func TestARestartKeepsRecordsAndLeads(t *testing.T) {
	r := newRig(t, "/a", "/b")
	r.change(here("orders", 1, 4)...)
	for n := range int32(4) {
		if err := r.append("orders", n, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := len(r.folders("/a", "orders")), len(r.folders("/b", "orders")); a != 2 || b != 2 {
		t.Errorf("%d partitions in one folder, %d in the other", a, b)
	}
	if err := r.host.Close(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	r.restart()
	for n := range int32(4) {
		if p := r.find("orders", n); p.Log().End() != 1 || p.HighWatermark() != 1 {
			t.Errorf("orders-%d ends at %d, high watermark %d", n, p.Log().End(), p.HighWatermark())
		}
	}
	if r.host.MayHaveLostEnd() || r.host.ClusterID() != "c" {
		t.Errorf("after a clean stop: may have lost its end: %v, cluster %q", r.host.MayHaveLostEnd(), r.host.ClusterID())
	}
}

func TestAWrongImageIsRefused(t *testing.T) {
	r := newRig(t)
	r.change(here("orders", 1, 4)...)
	r.host.Abandon()
	r.open()
	if err := r.host.CheckStrays(r.image, false); err != nil {
		t.Errorf("the right image: %v", err)
	}
	half := metadata.Empty().Apply(1, here("orders", 1, 2))
	if err := r.host.CheckStrays(half, false); err != nil {
		t.Errorf("half of the partitions: %v", err)
	}
	err := r.host.CheckStrays(metadata.Empty(), false)
	if err == nil || !strings.Contains(err.Error(), "4 of the 4") || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("an empty image: %v", err)
	}
	if err := r.host.CheckStrays(metadata.Empty(), true); err != nil {
		t.Errorf("an image whose history the folders have seen: %v", err)
	}
}

func TestAForeignFolderStopsTheStart(t *testing.T) {
	r := newRig(t)
	r.host.Abandon()
	r.dirs = []string{"/new", "/logs"}
	if err := vfs.WriteFile(r.disk, "/logs/meta.properties", []byte("version=0\nbroker.id=1\ncluster.id=another\n"), true); err != nil {
		t.Fatal(err)
	}
	if err := r.tryOpen(); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("opened beside a folder of another cluster: %v", err)
	}
}

func TestAFailedFolderLeavesTheOthersServing(t *testing.T) {
	r := newRig(t, "/a", "/b")
	r.change(here("orders", 1, 2)...)
	r.disk.Rule(func(op vfs.Op) error {
		if op.Changes() && strings.HasPrefix(strings.TrimPrefix(op.Name, "/"), "a/") {
			return errors.New("disk on fire")
		}
		return nil
	})
	failed := 0
	for n := range int32(2) {
		if r.append("orders", n, time.Now()) != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d of 2 partitions take no records, want 1", failed)
	}
	r.change(here("later", 2, 2)...)
	for n := range int32(2) {
		if err := r.append("later", n, time.Now()); err != nil {
			t.Errorf("a partition made after the failure: %v", err)
		}
	}
	if r.host.Health() == nil {
		t.Error("healthy with a folder out of service")
	}
}

func TestALeadershipThatGoesIsResigned(t *testing.T) {
	r := newRig(t)
	r.change(metadata.NewTopic{ID: kafka.TopicID{1}, Name: "orders"}, metadata.Partitions{Topic: kafka.TopicID{1},
		Sets: []metadata.ReplicaSet{{Replicas: []kafka.BrokerID{1, 2}}}, Slots: []metadata.Slot{{ISR: 3}}})
	p := r.find("orders", 0)
	if epoch, leads := p.Epoch(); !leads || epoch != 0 {
		t.Fatalf("leads: %v, in epoch %d", leads, epoch)
	}
	to := func(leader int8, epoch kafka.LeaderEpoch) {
		r.change(metadata.PartitionChange{Topic: kafka.TopicID{1}, Slots: []metadata.Slot{{Set: metadata.NoSet, ISR: 3, Leader: leader,
			LastLeader: -1, LeaderEpoch: epoch, PartitionEpoch: kafka.PartitionEpoch(epoch)}}})
	}
	to(1, 1)
	if _, leads := p.Epoch(); leads {
		t.Error("leads still when another does")
	}
	to(0, 2)
	if epoch, leads := p.Epoch(); !leads || epoch != 2 {
		t.Errorf("leads: %v, in epoch %d, want 2", leads, epoch)
	}
}

func TestTheTierComesAndGoesWithTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chunks, err := cache.Open(cache.Config{FS: vfs.NewMem(), Dir: "/cache"})
		if err != nil {
			t.Fatal(err)
		}
		defer chunks.Close()
		store := faulty.New()
		a := archive.New(archive.Options{Store: store, Cache: chunks, Broker: 1, Log: slog.New(slog.DiscardHandler)})
		defer a.Close()
		r := newRig(t)
		gone := make(chan kafka.TopicID, 1)
		r.host.opt.Forget = func(id kafka.TopicID) { gone <- id }
		r.host.Attach(a)
		r.change(here("orders", 1, 1)...)
		if r.find("orders", 0).Remote() != nil {
			t.Error("tiered without remote.storage.enable")
		}
		r.change(config("orders", "remote.storage.enable", "true"))
		if r.find("orders", 0).Remote() == nil {
			t.Error("not tiered with remote.storage.enable=true")
		}
		r.change(config("orders", "remote.storage.enable", "false"))
		if r.find("orders", 0).Remote() != nil {
			t.Error("tiered after remote.storage.enable=false")
		}
		r.change(metadata.RemoveTopic{ID: kafka.TopicID{1}, Tiered: true})
		if id := <-gone; id != (kafka.TopicID{1}) {
			t.Errorf("forgotten: %v", id)
		}
	})
}

func TestAThousandPartitionsOpenTogether(t *testing.T) {
	r := newRig(t, "/a", "/b")
	r.change(here("orders", 1, 1000)...)
	if err := r.host.Close(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	r.restart()
	if n := len(r.host.Partitions()); n != 1000 {
		t.Errorf("%d partitions, want 1000\n%s", n, r.lines)
	}
	for _, n := range []int32{0, 499, 999} {
		if err := r.append("orders", n, time.Now()); err != nil {
			t.Errorf("orders-%d: %v", n, err)
		}
	}
}

// BenchmarkStart asks how long 1 000 partitions take from a clean stop to leading.
func BenchmarkStart(b *testing.B) {
	r := newRig(b)
	r.change(here("orders", 1, 1000)...)
	for b.Loop() {
		b.StopTimer()
		if err := r.host.Close(context.Background(), 1); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		r.restart()
	}
}

// BenchmarkFind asks what it costs to find a partition by name.
func BenchmarkFind(b *testing.B) {
	r := newRig(b)
	r.change(here("orders", 1, 100)...)
	b.ReportAllocs()
	for b.Loop() {
		r.find("orders", 42)
	}
}
