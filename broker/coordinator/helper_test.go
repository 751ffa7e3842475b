package coordinator_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/commitlog"
	"varve/broker/coordinator"
	"varve/broker/group"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/vfs"
	"varve/ha/controller"
)

var offsetsID, ordersID = kafka.TopicID{9}, kafka.TopicID{1}

// A broker is what a Coordinator stands on: partitions of the offsets topic on a file
// system, and an image that knows it and the topic orders.
type broker struct {
	t     testing.TB
	fs    vfs.FS
	dir   *commitlog.Dir
	parts []*partition.Partition
	c     *coordinator.Coordinator
	logs  logs

	mu struct {
		sync.Mutex
		image *metadata.Image
		made  []controller.CreateTopics
	}
}

// start opens n partitions and leads them in an epoch with the brokers isr in sync.
func start(t testing.TB, fsys vfs.FS, n int, epoch kafka.LeaderEpoch, isr ...kafka.BrokerID) *broker {
	t.Helper()
	b := &broker{t: t, fs: fsys}
	b.setImage(metadata.Empty())
	dir, err := commitlog.OpenDir(fsys, "/log", commitlog.DirOptions{ClusterID: "c", NodeID: 1, BootID: "b"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.dir = dir
	was := map[kafka.TopicPartition]bool{}
	for _, f := range dir.Partitions() {
		was[f.Partition] = true
	}
	for i := range n {
		tp := kafka.TopicPartition{Topic: coordinator.OffsetsTopic, Partition: int32(i)}
		open := dir.Create
		if was[tp] {
			open = dir.Open
		}
		log, err := open(tp, offsetsID, &commitlog.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b.parts = append(b.parts, partition.New(log, &partition.Settings{Policy: record.DefaultPolicy(tp), MinISR: 1}))
	}
	b.c = coordinator.New(coordinator.Options{Partitions: b, Controller: b, Log: slog.New(&b.logs),
		Group: group.Config{InitialDelay: -1}, Topic: coordinator.Topic{Partitions: int32(n), Replication: 1, SegmentBytes: 1 << 20}})
	b.edit(newTopic(coordinator.OffsetsTopic, offsetsID, int32(n))...)
	b.edit(newTopic("orders", ordersID, 4)...)
	b.lead(epoch, isr...)
	return b
}

func newTopic(name string, id kafka.TopicID, n int32) []metadata.Record {
	p := metadata.Partitions{Topic: id, Sets: []metadata.ReplicaSet{{Replicas: []kafka.BrokerID{1}}}}
	for i := range n {
		p.Slots = append(p.Slots, metadata.Slot{Partition: i, Leader: 0, ISR: 1})
	}
	return []metadata.Record{metadata.NewTopic{ID: id, Name: name}, p}
}

func (b *broker) setImage(m *metadata.Image) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.image = m
}

// edit changes the image and has the coordinator follow.
func (b *broker) edit(records ...metadata.Record) {
	old := b.Image()
	b.setImage(old.Apply(old.N()+1, records))
	b.c.Follow(old, b.Image())
}

// lead begins a term of every partition, the image says so and the coordinator follows.
func (b *broker) lead(epoch kafka.LeaderEpoch, isr ...kafka.BrokerID) {
	b.t.Helper()
	for _, p := range b.parts {
		p.Resign()
		if err := p.Lead(time.Now(), partition.Term{Epoch: epoch, PartitionEpoch: kafka.PartitionEpoch(epoch), Broker: 1,
			Replicas: []kafka.BrokerID{1, 2}, ISR: isr}, nil); err != nil {
			b.t.Fatal(err)
		}
	}
	b.follow()
}

func (b *broker) resign() {
	for _, p := range b.parts {
		p.Resign()
	}
	b.follow()
}

// follow tells the coordinator of an edit of the offsets topic.
func (b *broker) follow() {
	name := "segment.bytes"
	b.edit(metadata.Config{Type: metadata.TopicResource, Name: coordinator.OffsetsTopic,
		Settings: []metadata.Setting{{Key: name, Value: &name}}})
}

// kill is the broker on what its disk holds after the process has died.
func (b *broker) kill(epoch kafka.LeaderEpoch) *broker {
	b.t.Helper()
	b.c.Close()
	return start(b.t, b.fs.(*vfs.Mem).Kill(), len(b.parts), epoch, 1)
}

// Find, Do and Image make it the coordinator's surroundings.
func (b *broker) Find(topic string, p int32) (*partition.Partition, kafka.Code) {
	if topic != coordinator.OffsetsTopic || int(p) >= len(b.parts) {
		return nil, kafka.UnknownTopicOrPartition
	}
	return b.parts[p], kafka.None
}

func (b *broker) Image() *metadata.Image {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.image
}

func (b *broker) Do(_ context.Context, req controller.Request) (controller.Answer, error) {
	create := req.(controller.CreateTopics)
	b.mu.Lock()
	b.mu.made = append(b.mu.made, create)
	b.mu.Unlock()
	b.edit(newTopic(coordinator.OffsetsTopic, offsetsID, create.Topics[0].Partitions)...)
	return controller.TopicsCreated{Topics: []controller.TopicCreated{{Name: create.Topics[0].Name}}}, nil
}

// ask asks the shard of a group; the answer comes on the channel.
func (b *broker) ask(group string, req kmsg.Request) <-chan kmsg.Response {
	answer := make(chan kmsg.Response, 2)
	b.c.Ask(b.c.Shard(group), coordinator.Client{ID: "client", Host: "/127.0.0.1"}, req, func(r kmsg.Response) { answer <- r })
	return answer
}

// ready waits until a group's shard has loaded.
func (b *broker) ready(group string) {
	b.t.Helper()
	if e := b.c.Ready(b.t.Context(), group); e != nil {
		b.t.Fatal(e)
	}
}

func (b *broker) commit(group string, offset int64) kafka.Code {
	b.t.Helper()
	r := answered[*kmsg.OffsetCommitResponse](b.t, b.ask(group, commitOf(group, offset)))
	return kafka.Code(r.Topics[0].Partitions[0].ErrorCode)
}

func commitOf(group string, offset int64) *kmsg.OffsetCommitRequest {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.Generation = 8, group, -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = 2, offset
	q.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "orders", TopicID: ordersID, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return q
}

// committed is what OffsetFetch tells of orders-2.
func (b *broker) committed(group string) (int64, kafka.Code) {
	b.t.Helper()
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version, q.Group = 7, group
	q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "orders", Partitions: []int32{2}}}
	r := answered[*kmsg.OffsetFetchResponse](b.t, b.ask(group, q))
	if r.ErrorCode != 0 {
		return -1, kafka.Code(r.ErrorCode)
	}
	return r.Topics[0].Partitions[0].Offset, kafka.None
}

