package api

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

func TestASessionTellsAllAndThenWhatIsNew(t *testing.T) {
	r, c := threeWithRecords(t, nil)
	full := ask[*kmsg.FetchResponse](c, fetchOf("orders", 0, 0, map[int32]int64{0: 0, 1: 0, 2: 0}))
	if full.SessionID == 0 || !slices.Equal(partitionsOf(full), []int32{0, 1, 2}) {
		t.Fatalf("session %d, partitions %v", full.SessionID, partitionsOf(full))
	}
	id := full.SessionID
	next := ask[*kmsg.FetchResponse](c, fetchOf("orders", id, 1, map[int32]int64{0: 1, 1: 1, 2: 1}))
	if got := partitionsOf(next); next.SessionID != id || got != nil {
		t.Errorf("session %d, partitions %v without news", next.SessionID, got)
	}
	r.append("orders", 1, 2, 10)
	next = ask[*kmsg.FetchResponse](c, fetchOf("orders", id, 2, nil))
	if p := one(t, next); p.Partition != 1 || p.HighWatermark != 3 || len(p.RecordBatches) == 0 {
		t.Errorf("the news: %+v", p)
	}
	if n := r.broker.Sessions(); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

func TestASessionGainsAndForgetsPartitions(t *testing.T) {
	r, c := threeWithRecords(t, nil)
	id := ask[*kmsg.FetchResponse](c, fetchOf("orders", 0, 0, map[int32]int64{0: 1})).SessionID
	gained := ask[*kmsg.FetchResponse](c, fetchOf("orders", id, 1, map[int32]int64{2: 1}))
	if got := partitionsOf(gained); !slices.Equal(got, []int32{2}) {
		t.Errorf("told %v of the partition gained", got)
	}
	forget := fetchOf("orders", id, 2, nil)
	forget.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "orders", Partitions: []int32{0, 7}}}
	ask[*kmsg.FetchResponse](c, forget)
	r.append("orders", 0, 1, 10)
	r.append("orders", 2, 1, 10)
	if got := partitionsOf(ask[*kmsg.FetchResponse](c, fetchOf("orders", id, 3, nil))); !slices.Equal(got, []int32{2}) {
		t.Errorf("told %v after 0 was forgotten", got)
	}
	forget = fetchOf("orders", id, 4, nil)
	forget.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "orders", Partitions: []int32{2}}}
	if got := ask[*kmsg.FetchResponse](c, forget); got.SessionID != 0 || r.broker.Sessions() != 0 {
		t.Errorf("session %d, %d in all, after the last partition was forgotten", got.SessionID, r.broker.Sessions())
	}
}

func TestWhoNamesAWrongSessionBeginsAnew(t *testing.T) {
	_, c := threeWithRecords(t, nil)
	id := ask[*kmsg.FetchResponse](c, fetchOf("orders", 0, 0, map[int32]int64{0: 1})).SessionID
	byID := fetchOf("orders", id, 1, nil)
	byID.Version = 13
	for _, q := range []struct {
		what string
		req  *kmsg.FetchRequest
		want kafka.Code
	}{
		{"an unknown session", fetchOf("orders", id+1, 1, nil), kafka.FetchSessionIDNotFound},
		{"an epoch without a session", fetchOf("orders", 0, 1, nil), kafka.FetchSessionIDNotFound},
		{"a later epoch", fetchOf("orders", id, 2, nil), kafka.InvalidFetchSessionEpoch},
		{"an epoch below -1", fetchOf("orders", id, -2, nil), kafka.InvalidFetchSessionEpoch},
		{"ids in a session of names", byID, kafka.FetchSessionTopicIDError},
		{"the right one", fetchOf("orders", id, 1, nil), kafka.None},
	} {
		resp := ask[*kmsg.FetchResponse](c, q.req)
		wantCode(t, q.what, resp.ErrorCode, q.want)
		if q.want != kafka.None && (resp.SessionID != 0 || len(resp.Topics) > 0) {
			t.Errorf("%s: session %d and %v beside the error", q.what, resp.SessionID, partitionsOf(resp))
		}
	}
}

func TestAClientEndsItsSession(t *testing.T) {
	r, c := threeWithRecords(t, nil)
	id := ask[*kmsg.FetchResponse](c, fetchOf("orders", 0, 0, map[int32]int64{0: 1})).SessionID
	last := ask[*kmsg.FetchResponse](c, fetchOf("orders", id, -1, map[int32]int64{0: 0}))
	if p := one(t, last); last.SessionID != 0 || len(p.RecordBatches) == 0 {
		t.Errorf("session %d, %+v", last.SessionID, p)
	}
	if n := r.broker.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestWithoutRoomThereIsNoSession(t *testing.T) {
	r, c := threeWithRecords(t, func(o *Options) { o.FetchSessions = 1 })
	if id := ask[*kmsg.FetchResponse](c, fetchOf("orders", 0, 0, map[int32]int64{0: 1})).SessionID; id == 0 {
		t.Fatal("no session where there is room for one")
	}
	other := ask[*kmsg.FetchResponse](r.dial(), fetchOf("orders", 0, 0, map[int32]int64{0: 0}))
	if p := one(t, other); other.SessionID != 0 || len(p.RecordBatches) == 0 {
		t.Errorf("session %d, %+v, want the records without a session", other.SessionID, p)
	}
}

func TestTheSessionIdleLongestMakesRoom(t *testing.T) {
	var ss sessions
	ss.init(2)
	f := &fetcher{}
	f.req.Version = 12
	decode(t, f, fetchOf("orders", 0, 0, map[int32]int64{0: 0}))
	began := time.Now()
	first := ss.open(&f.req, began)
	second := ss.open(&f.req, began.Add(time.Second))
	ss.give(first)
	ss.give(second)
	if got := ss.open(&f.req, began.Add(evictAfter-time.Second)); got != nil {
		t.Error("a session that was in use lately made room")
	}
	third := ss.open(&f.req, began.Add(evictAfter+time.Second))
	if third == nil || ss.mu.byID[first.id] != nil || ss.mu.byID[second.id] == nil {
		t.Errorf("third %v; first there: %v, second there: %v", third != nil, ss.mu.byID[first.id] != nil, ss.mu.byID[second.id] != nil)
	}
}

// decode reads a request as the broker does.
func decode(t *testing.T, f *fetcher, req *kmsg.FetchRequest) {
	t.Helper()
	if err := f.req.Decode(req.AppendTo(nil), req.Version); err != nil {
		t.Fatal(err)
	}
}

func TestALostConnectionsSessionIsWatchedByNobody(t *testing.T) {
	r, c := threeWithRecords(t, nil)
	id := ask[*kmsg.FetchResponse](c, fetchOf("orders", 0, 0, map[int32]int64{0: 1})).SessionID
	s := r.broker.sessions.mu.byID[id]
	c.nc.Close()
	until(t, "the connection has ended", func() bool { return r.server.Stats().Connections == 0 })
	if s.owner != nil {
		t.Error("the session still watches for a connection that has ended")
	}
	r.append("orders", 0, 1, 10)
	if p := one(t, ask[*kmsg.FetchResponse](r.dial(), fetchOf("orders", id, 1, nil))); len(p.RecordBatches) == 0 {
		t.Errorf("another connection goes on with the session and gets %+v", p)
	}
}
