package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"varve/broker/kafka"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// anyProduce is a request of the given version with random topics.
func anyProduce(rng *rand.Rand, version int16) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Version = version
	r.Acks, r.TimeoutMillis = int16(rng.IntN(3)-1), rng.Int32()
	if rng.IntN(2) == 0 {
		r.TransactionID = kmsg.StringPtr(name(rng))
	}
	for range rng.IntN(4) {
		t := kmsg.NewProduceRequestTopic()
		t.Topic, t.TopicID = name(rng), [16]byte{byte(rng.Int())}
		for range rng.IntN(4) {
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition = rng.Int32N(9)
			if rng.IntN(8) > 0 {
				p.Records = make([]byte, rng.IntN(300))
				p.Records = append(p.Records, byte(rng.Int()))
			}
			if version >= 9 && rng.IntN(8) == 0 {
				p.UnknownTags.Set(200, []byte("later"))
			}
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	if version >= 9 && rng.IntN(4) == 0 {
		r.UnknownTags.Set(9, []byte{1})
	}
	return r
}

func name(rng *rand.Rand) string { return string(bytes.Repeat([]byte{'t'}, rng.IntN(200))) }

// sameProduce fails where the decoded request differs from kmsg's.
func sameProduce(t *testing.T, got *ProduceRequest, want *kmsg.ProduceRequest) {
	t.Helper()
	if got.Acks != want.Acks || got.Timeout != time.Duration(want.TimeoutMillis)*time.Millisecond || len(got.Topics) != len(want.Topics) {
		t.Fatalf("v%d: acks %d timeout %v topics %d, want %d %d %d", want.Version, got.Acks, got.Timeout, len(got.Topics), want.Acks, want.TimeoutMillis, len(want.Topics))
	}
	if got.Transactional != (want.TransactionID != nil) || got.Transactional && got.TransactionalID != *want.TransactionID {
		t.Fatalf("v%d: transactional id %q %v, want %v", want.Version, got.TransactionalID, got.Transactional, want.TransactionID)
	}
	for i := range want.Topics {
		g, w := &got.Topics[i], &want.Topics[i]
		if want.Version < 13 && g.Name != w.Topic || want.Version >= 13 && g.ID != kafka.TopicID(w.TopicID) || len(g.Partitions) != len(w.Partitions) {
			t.Fatalf("v%d topic %d: %q %v with %d partitions, want %q %x with %d", want.Version, i, g.Name, g.ID, len(g.Partitions), w.Topic, w.TopicID, len(w.Partitions))
		}
		for j := range w.Partitions {
			gp, wp := g.Partitions[j], w.Partitions[j]
			if gp.Partition != wp.Partition || !bytes.Equal(gp.Records, wp.Records) || (gp.Records == nil) != (wp.Records == nil) {
				t.Fatalf("v%d topic %d partition %d differs", want.Version, i, j)
			}
		}
	}
}

func TestProduceIsDecodedAsKmsgDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var got ProduceRequest
	for version := int16(3); version <= 13; version++ {
		for range 200 {
			want := anyProduce(rng, version)
			if err := got.Decode(want.AppendTo(nil), version); err != nil {
				t.Fatalf("v%d: %v", version, err)
			}
			sameProduce(t, &got, want)
		}
	}
}

func TestProduceCutAnywhereIsAnErrorAndKeepsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var r ProduceRequest
	for version := int16(3); version <= 13; version++ {
		body := anyProduce(rng, version).AppendTo(nil)
		for n := range len(body) {
			if err := r.Decode(body[:n], version); err == nil {
				t.Errorf("v%d: %d of %d bytes pass", version, n, len(body))
			}
			if len(r.Topics) > 0 {
				t.Errorf("v%d: topics are left after an error", version)
			}
		}
	}
}

func TestHugeCountsAllocateNothing(t *testing.T) {
	body := []byte{0, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f} // 2^32-2 topics
	n := testing.AllocsPerRun(10, func() {
		var r ProduceRequest
		if r.Decode(body, 9) == nil || cap(r.Topics) > 0 {
			t.Error("a count beyond the request is believed")
		}
	})
	if n > 8 { // the error's own
		t.Errorf("%v allocations", n)
	}
}

func TestProduceResponsesAreKmsgsByteForByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for version := int16(3); version <= 13; version++ {
		for range 100 {
			got, want := anyProduceResponse(rng, version)
			if w := want.AppendTo(nil); !bytes.Equal(got, w) {
				t.Fatalf("v%d:\n%x, want\n%x", version, got, w)
			}
		}
	}
}

