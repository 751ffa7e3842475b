package api

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/record"
)

// fetchOf is a fetch of partitions of one topic by name, each from an offset.
func fetchOf(topic string, id, epoch int32, from map[int32]int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MaxBytes, req.MinBytes = 12, -1, 1<<20, 0
	req.SessionID, req.SessionEpoch = id, epoch
	if len(from) == 0 {
		return req
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	for n := int32(0); n < 100; n++ {
		if at, ok := from[n]; ok {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.PartitionMaxBytes = n, at, 1<<20
			t.Partitions = append(t.Partitions, p)
		}
	}
	req.Topics = append(req.Topics, t)
	return req
}

// partitionsOf lists the partitions of an answer in order.
func partitionsOf(resp *kmsg.FetchResponse) (out []int32) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			out = append(out, p.Partition)
		}
	}
	return out
}

// one is the only partition of an answer.
func one(t *testing.T, resp *kmsg.FetchResponse) kmsg.FetchResponseTopicPartition {
	t.Helper()
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		t.Fatalf("answered %v, want one partition", partitionsOf(resp))
	}
	return resp.Topics[0].Partitions[0]
}

// threeWithRecords is a broker with topic "orders", three partitions, one record each.
func threeWithRecords(t *testing.T, change func(*Options)) (*rig, *peer) {
	r := newRig(t, change)
	r.topic("orders", 3)
	for p := range int32(3) {
		r.append("orders", p, 1, 10)
	}
	return r, r.dial()
}

func TestEveryPartitionHasItsTurn(t *testing.T) {
	r, c := threeWithRecords(t, nil)
	for p := range int32(3) {
		r.append("orders", p, 1, 1000)
	}
	full := fetchOf("orders", 0, 0, map[int32]int64{0: 1, 1: 1, 2: 1})
	full.MaxBytes = 1
	id := ask[*kmsg.FetchResponse](c, full).SessionID
	var turns []int32
	for epoch := range int32(3) {
		req := fetchOf("orders", id, epoch+1, nil)
		req.MaxBytes = 1 // one batch at a time
		resp := ask[*kmsg.FetchResponse](c, req)
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				if len(p.RecordBatches) > 0 {
					turns = append(turns, p.Partition)
				}
			}
		}
	}
	if !slices.Equal(turns, []int32{1, 2, 0}) {
		t.Errorf("served in the order %v, want 1 2 0 after 0", turns)
	}
}

func TestTheFirstBatchIsWholeAndTheRestWithinTheLimit(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 2)
	r.append("orders", 0, 1, 5000)
	r.append("orders", 1, 1, 5000)
	req := fetchOf("orders", 0, -1, map[int32]int64{0: 0, 1: 0})
	req.MaxBytes = 100
	resp := ask[*kmsg.FetchResponse](r.dial(), req)
	if got := partitionsOf(resp); !slices.Equal(got, []int32{0, 1}) {
		t.Fatalf("told %v", got)
	}
	first, second := resp.Topics[0].Partitions[0], resp.Topics[0].Partitions[1]
	if b, rest, err := record.Parse(first.RecordBatches); err != nil || len(rest) > 0 || !b.ValidCRC() {
		t.Errorf("the first: %v, %d bytes more (%v)", b, len(rest), err)
	}
	if len(second.RecordBatches) != 0 || second.HighWatermark != 1 {
		t.Errorf("the second: %d bytes, high watermark %d", len(second.RecordBatches), second.HighWatermark)
	}
}

