package wire

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"varve/broker/kafka"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func anyFetch(rng *rand.Rand, version int16) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version = version
	r.ReplicaID = -1
	r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.IsolationLevel = rng.Int32(), rng.Int32(), rng.Int32(), int8(rng.IntN(2))
	r.SessionID, r.SessionEpoch = rng.Int32(), rng.Int32()
	for range rng.IntN(4) {
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = name(rng), [16]byte{byte(rng.Int())}
		for range rng.IntN(5) {
			t.Partitions = append(t.Partitions, anyFetchPartition(rng))
		}
		r.Topics = append(r.Topics, t)
	}
	for range rng.IntN(3) {
		t := kmsg.NewFetchRequestForgottenTopic()
		t.Topic, t.TopicID, t.Partitions = name(rng), [16]byte{byte(rng.Int())}, []int32{rng.Int32(), 2}[:rng.IntN(3)]
		r.ForgottenTopics = append(r.ForgottenTopics, t)
	}
	r.Rack = name(rng)
	if version >= 15 && rng.IntN(2) == 0 {
		r.ReplicaState.ID, r.ReplicaState.Epoch = 3, 77
	}
	if version >= 12 && rng.IntN(2) == 0 {
		r.ClusterID = kmsg.StringPtr("cluster")
		r.UnknownTags.Set(90, []byte{1, 2})
	}
	return r
}

func anyFetchPartition(rng *rand.Rand) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = rng.Int32(), rng.Int64(), rng.Int32()
	p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = rng.Int32(), rng.Int32(), rng.Int64()
	if rng.IntN(3) == 0 {
		p.ReplicaDirectoryID = [16]byte{1, 2}
		p.HighWatermark = rng.Int64()
		p.UnknownTags.Set(300, []byte("later"))
	}
	return p
}

// sameFetch fails where the decoded request differs from what kmsg reads from the
// same bytes.
func sameFetch(t *testing.T, got *FetchRequest, body []byte) {
	t.Helper()
	want := kmsg.NewPtrFetchRequest()
	want.Version = got.Version
	if err := want.ReadFrom(body); err != nil {
		t.Fatalf("v%d passes here and not there: %v", got.Version, err)
	}
	replica, epoch := want.ReplicaID, want.ReplicaState.Epoch
	if want.Version >= 15 || got.ReplicaEpoch != -1 {
		replica = want.ReplicaState.ID
	}
	if int32(got.Replica) != replica || int64(got.ReplicaEpoch) != epoch {
		t.Fatalf("v%d: replica %d epoch %d, want %d %d", want.Version, got.Replica, got.ReplicaEpoch, replica, epoch)
	}
	if got.MaxWait != time.Duration(want.MaxWaitMillis)*time.Millisecond || got.MinBytes != want.MinBytes || got.MaxBytes != want.MaxBytes ||
		got.ReadCommitted != (want.IsolationLevel == 1) || got.SessionID != want.SessionID || got.SessionEpoch != want.SessionEpoch || got.Rack != want.Rack {
		t.Fatalf("v%d: %+v, want %+v", want.Version, got, want)
	}
	if len(got.Topics) != len(want.Topics) || len(got.Forgotten) != len(want.ForgottenTopics) {
		t.Fatalf("v%d: %d topics, %d forgotten, want %d, %d", want.Version, len(got.Topics), len(got.Forgotten), len(want.Topics), len(want.ForgottenTopics))
	}
	for i := range want.Topics {
		sameFetchTopic(t, &got.Topics[i], &want.Topics[i])
	}
	for i := range want.ForgottenTopics {
		g, w := &got.Forgotten[i], &want.ForgottenTopics[i]
		if g.Name != w.Topic || g.ID != kafka.TopicID(w.TopicID) || len(g.Partitions) != len(w.Partitions) {
			t.Fatalf("forgotten %+v, want %+v", g, w)
		}
		for j := range w.Partitions {
			if g.Partitions[j] != w.Partitions[j] {
				t.Fatalf("forgotten %+v, want %+v", g, w)
			}
		}
	}
}

