package api

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// imageOf is an image with one topic of two partitions.
func imageOf(name string, id kafka.TopicID) *metadata.Image {
	return metadata.Empty().Apply(1, []metadata.Record{metadata.NewTopic{ID: id, Name: name},
		metadata.Partitions{Topic: id, Sets: []metadata.ReplicaSet{{Replicas: []kafka.BrokerID{1}}},
			Slots: []metadata.Slot{{ISR: 1}, {Partition: 1, ISR: 1}}}})
}

func commitOf(topics ...kmsg.OffsetCommitRequestTopic) *kmsg.OffsetCommitRequest {
	return &kmsg.OffsetCommitRequest{Version: 10, Group: "g", Topics: topics}
}

func commitTopic(id kafka.TopicID, partitions ...int32) kmsg.OffsetCommitRequestTopic {
	t := kmsg.OffsetCommitRequestTopic{TopicID: id}
	for _, p := range partitions {
		t.Partitions = append(t.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: p})
	}
	return t
}

func TestCommitsAreAnsweredInTheOrderOfTheRequest(t *testing.T) {
	orders, unknown := kafka.TopicID{1}, kafka.TopicID{2}
	req := commitOf(commitTopic(unknown, 0), commitTopic(orders, 9, 1, -1, 0))
	codes, known := checkCommitted(imageOf("orders", orders), req)
	if len(known) != 1 || known[0].Topic != "orders" || len(known[0].Partitions) != 2 || known[0].Partitions[0].Partition != 1 {
		t.Fatalf("what is asked of the coordinator: %+v", known)
	}
	answered := &kmsg.OffsetCommitResponse{Topics: []kmsg.OffsetCommitResponseTopic{{Topic: "orders",
		Partitions: []kmsg.OffsetCommitResponseTopicPartition{{Partition: 1, ErrorCode: int16(kafka.IllegalGeneration)}, {Partition: 0}}}}}
	var got []kmsg.OffsetCommitResponseTopicPartition
	for _, topic := range merged(req, codes, answered).(*kmsg.OffsetCommitResponse).Topics {
		got = append(got, topic.Partitions...)
	}
	want := []struct {
		partition int32
		code      kafka.Code
	}{{0, kafka.UnknownTopicID}, {9, kafka.UnknownTopicOrPartition}, {1, kafka.IllegalGeneration}, {-1, kafka.UnknownTopicOrPartition}, {0, kafka.None}}
	if len(got) != len(want) {
		t.Fatalf("%d partitions answered, want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].Partition != w.partition || kafka.Code(got[i].ErrorCode) != w.code {
			t.Errorf("answer %d is %d: %v, want %d: %v", i, got[i].Partition, kafka.Code(got[i].ErrorCode), w.partition, w.code)
		}
	}
}

func TestCommitsByNameLearnTheTopicID(t *testing.T) {
	id := kafka.TopicID{1}
	req := commitOf(commitTopic(kafka.TopicID{}, 0))
	req.Version, req.Topics[0].Topic = 9, "orders"
	if _, known := checkCommitted(imageOf("orders", id), req); known[0].TopicID != id {
		t.Errorf("the id is %v, want %v", kafka.TopicID(known[0].TopicID), id)
	}
}

func TestFetchesByAnUnknownIDAreAnsweredHere(t *testing.T) {
	id := kafka.TopicID{1}
	ask := []kmsg.OffsetFetchRequestGroupTopic{{TopicID: id, Partitions: []int32{0}}, {TopicID: kafka.TopicID{2}, Partitions: []int32{3}}}
	have, unknown := known(imageOf("orders", id), ask)
	if len(have) != 1 || have[0].Topic != "orders" {
		t.Errorf("asked of the coordinator: %+v", have)
	}
	if len(unknown) != 1 || unknown[0].Partitions[0].Partition != 3 || kafka.Code(unknown[0].Partitions[0].ErrorCode) != kafka.UnknownTopicID {
		t.Errorf("answered here: %+v", unknown)
	}
	if all, _ := known(imageOf("orders", id), nil); all != nil {
		t.Errorf("a question for all became one for %v", all)
	}
}

func TestTopicsWithoutAnIDAreLeftOutOfAnswersByID(t *testing.T) {
	id := kafka.TopicID{1}
	got := withIDs(imageOf("orders", id), []kmsg.OffsetFetchResponseGroupTopic{{Topic: "gone"}, {Topic: "orders"}})
	if len(got) != 1 || got[0].TopicID != id {
		t.Errorf("told: %+v", got)
	}
}

func TestIPv6IsWrittenAsJavaWritesIt(t *testing.T) {
	for in, want := range map[string]string{"::1": "0:0:0:0:0:0:0:1", "fe80::a00:1%eth0": "fe80:0:0:0:0:0:a00:1%eth0"} {
		if got := longIPv6(netip.MustParseAddr(in)); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

func TestAnAnswerThatComesTooLateIsDropped(t *testing.T) {
	a := newAnswers(2, nil)
	a.set(1, kmsg.NewPtrHeartbeatResponse())
	if a.complete() {
		t.Error("complete with one answer of two")
	}
	got := a.close()
	a.set(0, kmsg.NewPtrHeartbeatResponse())
	if !slices.Equal([]bool{got[0] == nil, got[1] == nil}, []bool{true, false}) {
		t.Errorf("answers: %v", got)
	}
}

func TestDeletionsAreAnsweredInTheOrderOfTheRequest(t *testing.T) {
	req := &kmsg.OffsetDeleteRequest{Topics: []kmsg.OffsetDeleteRequestTopic{{Topic: "orders",
		Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 9}, {Partition: 1}, {Partition: 8}}}}}
	answered := []kmsg.OffsetDeleteResponseTopic{{Topic: "orders", Partitions: []kmsg.OffsetDeleteResponseTopicPartition{{Partition: 1}}}}
	got := withUnknown(req, answered)[0].Partitions
	unknown := int16(kafka.UnknownTopicOrPartition)
	want := []kmsg.OffsetDeleteResponseTopicPartition{{Partition: 9, ErrorCode: unknown}, {Partition: 1}, {Partition: 8, ErrorCode: unknown}}
	if len(got) != len(want) {
		t.Fatalf("answered: %+v", got)
	}
	for i := range want {
		if got[i].Partition != want[i].Partition || got[i].ErrorCode != want[i].ErrorCode {
			t.Errorf("answer %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