func TestAFetchWaitsForMinBytes(t *testing.T) {
	r, c := threeWithRecords(t, nil)
	for _, session := range []struct{ id, epoch int32 }{{0, -1}, {0, 0}} {
		t.Run(fmt.Sprintf("epoch %d", session.epoch), func(t *testing.T) {
			p, _ := r.broker.opt.Host.Find("orders", 0)
			end := int64(p.HighWatermark())
			req := fetchOf("orders", session.id, session.epoch, map[int32]int64{0: end})
			req.MinBytes, req.MaxWaitMillis = 3000, 60_000
			served := r.broker.Served()[1]
			c.send(req)
			until(t, "the fetch is being served", func() bool { return r.broker.Served()[1] > served })
			r.append("orders", 0, 1, 1000)
			r.append("orders", 0, 1, 2500)
			resp, err := c.receive(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := one(t, resp.(*kmsg.FetchResponse)); len(got.RecordBatches) < 3000 {
				t.Errorf("%d bytes, want both batches", len(got.RecordBatches))
			}
		})
	}
}

func TestAFetchWaitsNoLongerThanItSays(t *testing.T) {
	_, c := threeWithRecords(t, nil)
	req := fetchOf("orders", 0, -1, map[int32]int64{0: 0})
	req.MinBytes, req.MaxWaitMillis = 1<<20, 50
	began := time.Now()
	p := one(t, ask[*kmsg.FetchResponse](c, req))
	if took := time.Since(began); took < 50*time.Millisecond || len(p.RecordBatches) == 0 {
		t.Errorf("%d bytes after %v, want what there is after 50 ms", len(p.RecordBatches), took)
	}
}

func TestAnErrorDoesNotWait(t *testing.T) {
	_, c := threeWithRecords(t, nil)
	for what, q := range map[string]struct {
		topic string
		from  map[int32]int64
		want  kafka.Code
	}{
		"beyond the end": {"orders", map[int32]int64{0: 99}, kafka.OffsetOutOfRange},
		"no such topic":  {"nothing", map[int32]int64{0: 0}, kafka.UnknownTopicOrPartition},
		"no partition":   {"orders", map[int32]int64{9: 0}, kafka.UnknownTopicOrPartition},
	} {
		req := fetchOf(q.topic, 0, -1, q.from)
		req.MinBytes, req.MaxWaitMillis = 1, 60_000
		p := one(t, ask[*kmsg.FetchResponse](c, req))
		wantCode(t, what, p.ErrorCode, q.want)
	}
}

func TestADeletedTopicEndsAWait(t *testing.T) {
	r, c := threeWithRecords(t, nil)
	req := fetchOf("orders", 0, 0, map[int32]int64{0: 1})
	req.MinBytes, req.MaxWaitMillis = 1, 60_000
	served := r.broker.Served()[1]
	c.send(req)
	until(t, "the fetch is being served", func() bool { return r.broker.Served()[1] > served })
	name := "orders"
	deleteTopic(r, name)
	resp, err := c.receive(req)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, "fetch", one(t, resp.(*kmsg.FetchResponse)).ErrorCode, kafka.UnknownTopicOrPartition)
}

func TestASessionFindsATopicThatIsMadeAgain(t *testing.T) {
	r, c := threeWithRecords(t, nil)
	id := ask[*kmsg.FetchResponse](c, fetchOf("orders", 0, 0, map[int32]int64{0: 1})).SessionID
	deleteTopic(r, "orders")
	wantCode(t, "gone", one(t, ask[*kmsg.FetchResponse](c, fetchOf("orders", id, 1, nil))).ErrorCode, kafka.UnknownTopicOrPartition)
	r.topic("orders", 1)
	r.append("orders", 0, 1, 10)
	p := one(t, ask[*kmsg.FetchResponse](c, fetchOf("orders", id, 2, map[int32]int64{0: 0})))
	if p.ErrorCode != 0 || p.HighWatermark != 1 || len(p.RecordBatches) == 0 {
		t.Errorf("made again: %+v", p)
	}
}

func TestFetchByTopicID(t *testing.T) {
	r := newRig(t, nil)
	id := r.topic("orders", 1)
	r.append("orders", 0, 1, 10)
	req := fetchOf("", 0, -1, map[int32]int64{0: 0})
	req.Version, req.Topics[0].TopicID = 13, id
	if p := one(t, ask[*kmsg.FetchResponse](r.dial(), req)); len(p.RecordBatches) == 0 {
		t.Errorf("by id: %+v", p)
	}
	req.Topics[0].TopicID = kafka.TopicID{99}
	wantCode(t, "an unknown id", one(t, ask[*kmsg.FetchResponse](r.dial(), req)).ErrorCode, kafka.UnknownTopicID)
}