func sameFetchTopic(t *testing.T, g *FetchTopic, w *kmsg.FetchRequestTopic) {
	t.Helper()
	if g.Name != w.Topic || g.ID != kafka.TopicID(w.TopicID) || len(g.Partitions) != len(w.Partitions) {
		t.Fatalf("topic %+v, want %+v", g, w)
	}
	for j := range w.Partitions {
		p := w.Partitions[j]
		want := FetchPartition{
			Partition: p.Partition, LeaderEpoch: kafka.LeaderEpoch(p.CurrentLeaderEpoch), Offset: kafka.Offset(p.FetchOffset),
			LastFetchedEpoch: kafka.LeaderEpoch(p.LastFetchedEpoch), LogStart: kafka.Offset(p.LogStartOffset), MaxBytes: p.PartitionMaxBytes,
			Directory: p.ReplicaDirectoryID, HighWatermark: kafka.Offset(p.HighWatermark),
		}
		if g.Partitions[j] != want {
			t.Fatalf("partition %+v, want %+v", g.Partitions[j], want)
		}
	}
}

func TestFetchIsDecodedAsKmsgDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var got FetchRequest
	for version := int16(4); version <= 18; version++ {
		for range 100 {
			body := anyFetch(rng, version).AppendTo(nil)
			if err := got.Decode(body, version); err != nil {
				t.Fatalf("v%d: %v", version, err)
			}
			sameFetch(t, &got, body)
		}
	}
}

func TestFetchCutAnywhereIsAnErrorAndKeepsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var r FetchRequest
	for version := int16(4); version <= 18; version++ {
		body := anyFetch(rng, version).AppendTo(nil)
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

func FuzzFetch(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 8))
	for version := int16(4); version <= 18; version++ {
		f.Add(version, anyFetch(rng, version).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		var got FetchRequest
		if !Supported(Fetch, version) || got.Decode(body, version) != nil {
			return
		}
		sameFetch(t, &got, body)
	})
}

func TestFetchResponsesAreKmsgsByteForByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for version := int16(4); version <= 18; version++ {
		for range 100 {
			got, want := anyFetchResponse(rng, version)
			if w := want.AppendTo(nil); !bytes.Equal(got, w) {
				t.Fatalf("v%d:\n%x, want\n%x", version, got, w)
			}
		}
	}
}

func anyFetchResponse(rng *rand.Rand, version int16) ([]byte, *kmsg.FetchResponse) {
	v := FetchResponse(version)
	want := kmsg.NewPtrFetchResponse()
	want.Version = version
	want.ThrottleMillis, want.ErrorCode, want.SessionID = rng.Int32(), int16(rng.IntN(9)), rng.Int32()
	topics := rng.IntN(3)
	got := v.Begin(nil, want.ThrottleMillis, kafka.Code(want.ErrorCode), want.SessionID, topics)
	for range topics {
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID = name(rng), [16]byte{byte(rng.Int())}
		n := rng.IntN(3)
		got = v.Topic(got, t.Topic, t.TopicID, n)
		for range n {
			r, p := anyFetchResult(rng, version)
			t.Partitions = append(t.Partitions, p)
			got = v.Partition(got, &r, len(p.RecordBatches))
			got = append(got, p.RecordBatches...)
			got = v.EndPartition(got, &r)
		}
		got = v.EndTopic(got)
		want.Topics = append(want.Topics, t)
	}
	nodes := anyNodes(rng)
	if version >= 16 {
		for _, n := range nodes {
			want.Brokers = append(want.Brokers, kmsg.FetchResponseBroker{NodeID: int32(n.ID), Host: n.Host, Port: n.Port, Rack: rack(n)})
		}
	}
	return v.End(got, nodes), want
}

