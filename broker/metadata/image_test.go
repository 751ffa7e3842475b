package metadata

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"varve/broker/kafka"
)

func id(n int) (id kafka.TopicID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func text(s string) *string { return &s }

// oneOfEach is every class of record with all its fields in use.
func oneOfEach() []Record {
	set := ReplicaSet{Replicas: []kafka.BrokerID{1, 2, 300}, Adding: []kafka.BrokerID{300}, Removing: []kafka.BrokerID{1}}
	slot := Slot{Partition: 0, Set: 0, ISR: 5, ELR: 2, Leader: 2, LastLeader: -1, LeaderEpoch: 7, PartitionEpoch: 900, Recovering: true}
	changed := Slot{Partition: 3, Set: NoSet, ISR: 3, Leader: -1, LastLeader: 1, LeaderEpoch: 8, PartitionEpoch: 901}
	return []Record{
		Cluster{"4L6g3nShT-eMCtK--X86sw"},
		Feature{"metadata.version", 29},
		ControllerChange{3, "controller-1"},
		BrokerRegistration{
			ID: 1, Epoch: 77, Incarnation: id(1), Folder: id(2), Rack: "a", Unclean: true,
			Listeners: []Listener{{"PLAINTEXT", "host", 9092, 0}, {"SSL", "::1", 9093, 1}},
		},
		BrokerFence{1, 77},
		Unregister{1},
		NewTopic{id(9), "orders"},
		Partitions{id(9), []ReplicaSet{set}, []Slot{slot}},
		PartitionChange{id(9), nil, []Slot{changed}},
		Config{TopicResource, "orders", []Setting{{"cleanup.policy", text("compact")}, {"retention.ms", nil}}},
		ProducerIDBlock{1, 77, 1000},
		RemoveTopic{id(9), true},
		DeletedTopic{id(10), "gone", 12},
		TopicGone{id(9)},
		Frame{5, FrameMore},
	}
}

// TestDecodeGivesBackWhatEncodeWrote covers each class and pins its bytes.
func TestDecodeGivesBackWhatEncodeWrote(t *testing.T) {
	for _, r := range oneOfEach() {
		b := Encode(nil, []Record{r})
		got, err := Decode(b)
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], r) {
			t.Errorf("%x\n  decodes to %+v, %v\n  want       %+v", b, got, err, r)
		}
	}
}

// TestBytesOfAPartitionChange pins the smallest records that a failover writes.
func TestBytesOfAPartitionChange(t *testing.T) {
	r := PartitionChange{Topic: id(9), Slots: []Slot{
		{Partition: 4, Set: NoSet, ISR: 3, Leader: 1, LastLeader: -1, LeaderEpoch: 12, PartitionEpoch: 30},
		{Partition: 5, Set: NoSet, ISR: 5, Leader: 0, LastLeader: -1, LeaderEpoch: 2, PartitionEpoch: 9},
	}}
	want := "0a0000" + "1f" + // class, version, flags, length
		"00000000000000000000000000000009" + "00" + "02" + // topic, sets, slots
		"04" + "10" + "02" + "02" + "0c" + "1e" + // 4 on; ISR is the first two; leader place 1; epochs
		"00" + "00" + "05" + "01" + "02" + "09" + // next one; ISR bitmap 101; leader place 0; epochs
		"00" // tagged fields
	if got := hex.EncodeToString(Encode(nil, []Record{r})); got != want {
		t.Fatalf("bytes are\n%s, want\n%s", got, want)
	}
}

