package group

import (
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

func TestPartitionIsJavas(t *testing.T) {
	for name, hash := range map[string]int32{
		"":                   0,
		"abc":                96354,
		"polygenelubricants": -1 << 31, // famous for it
		"größe":              98762257,
		"\U0001d4b3y":        54941979,
	} {
		if got := javaHash(name); got != hash {
			t.Errorf("javaHash(%q) = %d, want %d", name, got, hash)
		}
	}
	if got := PartitionFor("polygenelubricants", 50); got != 0 {
		t.Errorf("the least hash is in partition %d, want 0", got)
	}
	if got := PartitionFor("abc", 50); got != 4 {
		t.Errorf("abc is in partition %d, want 4", got)
	}
}

func TestEveryArrowIsAllowedOnce(t *testing.T) {
	var arrows []string
	for from := empty; from <= stable; from++ {
		for to := empty; to <= stable; to++ {
			if to.mayFollow(from) {
				arrows = append(arrows, fmt.Sprintf("%v to %v", from, to))
			}
		}
	}
	want := "[Empty to PreparingRebalance PreparingRebalance to Empty PreparingRebalance to CompletingRebalance " +
		"CompletingRebalance to PreparingRebalance CompletingRebalance to Stable Stable to PreparingRebalance]"
	if got := fmt.Sprint(arrows); got != want {
		t.Errorf("arrows %s, want %s", got, want)
	}
}

// The bytes of both records, as Kafka 4.3's GroupCoordinatorRecordSerde reads them.
func TestRecordsAreKafkasBytes(t *testing.T) {
	g := newGroup("g")
	g.protocolType, g.protocol, g.generation, g.since = "consumer", "range", 3, 1000
	g.add(&member{id: "m", instance: "i", clientID: "c", host: "/h", sessionTimeout: time.Second, rebalanceTimeout: 2 * time.Second,
		protocols: []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{1, 2}}}, assignment: []byte{3}})
	for _, c := range []struct {
		name       string
		r          Record
		key, value string
	}{
		{"group", groupRecord(g), "0002000167",
			"00030008636f6e73756d657200000003000572616e676500016d00000000000003e80000000100016d000169000163" +
				"00022f68000007d0000003e800000002010200000001" + "03"},
		{"offset", offsetRecord("g", place{"t", 7}, offset{at: 5, epoch: 2, metadata: "x", when: 1000, expires: -1}), "00010001670001740000" + "0007",
			"000400000000000000050000000202" + "78" + "00000000000003e800"},
		{"offset that expires", offsetRecord("g", place{"t", 7}, offset{at: 5, epoch: 2, metadata: "x", when: 1000, expires: 2000}),
			"000100016700017400000007", "00010000000000000005000178" + "00000000000003e8" + "00000000000007d0"},
	} {
		if got := hex.EncodeToString(c.r.Key); got != c.key {
			t.Errorf("%s: key\n%s, want\n%s", c.name, got, c.key)
		}
		if got := hex.EncodeToString(c.r.Value); got != c.value {
			t.Errorf("%s: value\n%s, want\n%s", c.name, got, c.value)
		}
	}
}

func TestLoadRefusesWhatItWouldLose(t *testing.T) {
	m := New(Config{})
	for name, r := range map[string]Record{
		"a key of one byte":    {Key: []byte{0}},
		"a torn key":           {Key: []byte{0, 2, 0, 9}},
		"a value from later":   {Key: groupKey("g"), Value: []byte{0, 9, 0}},
		"an offset from later": {Key: offsetKey("g", place{"t", 0}), Value: []byte{0, 5, 0}},
		"a torn value":         {Key: groupKey("g"), Value: []byte{0, 3, 0}},
	} {
		if err := m.Load(r.Key, r.Value); err == nil {
			t.Errorf("%s is loaded", name)
		}
	}
	if err := m.Load([]byte{0, 3, 0, 1, 'g'}, []byte{1}); err != nil {
		t.Errorf("a record of another kind of group: %v, want none", err)
	}
}

func TestSessionsBeginAnewAtLoad(t *testing.T) {
	st := &story{m: New(Config{InitialDelay: -1})}
	st.m.Loaded(st.at(0))
	step := func(ms int64, id RequestID, body kmsg.Request) []Reply {
		records, replies := st.m.Step(st.at(ms), Request{ID: id, ClientID: "a", NewID: "1", Body: body})
		st.log = append(st.log, records...)
		return replies
	}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.SessionTimeoutMillis, join.ProtocolType = 3, "g", 10000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	step(0, 1, join)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID = "g", 1, "a-1"
	step(0, 2, sync)

	st.ms = 50000 // the broker was away for longer than a session
	if got, want := st.restart(t), "g Stable generation 1 leader \"a-1\" members [a-1] offsets 0\n"; got != want {
		t.Fatalf("after loading %q, want %q", got, want)
	}
	st.ms = 59999
	if got := st.tick(); got != "" {
		t.Errorf("before the session is over: %q", got)
	}
	st.ms = 60000
	if st.tick(); st.m.groups["g"].state != empty {
		t.Errorf("after the session: %v, want Empty", st.m.groups["g"].state)
	}
}