func anyFetchResult(rng *rand.Rand, version int16) (FetchResult, kmsg.FetchResponseTopicPartition) {
	r := FetchResult{
		Partition: rng.Int32(), Code: kafka.Code(rng.IntN(100)), HighWatermark: kafka.Offset(rng.Int64()),
		LastStable: kafka.Offset(rng.Int64()), LogStart: kafka.Offset(rng.Int64()), Preferred: kafka.BrokerID(rng.IntN(3) - 1),
	}
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition, p.ErrorCode, p.HighWatermark = r.Partition, int16(r.Code), int64(r.HighWatermark)
	p.LastStableOffset, p.LogStartOffset, p.PreferredReadReplica = int64(r.LastStable), int64(r.LogStart), int32(r.Preferred)
	p.RecordBatches = bytes.Repeat([]byte{9}, rng.IntN(300))
	if r.ReadCommitted = rng.IntN(2) == 0; r.ReadCommitted {
		p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		for range rng.IntN(3) {
			a := AbortedTransaction{kafka.ProducerID(rng.Int64()), kafka.Offset(rng.Int64())}
			r.Aborted = append(r.Aborted, a)
			p.AbortedTransactions = append(p.AbortedTransactions, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: int64(a.Producer), FirstOffset: int64(a.First)})
		}
	}
	if version >= 12 && rng.IntN(2) == 0 {
		r.Diverging, r.Leader = Diverging{true, 4, 99}, LeaderHint{true, 2, 5}
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = 4, 99
		p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 2, 5
	}
	if version >= 12 && rng.IntN(2) == 0 {
		r.Follower = FollowerFacts{true, 1000, -1, 5}
		for number, o := range map[uint32]int64{TagSegmentBase: 1000, TagHighestTiered: -1, TagLogStart: 5} {
			p.UnknownTags.Set(number, binary.BigEndian.AppendUint64(nil, uint64(o)))
		}
	}
	return r, p
}

func TestFollowersReadTheFactsThatLeadersSend(t *testing.T) {
	want := FollowerFacts{true, 4096, 4095, 17}
	v := FetchResponse(17)
	r := FetchResult{Preferred: kafka.NoBroker, Follower: want}
	b := v.Topic(v.Begin(nil, 0, 0, 0, 1), "", kafka.TopicID{1}, 1)
	b = v.EndPartition(v.Partition(b, &r, 0), &r)
	b = v.End(v.EndTopic(b), nil)
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 17
	if err := resp.ReadFrom(b); err != nil {
		t.Fatal(err)
	}
	p := &resp.Topics[0].Partitions[0]
	if got := ReadFollowerFacts(&p.UnknownTags); got != want {
		t.Errorf("facts %+v, want %+v", got, want)
	}
	if got := ReadFollowerFacts(new(kmsg.Tags)); got.Known {
		t.Errorf("facts %+v out of nothing", got)
	}
}

// BenchmarkFetch asks what a fetch of 12 partitions costs to decode and answer
// around its records.
func BenchmarkFetch(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	r := kmsg.NewPtrFetchRequest()
	r.Version = 12
	t := kmsg.NewFetchRequestTopic()
	t.Topic = "bench"
	for range 12 {
		t.Partitions = append(t.Partitions, anyFetchPartition(rng))
	}
	r.Topics = append(r.Topics, t)
	body := r.AppendTo(nil)

	var req FetchRequest
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		if err := req.Decode(body, 12); err != nil {
			b.Fatal(err)
		}
		v := FetchResponse(12)
		out = v.Begin(out[:0], 0, 0, 0, len(req.Topics))
		for i := range req.Topics {
			t := &req.Topics[i]
			out = v.Topic(out, t.Name, t.ID, len(t.Partitions))
			for j := range t.Partitions {
				res := FetchResult{Partition: t.Partitions[j].Partition, Preferred: kafka.NoBroker}
				out = v.EndPartition(v.Partition(out, &res, 1<<20), &res)
			}
			out = v.EndTopic(out)
		}
		out = v.End(out, nil)
	}
}
