package api

import (
	"testing"
	"time"

	"varve/broker/kafka"
	"varve/broker/wire"
)

// asking is a request for n partitions, which wants a session or goes on with one.
func asking(n int, id, epoch int32) *wire.FetchRequest {
	req := &wire.FetchRequest{Version: 12, SessionID: id, SessionEpoch: epoch, Topics: []wire.FetchTopic{{Name: "orders"}}}
	for p := range n {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, wire.FetchPartition{Partition: int32(p)})
	}
	return req
}

// A reader that leaves does not say so, and its session stays for as long as there is
// room.
func TestFetchSessionsAreBoundedByTheirPartitionsToo(t *testing.T) {
	var ss sessions
	ss.init(1000)
	ss.mostParts = 250
	now := time.Unix(1000, 0)
	first, second := ss.open(asking(100, 0, 0), now), ss.open(asking(100, 0, 0), now)
	if first == nil || second == nil {
		t.Fatal("200 partitions of 250 found no room")
	}
	ss.give(first)
	ss.give(second)
	if s := ss.open(asking(100, 0, 0), now); s != nil {
		t.Fatal("300 partitions of 250 found room")
	}
	grown, code := ss.take(asking(1, second.id, 1), now)
	if code != kafka.None {
		t.Fatalf("going on with a session: %v", code)
	}
	grown.change(asking(140, second.id, 1))
	ss.give(grown)
	if _, code := ss.take(asking(0, second.id, 2), now); code != kafka.None || ss.mu.parts != 240 {
		t.Fatalf("%v, and %d partitions are counted, want 100 and 140", code, ss.mu.parts)
	}
	ss.give(second)
	if s := ss.open(asking(250, 0, 0), now.Add(2*evictAfter)); s == nil || ss.number() != 1 || ss.mu.parts != 250 {
		t.Fatalf("idle sessions did not make room: %d are there with %d partitions", ss.number(), ss.mu.parts)
	}
}