func TestUnloadAnswersWhoWaits(t *testing.T) {
	m := New(Config{})
	m.Loaded(time.UnixMilli(0))
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.SessionTimeoutMillis, join.ProtocolType = 3, "g", 10000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	if _, replies := m.Step(time.UnixMilli(0), Request{ID: 7, NewID: "1", Body: join}); len(replies) != 0 {
		t.Fatalf("answered at once: %v", replies)
	}
	replies := m.Unload()
	if len(replies) != 1 || replies[0].ID != 7 || replies[0].Response.(*kmsg.JoinGroupResponse).ErrorCode != int16(kafka.NotCoordinator) {
		t.Errorf("Unload answers %v, want NOT_COORDINATOR for 7", replies)
	}
	if _, ok := m.Next(); ok {
		t.Error("something is due after Unload")
	}
}

func TestWhatIsKeptIsNotTheRequestsBuffer(t *testing.T) {
	m := New(Config{InitialDelay: -1})
	m.Loaded(time.UnixMilli(0))
	said := []byte("said")
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.SessionTimeoutMillis, join.ProtocolType = 3, "g", 10000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: said}}
	m.Step(time.UnixMilli(0), Request{NewID: "1", Body: join})
	copy(said, "lost")
	if got := string(m.groups["g"].members["-1"].metadata("range")); got != "said" {
		t.Errorf("the member's metadata is %q, want said", got)
	}
}

func TestRefusalStandsWhereTheVersionHasAPlace(t *testing.T) {
	old := kmsg.NewPtrOffsetFetchRequest()
	old.Version, old.Group = 1, "g"
	old.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{3}}}
	r := Refuse(old, kafka.NotCoordinator).(*kmsg.OffsetFetchResponse)
	if p := r.Topics[0].Partitions[0]; p.ErrorCode != int16(kafka.NotCoordinator) || p.Offset != -1 || p.Partition != 3 {
		t.Errorf("v1: %+v, want the code on the partition", p)
	}
	several := kmsg.NewPtrOffsetFetchRequest()
	several.Version, several.Groups = 8, []kmsg.OffsetFetchRequestGroup{{Group: "g"}}
	if r := Refuse(several, kafka.NotCoordinator).(*kmsg.OffsetFetchResponse); r.Groups[0].ErrorCode != int16(kafka.NotCoordinator) {
		t.Errorf("v8: %+v, want the code on the group", r)
	}
	for _, q := range []kmsg.Request{kmsg.NewPtrJoinGroupRequest(), kmsg.NewPtrSyncGroupRequest(), kmsg.NewPtrHeartbeatRequest(),
		kmsg.NewPtrLeaveGroupRequest(), kmsg.NewPtrOffsetCommitRequest(), kmsg.NewPtrOffsetDeleteRequest(),
		kmsg.NewPtrDescribeGroupsRequest(), kmsg.NewPtrListGroupsRequest(), kmsg.NewPtrDeleteGroupsRequest()} {
		if r := Refuse(q, kafka.CoordinatorLoadInProgress); r.Key() != q.Key() {
			t.Errorf("%T is refused with %T", q, r)
		}
	}
}

func FuzzLoad(f *testing.F) {
	g := newGroup("g")
	g.add(&member{id: "m"})
	for _, r := range []Record{groupRecord(g), offsetRecord("g", place{"t", 7}, offset{expires: -1}), {Key: groupKey("g")}} {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m := New(Config{})
		if m.Load(key, value) != nil {
			return
		}
		m.Loaded(time.UnixMilli(0))
		m.Tick(time.UnixMilli(1 << 40))
	})
}

// What does a heartbeat cost in a group of a thousand?
func BenchmarkHeartbeat(b *testing.B) {
	m := New(Config{InitialDelay: -1})
	now := time.UnixMilli(0)
	g := newGroup("g")
	for i := range 1000 {
		g.add(&member{id: fmt.Sprint(i), sessionTimeout: 10 * time.Second})
	}
	g.state, m.groups["g"] = stable, g
	m.Loaded(now)
	q := kmsg.NewPtrHeartbeatRequest()
	q.Group = "g"
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.MemberID = g.order[i%1000]
		now = now.Add(time.Millisecond)
		if _, replies := m.Step(now, Request{Body: q}); replies[0].Response.(*kmsg.HeartbeatResponse).ErrorCode != 0 {
			b.Fatal("refused")
		}
	}
}

// What does a commit of ten partitions cost?
func BenchmarkCommit(b *testing.B) {
	m := New(Config{})
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.Generation = 8, "g", -1
	topic := kmsg.OffsetCommitRequestTopic{Topic: "orders"}
	for i := range int32(10) {
		topic.Partitions = append(topic.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: i, Offset: 100})
	}
	q.Topics = append(q.Topics, topic)
	b.ReportAllocs()
	for b.Loop() {
		if records, _ := m.Step(time.UnixMilli(0), Request{Body: q}); len(records) != 10 {
			b.Fatal(len(records))
		}
	}
}
