// Package group decides for one partition of __consumer_offsets what its consumer
// groups do: who is a member, which generation holds, what was committed. It is the
// classic protocol; requests go in, records and replies come out.
//
// A classic group:
//
//	             join                     all joined, or time is up
//	  ┌─► Empty ──────► PreparingRebalance ────────────► CompletingRebalance
//	  │                   ▲  │        ▲                     │         │
//	  │ nobody is left    │  │        │ member joins,       │         │ leader
//	  ├───────────────────┼──┘        │ leaves, is late     │         ▼ syncs
//	  │                   │           └─────────────────────┘       Stable
//	  │ offsets gone      └──────────────────────────────────────────┘
//	  ▼
//	Dead: not in the map any more
//
// A Machine changes at once and says what must be in the log for it to be true. Its
// driver appends a step's Records in the order of steps, and delivers a step's
// Replies when everything that this step and earlier ones appended is revealed: so
// reads too show only what cannot be taken back (protocols C1). When an append fails
// or the leadership goes, the driver throws the Machine away: Unload answers who
// waits, and the next owner loads from the log. A reply that never came is no harm,
// clients ask again.
//
// Records are Kafka's, so that its tools decode them. Other kinds of group have
// other keys (KIP-848); Load passes over them.
package group

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// A Config is the coordinator's settings. The zero value of a field is Kafka's default.
type Config struct {
	MinSession        time.Duration // group.min.session.timeout.ms; 6 s
	MaxSession        time.Duration // group.max.session.timeout.ms; 30 min
	InitialDelay      time.Duration // group.initial.rebalance.delay.ms; 3 s, below zero is none
	NewMemberTimeout  time.Duration // how long one may join that cannot send heartbeats; 5 min
	MaxSize           int           // group.max.size; unbounded
	MaxMetadata       int           // offset.metadata.max.bytes; 4096
	Retention         time.Duration // offsets.retention.minutes; 7 days
	RetentionInterval time.Duration // offsets.retention.check.interval.ms; 10 min
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return max(v, 0)
}

func (c Config) filled() Config {
	c.MinSession = orDefault(c.MinSession, 6*time.Second)
	c.MaxSession = orDefault(c.MaxSession, 30*time.Minute)
	c.InitialDelay = orDefault(c.InitialDelay, 3*time.Second)
	c.NewMemberTimeout = orDefault(c.NewMemberTimeout, 5*time.Minute)
	c.MaxSize = orDefault(c.MaxSize, 1<<31-1)
	c.MaxMetadata = orDefault(c.MaxMetadata, 4096)
	c.Retention = orDefault(c.Retention, 7*24*time.Hour)
	c.RetentionInterval = orDefault(c.RetentionInterval, 10*time.Minute)
	return c
}

// A RequestID names a request whose reply may come from a later step.
type RequestID uint64

// A Request is one request of a client for this shard. Topics carry names, also in
// versions that send ids: the caller has looked them up. Strings in Body are its own
// (ReadFrom, not UnsafeReadFrom); byte slices may lie in a buffer that is used again.
type Request struct {
	ID         RequestID
	ClientID   string
	ClientHost string // as Kafka shows it: /127.0.0.1
	// NewID is the random part of the member id, should the request make one: a UUID
	// of the caller's, since a pure room has no chance.
	NewID string
	Body  kmsg.Request
}

// A Record goes to the shard's partition. A nil Value is a tombstone.
type Record struct{ Key, Value []byte }

// A Reply answers the request of that id.
type Reply struct {
	ID       RequestID
	Response kmsg.Response
}

// A Machine is one coordinator shard. Its driver calls one method at a time.
type Machine struct {
	config Config
	groups map[string]*group
	timers timers

	now     time.Time // of the step at hand
	records []Record
	replies []Reply
}

// New returns a shard without groups. Load it from its partition, then call Loaded.
func New(c Config) *Machine {
	return &Machine{config: c.filled(), groups: map[string]*group{}}
}

// Step takes a request. The reply to a join or a sync may come from a later step.
// It panics for a kind of request that is not the coordinator's.
func (m *Machine) Step(now time.Time, r Request) ([]Record, []Reply) {
	m.begin(now)
	switch body := r.Body.(type) {
	case *kmsg.JoinGroupRequest:
		m.join(r, body)
	case *kmsg.SyncGroupRequest:
		m.sync(r, body)
	case *kmsg.HeartbeatRequest:
		m.reply(r.ID, m.heartbeat(body))
	case *kmsg.LeaveGroupRequest:
		m.reply(r.ID, m.leave(body))
	case *kmsg.OffsetCommitRequest:
		m.reply(r.ID, m.commit(body))
	case *kmsg.OffsetFetchRequest:
		m.reply(r.ID, m.fetch(body))
	case *kmsg.OffsetDeleteRequest:
		m.reply(r.ID, m.deleteOffsets(body))
	case *kmsg.DescribeGroupsRequest:
		m.reply(r.ID, m.describe(body))
	case *kmsg.ListGroupsRequest:
		m.reply(r.ID, m.list(body))
	case *kmsg.DeleteGroupsRequest:
		m.reply(r.ID, m.deleteGroups(body))
	default:
		panic(fmt.Sprintf("group: unknown request %T", body))
	}
	return m.records, m.replies
}

// Tick does what is due at now: late members, ends of rebalances, old offsets.
func (m *Machine) Tick(now time.Time) ([]Record, []Reply) {
	m.begin(now)
	m.runTimers()
	return m.records, m.replies
}

// Next is when Tick is due next; ok is false where nothing is. A step may bring it
// forward. A call of Tick that comes early or late does no harm.
func (m *Machine) Next() (at time.Time, ok bool) { return m.timers.next() }

// Unload answers every waiting request with NOT_COORDINATOR and forgets everything.
func (m *Machine) Unload() []Reply {
	m.begin(m.now)
	for _, g := range m.groups {
		for _, id := range g.order {
			m.answerJoin(g.members[id], kafka.NotCoordinator)
			m.answerSync(g.members[id], kafka.NotCoordinator)
		}
	}
	m.groups, m.timers = map[string]*group{}, nil
	return m.replies
}

func (m *Machine) begin(now time.Time) { m.now, m.records, m.replies = now, nil, nil }

func (m *Machine) reply(id RequestID, r kmsg.Response) { m.replies = append(m.replies, Reply{id, r}) }

func (m *Machine) write(r Record) { m.records = append(m.records, r) }

// PartitionFor is the partition of __consumer_offsets, of n, that a group lives in:
// Java's hash of its name without the sign, as every Kafka computes it.
func PartitionFor(group string, n int32) int32 {
	h := javaHash(group)
	if h < 0 {
		h = -h
	}
	if h < 0 { // the least number has no opposite
		h = 0
	}
	return h % n
}

// javaHash is String.hashCode: over UTF-16 units, 31 times what was plus the unit.
func javaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if r >= 1<<16 {
			r -= 1 << 16
			h = 31*h + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	return h
}