func anyProduceResponse(rng *rand.Rand, version int16) ([]byte, *kmsg.ProduceResponse) {
	v := ProduceResponse(version)
	want := kmsg.NewPtrProduceResponse()
	want.Version = version
	topics := rng.IntN(3)
	got := v.Begin(nil, topics)
	for range topics {
		t := kmsg.NewProduceResponseTopic()
		t.Topic, t.TopicID = name(rng), [16]byte{byte(rng.Int())}
		n := rng.IntN(3)
		got = v.Topic(got, t.Topic, t.TopicID, n)
		for range n {
			r, p := anyProduceResult(rng, version)
			t.Partitions = append(t.Partitions, p)
			got = v.Partition(got, &r)
		}
		got = v.EndTopic(got)
		want.Topics = append(want.Topics, t)
	}
	want.ThrottleMillis = rng.Int32()
	nodes := anyNodes(rng)
	if version >= 10 {
		for _, n := range nodes {
			want.Brokers = append(want.Brokers, kmsg.ProduceResponseBroker{NodeID: int32(n.ID), Host: n.Host, Port: n.Port, Rack: rack(n)})
		}
	}
	return v.End(got, want.ThrottleMillis, nodes), want
}

func anyProduceResult(rng *rand.Rand, version int16) (ProduceResult, kmsg.ProduceResponseTopicPartition) {
	r := ProduceResult{rng.Int32(), kafka.Code(rng.IntN(100)), kafka.Offset(rng.Int64()), rng.Int64(), kafka.Offset(rng.Int64()), nil, "", LeaderHint{}}
	p := kmsg.NewProduceResponseTopicPartition()
	p.Partition, p.ErrorCode, p.BaseOffset = r.Partition, int16(r.Code), int64(r.Base)
	p.LogAppendTime, p.LogStartOffset = r.AppendTime, int64(r.LogStart)
	if rng.IntN(2) == 0 {
		r.Message = "refused"
		p.ErrorMessage = &r.Message
		r.Records = []RecordError{{3, "no key"}, {4, ""}}
		p.ErrorRecords = []kmsg.ProduceResponseTopicPartitionErrorRecord{{RelativeOffset: 3, ErrorMessage: kmsg.StringPtr("no key")}, {RelativeOffset: 4}}
	}
	if rng.IntN(2) == 0 {
		r.Leader = LeaderHint{true, 5, 6}
		if version >= 10 {
			p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 5, 6
		}
	}
	return r, p
}

func anyNodes(rng *rand.Rand) []Node {
	nodes := []Node{{1, "a.example", 9092, ""}, {2, string(bytes.Repeat([]byte{'h'}, 130)), 9093, "r"}, {3, "", 0, string(bytes.Repeat([]byte{'r'}, 128))}}
	return nodes[:rng.IntN(4)]
}

func rack(n Node) *string {
	if n.Rack == "" {
		return nil
	}
	return &n.Rack
}

func TestSetCodeOverwritesAPartitionsCode(t *testing.T) {
	v := ProduceResponse(9)
	got := v.Partition(nil, &ProduceResult{Partition: 4, Base: 9})
	SetCode(got, kafka.RequestTimedOut)
	want := v.Partition(nil, &ProduceResult{Partition: 4, Base: 9, Code: kafka.RequestTimedOut})
	if !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func FuzzProduce(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 8))
	for version := int16(3); version <= 13; version++ {
		f.Add(version, anyProduce(rng, version).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if !Supported(Produce, version) {
			return
		}
		var got ProduceRequest
		if got.Decode(body, version) != nil {
			return
		}
		want := kmsg.NewPtrProduceRequest()
		want.Version = version
		if err := want.ReadFrom(body); err != nil {
			t.Fatalf("v%d passes here and not there: %v", version, err)
		}
		sameProduce(t, &got, want)
	})
}

// BenchmarkProduce asks what a request of one 16 KiB batch costs to decode and
// answer, without its records.
func BenchmarkProduce(b *testing.B) {
	r := kmsg.NewPtrProduceRequest()
	r.Version = 9
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "bench"
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = make([]byte, 16<<10)
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	body := r.AppendTo(nil)

	var req ProduceRequest
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		if err := req.Decode(body, 9); err != nil {
			b.Fatal(err)
		}
		v := ProduceResponse(9)
		out = v.Begin(out[:0], len(req.Topics))
		for i := range req.Topics {
			t := &req.Topics[i]
			out = v.Topic(out, t.Name, t.ID, len(t.Partitions))
			for j := range t.Partitions {
				out = v.Partition(out, &ProduceResult{Partition: t.Partitions[j].Partition, Base: 42, AppendTime: -1})
			}
			out = v.EndTopic(out)
		}
		out = v.End(out, 0, nil)
	}
}
