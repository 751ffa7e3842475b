package host

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/vfs"
)

var ordersID = kafka.TopicID{1}

// started is a host of broker 1 with two log dirs, on a file system.
func started(t *testing.T, fsys vfs.FS) *Host {
	t.Helper()
	return startedIn(t, fsys, "boot")
}

// startedIn is started in a boot of the machine.
func startedIn(t *testing.T, fsys vfs.FS, boot string) *Host {
	t.Helper()
	h, err := Open(Options{FS: fsys, Dirs: []string{"/a", "/b"}, ClusterID: "c", Broker: 1, BootID: boot, Files: 16,
		Log: slog.New(slog.DiscardHandler), Checkpointed: func() {}, CheckpointEvery: time.Hour, RetentionEvery: time.Hour,
		Settings: func(string, map[string]string) *partition.Settings {
			return &partition.Settings{Policy: record.DefaultPolicy(kafka.TopicPartition{}), MinISR: 1}
		}}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// orders is an image in which broker 1 leads n partitions of the topic orders.
func orders(n int32) *metadata.Image {
	parts := metadata.Partitions{Topic: ordersID, Sets: []metadata.ReplicaSet{{Replicas: []kafka.BrokerID{1}}}}
	for p := range n {
		parts.Slots = append(parts.Slots, metadata.Slot{Partition: p, ISR: 1, LastLeader: -1})
	}
	return metadata.Empty().Apply(1, []metadata.Record{metadata.BrokerRegistration{ID: 1, Epoch: 1}, metadata.NewTopic{ID: ordersID, Name: "orders"}, parts})
}

// codes are what the partitions of orders answer.
type codes []kafka.Code

func (x codes) of(h *Host) codes {
	for n := range x {
		_, x[n] = h.Find("orders", int32(n))
	}
	return x
}

// An empty log in the place of one whose disk is away would tell consumers that its
// records are gone.
func TestAPartitionOfAFailedFolderIsNotMadeAnewInAnother(t *testing.T) {
	m := vfs.NewMem()
	h := started(t, m)
	h.Follow(metadata.Empty(), orders(2))
	h.Abandon()
	m = m.Kill()
	m.Rule(func(op vfs.Op) error {
		if strings.HasPrefix(op.Name, "/a") || strings.HasPrefix(op.Name, "a") {
			return syscall.EIO
		}
		return nil
	})
	h = started(t, m)
	defer h.Abandon()
	h.Follow(metadata.Empty(), orders(2))
	got := codes{0, 0}.of(h)
	if got[0] == got[1] || got[0] != kafka.KafkaStorageError && got[1] != kafka.KafkaStorageError {
		t.Fatalf("the partitions answer %v; one is to be served and one is KAFKA_STORAGE_ERROR", got)
	}
	if err := h.Health(); err == nil || !strings.Contains(err.Error(), "/a") {
		t.Fatalf("health is %v, want the folder that failed", err)
	}
	h.Follow(orders(2), orders(3)) // a partition that is new has a place
	if _, code := h.Find("orders", 2); code != kafka.None {
		t.Fatalf("a new partition answers %v", code)
	}
}

func TestAPartitionThatFoundNoSpaceComesWhenThereIsSome(t *testing.T) {
	m := vfs.NewMem()
	h := started(t, m)
	defer h.Abandon()
	h.Follow(metadata.Empty(), metadata.Empty())
	m.SetFree(0)
	h.Follow(metadata.Empty(), orders(1))
	if got := (codes{0}).of(h); got[0] != kafka.KafkaStorageError {
		t.Fatalf("on a full disk it answers %v, want KAFKA_STORAGE_ERROR", got[0])
	}
	m.SetFree(1 << 20)
	h.reopen()
	p, code := h.Find("orders", 0)
	if code != kafka.None {
		t.Fatalf("with space again it answers %v", code)
	}
	if _, leads := p.Epoch(); !leads {
		t.Fatal("it is there and is not led")
	}
}

// A10, and a topic that was deleted just before a kill.
func TestStraysAreRefusedUnlessThisHistoryWasFollowedBefore(t *testing.T) {
	m := vfs.NewMem()
	h := started(t, m)
	h.Follow(metadata.Empty(), orders(2))
	h.Abandon()
	h = started(t, m.Kill())
	defer h.Abandon()
	if err := h.CheckStrays(metadata.Empty(), false); err == nil || !strings.Contains(err.Error(), "2 of the 2 partitions") {
		t.Fatalf("an unknown history without the topic: %v, want a refusal", err)
	}
	if err := h.CheckStrays(metadata.Empty(), true); err != nil {
		t.Fatalf("the history that was followed before says that the topic is gone: %v", err)
	}
}

// A7: whoever is killed before the controller knows leaves it to the next to say so.
func TestALostEndIsToldByEveryStartUntilOneIsServed(t *testing.T) {
	m := vfs.NewMem()
	h := started(t, m)
	h.Follow(metadata.Empty(), orders(1))
	h.Abandon()
	boot := func() *Host {
		m = m.Kill()
		h := startedIn(t, m, "another boot")
		if h.MayHaveLostEnd() {
			h.Follow(metadata.Empty(), orders(1))
		}
		return h
	}
	for range 2 {
		if h = boot(); !h.MayHaveLostEnd() {
			t.Fatal("nobody was told yet, and it says that nothing is lost")
		}
		h.Abandon()
	}
	h = boot()
	h.settleEnds()
	h.Abandon()
	if h = boot(); h.MayHaveLostEnd() {
		t.Error("a kill counts as a power cut, though the boot is the same")
	}
	h.Abandon()
}

func TestAPartitionThatCannotBeLedIsToldAndComesWhenItCan(t *testing.T) {
	r := newRig(t)
	r.change(here("orders", 1, 1)...)
	if err := r.append("orders", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := r.host.Close(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	r.disk.Rule(func(op vfs.Op) error {
		if strings.HasSuffix(op.Name, "leader-epoch-checkpoint") {
			return syscall.EIO
		}
		return nil
	})
	r.restart()
	defer r.host.Abandon()
	if _, code := r.host.Find("orders", 0); code != kafka.KafkaStorageError {
		t.Fatalf("without its epochs it answers %v, want KAFKA_STORAGE_ERROR", code)
	}
	if err := r.host.Health(); err == nil || !strings.Contains(r.lines.String(), "beginning to lead") {
		t.Errorf("health is %v, the log %q: want both to tell", err, r.lines)
	}
	r.disk.Rule(nil)
	r.host.reopen()
	p, code := r.host.Find("orders", 0)
	if code != kafka.None {
		t.Fatalf("with its epochs again it answers %v", code)
	}
	if _, leads := p.Epoch(); !leads {
		t.Error("it is there and is not led")
	}
}
