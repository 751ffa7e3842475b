package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// TestRandomClientsKeepTheInvariants lets clients join, sync, beat, commit, leave and
// fall silent at random, and holds the machine to:
//
//   - every request is answered once, at the latest by Unload;
//   - generations only rise, and the leader's answer names every member;
//   - a machine loaded from the log has the same offsets, never a higher
//     generation, and in Stable and Empty the same members.
func TestRandomClientsKeepTheInvariants(t *testing.T) {
	for seed := range uint64(60) {
		w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), asked: map[RequestID]int{}, waits: map[RequestID]*client{},
			m: New(Config{InitialDelay: time.Duration(seed%3) * time.Second})}
		w.m.Loaded(w.time())
		for i := range 5 {
			w.clients = append(w.clients, &client{name: fmt.Sprint("c", i), static: i >= 3, generation: -1})
		}
		for range 400 {
			w.step()
			w.checkReload()
		}
		w.take(nil, w.m.Unload())
		for id, n := range w.asked {
			if n != 1 {
				t.Fatalf("seed %d: request %d was answered %d times", seed, id, n)
			}
		}
	}
}

// A client is what a consumer remembers.
type client struct {
	name       string
	static     bool
	member     string
	generation int32
	leads      []string // members to assign to
}

type world struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	m       *Machine
	ms      int64
	log     []Record
	last    RequestID
	asked   map[RequestID]int
	waits   map[RequestID]*client
	clients []*client
	highest int32
}

func (w *world) time() time.Time { return time.UnixMilli(w.ms) }

func (w *world) step() {
	w.ms += w.rng.Int64N(3000)
	if w.rng.IntN(4) == 0 {
		w.take(w.m.Tick(w.time()))
		return
	}
	c := w.clients[w.rng.IntN(len(w.clients))]
	w.last++
	w.asked[w.last], w.waits[w.last] = 0, c
	w.take(w.m.Step(w.time(), Request{ID: w.last, ClientID: c.name, NewID: fmt.Sprint(w.last), Body: w.body(c)}))
}

func (w *world) body(c *client) kmsg.Request {
	var instance *string
	if c.static {
		instance = &c.name
	}
	switch n := w.rng.IntN(20); {
	case n < 7:
		q := kmsg.NewPtrJoinGroupRequest()
		q.Version = []int16{3, 5, 9}[w.rng.IntN(3)]
		q.Group, q.MemberID, q.SessionTimeoutMillis, q.RebalanceTimeoutMillis, q.ProtocolType = "g", c.member, 10000, 20000, "consumer"
		if q.InstanceID = instance; c.static && w.rng.IntN(4) == 0 {
			q.MemberID = "" // it was restarted
		}
		for _, name := range []string{"range", "sticky"}[w.rng.IntN(2):] {
			q.Protocols = append(q.Protocols, kmsg.JoinGroupRequestProtocol{Name: name})
		}
		q.Protocols = append(q.Protocols, kmsg.JoinGroupRequestProtocol{Name: "all"})
		return q
	case n < 13:
		q := kmsg.NewPtrSyncGroupRequest()
		q.Group, q.MemberID, q.Generation, q.InstanceID = "g", c.member, c.generation, instance
		for _, id := range c.leads {
			q.GroupAssignment = append(q.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(id)})
		}
		return q
	case n < 16:
		q := kmsg.NewPtrHeartbeatRequest()
		q.Group, q.MemberID, q.Generation, q.InstanceID = "g", c.member, c.generation, instance
		return q
	case n < 18:
		q := kmsg.NewPtrOffsetCommitRequest()
		q.Version, q.Group, q.MemberID, q.Generation = 8, "g", c.member, c.generation
		q.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{
			{Partition: w.rng.Int32N(4), Offset: w.rng.Int64N(1000)}}}}
		return q
	case n < 19:
		q := kmsg.NewPtrLeaveGroupRequest()
		q.Version, q.Group = 3, "g"
		q.Members = []kmsg.LeaveGroupRequestMember{{MemberID: c.member, InstanceID: instance}}
		return q
	}
	q := kmsg.NewPtrDeleteGroupsRequest()
	q.Groups = []string{"g"}
	return q
}

func (w *world) take(records []Record, replies []Reply) {
	w.log = append(w.log, records...)
	for _, r := range replies {
		if w.asked[r.ID]++; w.asked[r.ID] > 1 {
			w.t.Fatalf("seed %d: request %d is answered again: %s", w.seed, r.ID, showResponse(r.Response))
		}
		c := w.waits[r.ID]
		switch r := r.Response.(type) {
		case *kmsg.JoinGroupResponse:
			w.joined(c, r)
		case *kmsg.HeartbeatResponse:
			if code := kafka.Code(r.ErrorCode); code == kafka.UnknownMemberID || code == kafka.FencedInstanceID {
				c.member, c.generation = "", -1
			}
		}
	}
	if w.m.groups["g"] == nil { // deleted, or grown old
		w.highest = 0
	}
}

func (w *world) joined(c *client, r *kmsg.JoinGroupResponse) {
	switch kafka.Code(r.ErrorCode) {
	case kafka.None:
	case kafka.MemberIDRequired:
		c.member = r.MemberID
		return
	default:
		c.member, c.generation, c.leads = "", -1, nil
		return
	}
	if r.Generation < w.highest {
		w.t.Fatalf("seed %d: generation %d after %d", w.seed, r.Generation, w.highest)
	}
	w.highest = r.Generation
	c.member, c.generation, c.leads = r.MemberID, r.Generation, nil
	for _, p := range r.Members {
		c.leads = append(c.leads, p.MemberID)
	}
	if len(r.Members) > 0 && r.LeaderID != r.MemberID {
		w.t.Fatalf("seed %d: %s hears of all members and does not lead", w.seed, r.MemberID)
	}
	if g := w.m.groups["g"]; len(r.Members) > 0 && g.generation == r.Generation && len(r.Members) != len(g.members) && g.state == completing {
		w.t.Fatalf("seed %d: the leader hears of %d members of %d", w.seed, len(r.Members), len(g.members))
	}
}

func (w *world) checkReload() {
	m := New(Config{})
	for _, r := range w.log {
		if err := m.Load(r.Key, r.Value); err != nil {
			w.t.Fatal(err)
		}
	}
	live, loaded := w.m.groups["g"], m.groups["g"]
	if live == nil || loaded == nil {
		if live != loaded {
			w.t.Fatalf("seed %d: live %v, loaded %v", w.seed, live != nil, loaded != nil)
		}
		return
	}
	if !maps.Equal(live.offsets, loaded.offsets) {
		w.t.Fatalf("seed %d: offsets %v, loaded %v", w.seed, live.offsets, loaded.offsets)
	}
	if loaded.generation > live.generation {
		w.t.Fatalf("seed %d: generation %d, loaded %d", w.seed, live.generation, loaded.generation)
	}
	if live.state == stable && !slices.Equal(live.order, loaded.order) || live.state == empty && loaded.state != empty {
		w.t.Fatalf("seed %d: %v with %v, loaded %v with %v", w.seed, live.state, live.order, loaded.state, loaded.order)
	}
}
