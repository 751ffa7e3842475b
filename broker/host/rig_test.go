package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/vfs"
)

// A rig is a host on a disk in memory that follows an image which the test changes.
type rig struct {
	t     testing.TB
	disk  *vfs.Mem
	dirs  []string
	host  *Host
	image *metadata.Image
	lines *lines
}

// lines is a log that several goroutines write.
type lines struct {
	mu struct {
		sync.Mutex
		bytes.Buffer
	}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.String()
}

func newRig(t testing.TB, dirs ...string) *rig {
	t.Helper()
	if dirs == nil {
		dirs = []string{"/logs"}
	}
	r := &rig{t: t, disk: vfs.NewMem(), dirs: dirs, image: metadata.Empty(), lines: &lines{}}
	r.open()
	return r
}

// open starts the host, on what the disk holds.
func (r *rig) open() {
	r.t.Helper()
	if err := r.tryOpen(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) tryOpen() (err error) {
	r.host, err = Open(Options{FS: r.disk, Dirs: r.dirs, ClusterID: "c", Broker: 1, BootID: "b", Files: 1000,
		Log: slog.New(slog.NewTextHandler(r.lines, nil)), CheckpointEvery: time.Minute, RetentionEvery: 5 * time.Minute,
		Settings: settings, Checkpointed: func() {}, Forget: func(kafka.TopicID) {}}, time.Now())
	return err
}

// settings know what these tests set: segments of a batch each, no zeros ahead.
func settings(_ string, own map[string]string) *partition.Settings {
	s := &partition.Settings{Policy: record.DefaultPolicy(kafka.TopicPartition{}), MinISR: 1, Tiered: own["remote.storage.enable"] == "true"}
	s.Log.SegmentBytes, s.Log.Remote = 500, s.Tiered
	if own["retention.ms"] != "" {
		fmt.Sscan(own["retention.ms"], &s.Log.RetentionMs)
	}
	return s
}

// change folds records and has the host follow.
func (r *rig) change(records ...metadata.Record) {
	r.t.Helper()
	old := r.image
	r.image = old.Apply(old.N()+1, records)
	r.host.Follow(old, r.image)
}

// restart opens the host anew and has it follow the present image.
func (r *rig) restart() {
	r.t.Helper()
	r.open()
	r.host.Follow(metadata.Empty(), r.image)
}

// here is a topic of n partitions whose only replica is this broker.
func here(name string, id byte, n int) []metadata.Record {
	out := []metadata.Record{metadata.NewTopic{ID: kafka.TopicID{id}, Name: name}}
	return append(out, more(id, 0, n))
}

// more is partitions from a number on.
func more(id byte, from, n int) metadata.Record {
	p := metadata.Partitions{Topic: kafka.TopicID{id}, Sets: []metadata.ReplicaSet{{Replicas: []kafka.BrokerID{1}}}}
	for i := range n {
		p.Slots = append(p.Slots, metadata.Slot{Partition: int32(from + i), ISR: 1})
	}
	return p
}

// config sets one key of a topic.
func config(topic, key, value string) metadata.Record {
	return metadata.Config{Type: metadata.TopicResource, Name: topic, Settings: []metadata.Setting{{Key: key, Value: &value}}}
}

// find is a partition that must be here.
func (r *rig) find(topic string, n int32) *partition.Partition {
	r.t.Helper()
	p, code := r.host.Find(topic, n)
	if code != kafka.None {
		r.t.Fatalf("%s-%d: %v\n%s", topic, n, code, r.lines)
	}
	return p
}

// wantCode checks what a partition is found as.
func (r *rig) wantCode(topic string, n int32, want kafka.Code) {
	r.t.Helper()
	if _, code := r.host.Find(topic, n); code != want {
		r.t.Errorf("%s-%d: %v, want %v", topic, n, code, want)
	}
}

// append puts a record of 400 bytes behind a partition's.
func (r *rig) append(topic string, n int32, at time.Time) error {
	r.t.Helper()
	var w record.Builder
	w.Add(record.Record{Timestamp: at.UnixMilli(), Value: make([]byte, 400)})
	var v record.Validator
	_, err := r.find(topic, n).Append(partition.Append{Records: w.AppendTo(nil), Acks: 1, Version: 11, Validator: &v, Now: at})
	return err
}

// folders are the names in a log dir that begin with a prefix.
func (r *rig) folders(dir, prefix string) (out []string) {
	r.t.Helper()
	entries, err := r.disk.ReadDir(dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out
}
