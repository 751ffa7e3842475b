package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/e2e/servers"
)

func TestFranzGoUsesTheBroker(t *testing.T) {
	v := broker(t)
	t.Run("an idempotent producer goes on over a stop and a kill", func(t *testing.T) { franzProducer(t, v) })
	t.Run("a group goes on where it committed when client and broker are new", func(t *testing.T) { franzCommits(t, v) })
	t.Run("two members share the partitions and hand them over", func(t *testing.T) { franzRebalance(t, v) })
}

// franzProducer has one producer live through three lives of the broker: what it sent
// is there once and in order.
func franzProducer(t *testing.T, v *servers.Varve) {
	create(t, v, "lives", 1)
	cl := client(t, v.Addr, toPartition0()...)
	want := numbered("life", 0, 900)
	produce(t, cl, "lives", want[:300])
	restart(t, v)
	produce(t, cl, "lives", want[300:600])
	v.Kill()
	start(t, v)
	produce(t, cl, "lives", want[600:])
	same(t, "all three lives", poll(t, client(t, v.Addr, fromStart("lives")), len(want)), want)
}

func franzCommits(t *testing.T, v *servers.Varve) {
	create(t, v, "committed", 1)
	want := numbered("committed", 0, 1000)
	produce(t, client(t, v.Addr, toPartition0()...), "committed", want)
	member := func() *kgo.Client {
		return client(t, v.Addr, kgo.ConsumerGroup("franz"), kgo.ConsumeTopics("committed"), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	first := member()
	same(t, "the first member", poll(t, first, 300), want[:300])
	if err := first.CommitUncommittedOffsets(within(t)); err != nil {
		t.Fatalf("committing: %v", err)
	}
	first.Close()
	restart(t, v)
	same(t, "the second member", poll(t, member(), 700), want[300:])
}

func franzRebalance(t *testing.T, v *servers.Varve) {
	create(t, v, "halves", 4)
	cl := client(t, v.Addr)
	a := join(t, v, "halves")
	a.has(t, 4)
	produce(t, cl, "halves", numbered("alone", 0, 200))
	b := join(t, v, "halves")
	a.has(t, 2)
	b.has(t, 2)
	produce(t, cl, "halves", numbered("shared", 0, 200))
	a.cl.Close()
	b.has(t, 4)
	produce(t, cl, "halves", numbered("after", 0, 200))
	eventually(t, patience, "both saw every record", func(context.Context) error {
		seen := a.saw()
		maps.Copy(seen, b.saw())
		if len(seen) != 600 {
			return fmt.Errorf("%d of 600 records were seen", len(seen))
		}
		return nil
	})
	if len(a.saw()) == 0 || len(b.saw()) == 0 {
		t.Errorf("one member saw %d records, the other %d: both should have had some", len(a.saw()), len(b.saw()))
	}
}

// A member is one consumer of a group that notes what it is given.
type member struct {
	cl *kgo.Client
	mu struct {
		sync.Mutex
		holds []int32
		seen  map[string]bool
	}
}

// join adds a member to the group named as the topic.
func join(t *testing.T, v *servers.Varve, topic string) *member {
	m := &member{}
	m.mu.seen = map[string]bool{}
	lost := func(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mu.holds = slices.DeleteFunc(m.mu.holds, func(p int32) bool { return slices.Contains(gone[topic], p) })
	}
	m.cl = client(t, v.Addr, kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(200*time.Millisecond), kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, more map[string][]int32) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.mu.holds = append(m.mu.holds, more[topic]...)
		}))
	go m.consume(t.Context())
	return m
}

// consume ends when the client or the test does.
func (m *member) consume(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := m.cl.PollFetches(ctx)
		if fetches.IsClientClosed() {
			return
		}
		m.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) { m.mu.seen[string(r.Value)] = true })
		m.mu.Unlock()
	}
}

// has waits until the member holds so many partitions.
func (m *member) has(t *testing.T, want int) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("a member of %d partitions", want), func(context.Context) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.mu.holds) != want {
			return fmt.Errorf("it holds %d", m.mu.holds)
		}
		return nil
	})
}

// saw is a copy of the values that the member was given.
func (m *member) saw() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.mu.seen)
}