// TestUnknownRecordsStopTheReaderUnlessIgnorable is protocols.md §3-3.
func TestUnknownRecordsStopTheReaderUnlessIgnorable(t *testing.T) {
	tail := Encode(nil, []Record{Feature{"f", 1}})
	skip := append([]byte{200, 0, flagIgnorable, 2, 0xff, 0xff}, tail...)
	if got, err := Decode(skip); err != nil || len(got) != 1 {
		t.Errorf("an ignorable record of class 200: %v, %v; want the one behind it", got, err)
	}
	for _, b := range [][]byte{{200, 0, 0, 0}, {byte(kindFeature), 1, 0, 0}} {
		var unknown *UnknownRecordError
		if _, err := Decode(append(b, tail...)); !errors.As(err, &unknown) || unknown.Class != b[0] || unknown.Version != b[1] {
			t.Errorf("class %d version %d: %v, want an UnknownRecordError", b[0], b[1], err)
		}
	}
	tagged := []byte{byte(kindFeature), 0, 0, 7, 1, 'f', 2, 1, 9, 1, 0xee}
	if got, err := Decode(tagged); err != nil || got[0] != (Feature{"f", 1}) {
		t.Errorf("a record with an unknown tagged field: %v, %v", got, err)
	}
}

// TestCutRecordsAreRefused cuts each record at every byte.
func TestCutRecordsAreRefused(t *testing.T) {
	for _, r := range oneOfEach() {
		b := Encode(nil, []Record{r})
		for n := 1; n < len(b); n++ {
			if _, err := Decode(b[:n]); !errors.Is(err, ErrMalformed) {
				t.Fatalf("%T cut to %d of %d bytes: %v, want ErrMalformed", r, n, len(b), err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(nil, oneOfEach()))
	f.Add([]byte{byte(kindPartitions), 0, 0, 4, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(Encode(nil, records))
		if err != nil || !reflect.DeepEqual(records, again) {
			t.Fatalf("records %+v come back as %+v, %v", records, again, err)
		}
		m := Empty().Apply(1, records)
		checkSnapshot(t, m)
	})
}

// checkSnapshot wants the image back from its snapshot, and the same bytes again.
func checkSnapshot(t *testing.T, m *Image) {
	t.Helper()
	b := m.EncodeSnapshot(nil)
	back, err := DecodeSnapshot(m.N(), b)
	if err != nil {
		t.Fatalf("snapshot does not decode: %v", err)
	}
	if again := back.EncodeSnapshot(nil); !bytes.Equal(b, again) {
		t.Fatalf("a snapshot's image has another snapshot:\n%x\n%x", b, again)
	}
	for old, new := range Changed(m, back) {
		if !reflect.DeepEqual(old, new) && !equalTopics(old, new) {
			t.Fatalf("topic %+v comes back as %+v", old, new)
		}
	}
}

func equalTopics(a, b *Topic) bool {
	if a == nil || b == nil || a.Name != b.Name || a.ID != b.ID || a.count != b.count || len(a.configs) != len(b.configs) {
		return false
	}
	for p := range a.count {
		x, _ := a.Partition(p)
		y, _ := b.Partition(p)
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// TestFoldIsTheSameInOneEditAndInMany folds random records in pieces of any size,
// through a snapshot at any place: all readers agree.
func TestFoldIsTheSameInOneEditAndInMany(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		records := randomRecords(rng, 60)
		whole := Empty().Apply(60, records)
		pieces := Empty()
		for n := 0; n < len(records); {
			k := min(len(records), n+1+rng.IntN(5))
			pieces = pieces.Apply(int64(k), records[n:k])
			n = k
			if rng.IntN(6) == 0 {
				back, err := DecodeSnapshot(int64(n), pieces.EncodeSnapshot(nil))
				if err != nil {
					t.Fatal(err)
				}
				pieces = back
			}
		}
		if a, b := whole.EncodeSnapshot(nil), pieces.EncodeSnapshot(nil); !bytes.Equal(a, b) {
			t.Fatalf("seed %d: folding in pieces gives\n%x, in one\n%x", seed, b, a)
		}
		checkSnapshot(t, whole)
	}
}

func randomRecords(rng *rand.Rand, n int) []Record {
	var out []Record
	for range n {
		topic := rng.IntN(4)
		broker := kafka.BrokerID(1 + rng.IntN(3))
		set := ReplicaSet{Replicas: []kafka.BrokerID{broker, broker%3 + 1}}
		slot := Slot{
			Partition: int32(rng.IntN(3)), Set: 0, ISR: Members(1 + rng.IntN(3)), Leader: int8(rng.IntN(3) - 1), LastLeader: -1,
			LeaderEpoch: kafka.LeaderEpoch(rng.IntN(5)), PartitionEpoch: kafka.PartitionEpoch(rng.IntN(9)),
		}
		switch rng.IntN(10) {
		case 0:
			out = append(out, NewTopic{id(topic), fmt.Sprint("t", topic)})
		case 1, 2:
			out = append(out, Partitions{id(topic), []ReplicaSet{set}, []Slot{slot}})
		case 3, 4:
			out = append(out, PartitionChange{id(topic), []ReplicaSet{set}, []Slot{slot}})
		case 5:
			out = append(out, BrokerRegistration{ID: broker, Epoch: kafka.BrokerEpoch(rng.IntN(9)), Unclean: rng.IntN(2) == 0})
		case 6:
			out = append(out, BrokerFence{broker, kafka.BrokerEpoch(rng.IntN(9))})
		case 7:
			out = append(out, Config{TopicResource, fmt.Sprint("t", topic), []Setting{{"k", text("v")}}})
		case 8:
			out = append(out, RemoveTopic{id(topic), rng.IntN(2) == 0})
		case 9:
			out = append(out, Config{BrokerResource, fmt.Sprint(broker), []Setting{{fmt.Sprint(rng.IntN(3)), text("v")}}})
		}
	}
	return out
}

// build makes topics of perTopic partitions, one edit each.
func build(topics, perTopic, brokers int) *Image {
	m := Empty()
	for i := range topics {
		p := Partitions{Topic: id(i)}
		for j := range perTopic {
			a := kafka.BrokerID((i*perTopic + j) % brokers)
			n := kafka.BrokerID(brokers)
			p.Sets = append(p.Sets, ReplicaSet{Replicas: []kafka.BrokerID{a, (a + 1) % n, (a + 2 + kafka.BrokerID(i)%7) % n}})
			p.Slots = append(p.Slots, Slot{Partition: int32(j), Set: j, ISR: 7, Leader: 0, LastLeader: -1})
		}
		m = m.Apply(int64(i+1), []Record{NewTopic{id(i), fmt.Sprintf("some.topic.name-%d", i)}, p})
	}
	return m
}

// BenchmarkBuildTenThousandTopics asks whether an image per edit is affordable.
func BenchmarkBuildTenThousandTopics(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		build(10_000, 10, 30)
	}
}

// BenchmarkMemoryPerPartition measures what 100 000 partitions of 10 000 topics hold.
func BenchmarkMemoryPerPartition(b *testing.B) {
	var m *Image
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	for b.Loop() {
		m = nil
		before := heap()
		m = build(10_000, 10, 30)
		b.ReportMetric(float64(heap()-before)/float64(m.PartitionCount()), "B/partition")
	}
	b.ReportMetric(float64(len(m.EncodeSnapshot(nil)))/float64(m.PartitionCount()), "snapshot-B/partition")
	runtime.KeepAlive(m)
}

// BenchmarkByBroker asks what a broker's death costs to look up without an index.
func BenchmarkByBroker(b *testing.B) {
	m := build(10_000, 10, 30)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for t := range m.ByBroker(3) {
			for range t.Of(3) {
				n++
			}
		}
		if n < 9_000 || n > 11_000 {
			b.Fatalf("%d partitions, want about 10000", n)
		}
	}
}

// BenchmarkDecodeSnapshot is a cold take-over's work with 100 000 partitions.
func BenchmarkDecodeSnapshot(b *testing.B) {
	s := build(10_000, 10, 30).EncodeSnapshot(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeSnapshot(1, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTopicByName is what a Metadata or Produce request asks of the image.
func BenchmarkTopicByName(b *testing.B) {
	m := build(10_000, 10, 30)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := m.Partition(kafka.TopicPartition{Topic: "some.topic.name-7777", Partition: 3}); !ok {
			b.Fatal("not there")
		}
	}
}
