package api

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/ha/controller"
)

func deleteTopic(r *rig, name string) {
	r.t.Helper()
	deleted := r.do(controller.DeleteTopics{Topics: []controller.TopicRef{{Name: &name}}}).(controller.TopicsDeleted)
	if err := deleted.Topics[0].Err; err != nil {
		r.t.Fatal(err)
	}
}

// produceOf is a produce to one partition.
func produceOf(topic string, partition int32, acks int16, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, 10_000
	t, p := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func produced(t *testing.T, resp *kmsg.ProduceResponse) kmsg.ProduceResponseTopicPartition {
	t.Helper()
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		t.Fatalf("answered %+v, want one partition", resp.Topics)
	}
	return resp.Topics[0].Partitions[0]
}

func TestProduceIsAnsweredWithTheOffset(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	c := r.dial()
	for i, acks := range []int16{1, -1} {
		p := produced(t, ask[*kmsg.ProduceResponse](c, produceOf("orders", 0, acks, batch(2, 10))))
		if p.ErrorCode != 0 || p.BaseOffset != int64(2*i) || p.LogStartOffset != 0 || p.LogAppendTime != -1 {
			t.Errorf("acks=%d: %+v", acks, p)
		}
	}
}

func TestProduceRefusals(t *testing.T) {
	r := newRig(t, nil)
	id := r.topic("orders", 1)
	damaged := batch(1, 10)
	damaged[len(damaged)-1] ^= 1
	byID := produceOf("", 0, 1, batch(1, 10))
	byID.Version, byID.Topics[0].TopicID = 13, kafka.TopicID{99}
	known := produceOf("", 0, 1, batch(1, 10))
	known.Version, known.Topics[0].TopicID = 13, id
	c := r.dial()
	for _, q := range []struct {
		what string
		req  *kmsg.ProduceRequest
		want kafka.Code
	}{
		{"no such topic", produceOf("nothing", 0, 1, batch(1, 10)), kafka.UnknownTopicOrPartition},
		{"no such partition", produceOf("orders", 7, 1, batch(1, 10)), kafka.UnknownTopicOrPartition},
		{"no such id", byID, kafka.UnknownTopicID},
		{"acks=2", produceOf("orders", 0, 2, batch(1, 10)), kafka.InvalidRequiredAcks},
		{"damaged records", produceOf("orders", 0, 1, damaged), kafka.CorruptMessage},
		{"by id", known, kafka.None},
	} {
		p := produced(t, ask[*kmsg.ProduceResponse](c, q.req))
		wantCode(t, q.what, p.ErrorCode, q.want)
		if q.want != kafka.None && p.BaseOffset != -1 {
			t.Errorf("%s: base offset %d beside the error", q.what, p.BaseOffset)
		}
	}
}

func TestAcksZeroIsAnsweredByNothing(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	c := r.dial()
	c.send(produceOf("orders", 0, 0, batch(1, 10)))
	// the next answer on the connection is the next request's
	p := produced(t, ask[*kmsg.ProduceResponse](c, produceOf("orders", 0, 1, batch(1, 10))))
	if p.BaseOffset != 1 {
		t.Errorf("the second record is at %d", p.BaseOffset)
	}
}

func TestAcksZeroErrorsCloseTheConnection(t *testing.T) {
	r := newRig(t, nil)
	c := r.dial()
	c.send(produceOf("nothing", 0, 0, batch(1, 10)))
	c.wantClosed()
}

func TestATransactionalProduceClosesTheConnection(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	req := produceOf("orders", 0, -1, batch(1, 10))
	req.TransactionID = kmsg.StringPtr("t")
	c := r.dial()
	c.send(req)
	c.wantClosed()
}

// replicated makes a topic whose second replica is another broker that is in sync, so
// that acks=all waits.
func replicated(r *rig) {
	r.t.Helper()
	r.controller.mu.Lock()
	defer r.controller.mu.Unlock()
	old := r.controller.mu.image
	r.controller.mu.image = old.Apply(old.N()+1, []metadata.Record{metadata.NewTopic{ID: kafka.TopicID{77}, Name: "copied"},
		metadata.Partitions{Topic: kafka.TopicID{77}, Sets: []metadata.ReplicaSet{{Replicas: []kafka.BrokerID{1, 2}}}, Slots: []metadata.Slot{{ISR: 3}}}})
	r.controller.follow(old, r.controller.mu.image)
}

func TestAcksAllWaitsWhileTheNextIsServed(t *testing.T) {
	r := newRig(t, nil)
	replicated(r)
	waits := produceOf("copied", 0, -1, batch(1, 10))
	waits.TimeoutMillis = 300
	c := r.dial()
	c.send(waits)
	c.send(produceOf("copied", 0, 1, batch(1, 10)))
	p, _ := r.broker.opt.Host.Find("copied", 0)
	until(t, "both are appended", func() bool { return p.Log().End() == 2 })
	c.n = 1
	resp, err := c.receive(waits)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, "acks=all without the other replica", produced(t, resp.(*kmsg.ProduceResponse)).ErrorCode, kafka.RequestTimedOut)
	c.n = 2
	if resp, err = c.receive(waits); err != nil || produced(t, resp.(*kmsg.ProduceResponse)).BaseOffset != 1 {
		t.Errorf("the answer behind it: %+v (%v)", resp, err)
	}
}

func TestAcksAllIsToldThatTheTermEnded(t *testing.T) {
	r := newRig(t, nil)
	replicated(r)
	req := produceOf("copied", 0, -1, batch(1, 10))
	c := r.dial()
	c.send(req)
	p, _ := r.broker.opt.Host.Find("copied", 0)
	until(t, "it is appended", func() bool { return p.Log().End() == 1 })
	p.Resign()
	resp, err := c.receive(req)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, "acks=all", produced(t, resp.(*kmsg.ProduceResponse)).ErrorCode, kafka.NotLeaderOrFollower)
}

func TestLogAppendTimeIsInTheAnswer(t *testing.T) {
	r := newRig(t, nil)
	value := "LogAppendTime"
	r.topic("orders", 1, controller.NamedValue{Name: "message.timestamp.type", Value: &value})
	if p := produced(t, ask[*kmsg.ProduceResponse](r.dial(), produceOf("orders", 0, 1, batch(1, 10)))); p.LogAppendTime <= 0 {
		t.Errorf("%+v", p)
	}
}

func TestProducerIDsAreNeverTheSame(t *testing.T) {
	r := newRig(t, nil)
	c := r.dial()
	seen := map[int64]bool{}
	for range 2500 { // more than two blocks
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version = 4
		resp := ask[*kmsg.InitProducerIDResponse](c, req)
		if resp.ErrorCode != 0 || seen[resp.ProducerID] || resp.ProducerEpoch != 0 {
			t.Fatalf("after %d: %+v", len(seen), resp)
		}
		seen[resp.ProducerID] = true
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID = 4, kmsg.StringPtr("t")
	wantCode(t, "a transactional id", ask[*kmsg.InitProducerIDResponse](c, req).ErrorCode, kafka.InvalidRequest)
	r.controller.mu.Lock()
	r.controller.mu.refuse = context.DeadlineExceeded
	r.controller.mu.Unlock()
	r.broker.opt.Producers.mu.next = r.broker.opt.Producers.mu.end
	req.TransactionalID = nil
	wantCode(t, "no block to be had", ask[*kmsg.InitProducerIDResponse](c, req).ErrorCode, kafka.CoordinatorNotAvailable)
}
