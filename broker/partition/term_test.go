package partition

import (
	"testing"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

// An append may be written in one term and counted in the next: the leader of the term
// that is over knows another ISR, and by that one all is revealed.
func TestWhatATermAppendedAtItsEndIsTheNextOnesToReveal(t *testing.T) {
	tp := kafka.TopicPartition{Topic: "orders", Partition: 3}
	dir, err := commitlog.OpenDir(vfs.NewMem(), "/logs", commitlog.DirOptions{ClusterID: "c", NodeID: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Abandon()
	s := &Settings{Policy: record.DefaultPolicy(tp), MinISR: 1}
	log, err := dir.Create(tp, kafka.TopicID{1}, &s.Log)
	if err != nil {
		t.Fatal(err)
	}
	p := New(log, s)
	term := Term{Epoch: 5, Broker: 1, Replicas: []kafka.BrokerID{1, 2}, ISR: []kafka.BrokerID{1}}
	if err := p.Lead(time.Unix(0, 0), term, nil); err != nil {
		t.Fatal(err)
	}
	over := p.lead.Load()
	var w record.Builder
	w.Add(record.Record{Value: []byte("v")})
	b, _, err := record.Parse(w.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(b, 0); err != nil {
		t.Fatal(err)
	}
	p.Resign()
	term.Epoch, term.ISR = 6, []kafka.BrokerID{1, 2}
	if err := p.Lead(time.Unix(0, 0), term, nil); err != nil {
		t.Fatal(err)
	}
	p.advance(over)
	if high := p.HighWatermark(); high != 0 {
		t.Errorf("the high watermark is %d, want 0: broker 2 is in sync in this term and has fetched nothing", high)
	}
}