func (b *broker) wantCommitted(group string, want int64) {
	b.t.Helper()
	if got, code := b.committed(group); got != want || code != kafka.None {
		b.t.Errorf("group %s has committed %d (%v), want %d", group, got, code, want)
	}
}

func joinOf(group, member string) *kmsg.JoinGroupRequest {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Version, q.Group, q.MemberID, q.ProtocolType = 3, group, member, "consumer"
	q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = 10_000, 60_000
	q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}}
	return q
}

// joined makes a group with one member that has its assignment, and returns its id.
func (b *broker) joined(group string) string {
	b.t.Helper()
	j := answered[*kmsg.JoinGroupResponse](b.t, b.ask(group, joinOf(group, "")))
	if j.ErrorCode != 0 {
		b.t.Fatalf("join: %v", kafka.Code(j.ErrorCode))
	}
	q := kmsg.NewPtrSyncGroupRequest()
	q.Group, q.MemberID, q.Generation = group, j.MemberID, j.Generation
	q.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: j.MemberID, MemberAssignment: []byte("all")}}
	if s := answered[*kmsg.SyncGroupResponse](b.t, b.ask(group, q)); s.ErrorCode != 0 {
		b.t.Fatalf("sync: %v", kafka.Code(s.ErrorCode))
	}
	return j.MemberID
}

func (b *broker) heartbeat(group, member string) kafka.Code {
	b.t.Helper()
	q := kmsg.NewPtrHeartbeatRequest()
	q.Group, q.MemberID, q.Generation = group, member, 1
	return kafka.Code(answered[*kmsg.HeartbeatResponse](b.t, b.ask(group, q)).ErrorCode)
}

// answered waits for an answer.
func answered[R kmsg.Response](t testing.TB, c <-chan kmsg.Response) R {
	t.Helper()
	select {
	case r := <-c:
		return r.(R)
	case <-time.After(10 * time.Second):
		t.Fatalf("no answer of type %T", *new(R))
		panic("unreachable")
	}
}

// logs keeps the messages of a log.
type logs struct {
	mu       sync.Mutex
	messages []string
}

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }
func (l *logs) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logs) WithGroup(string) slog.Handler            { return l }
func (l *logs) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages = append(l.messages, r.Message)
	return nil
}
