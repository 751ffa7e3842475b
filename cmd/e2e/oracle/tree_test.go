package oracle

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answered is a Metadata answer with a topic of the given id and leader.
func answered(id byte, leader int32) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.TopicID = kmsg.StringPtr("orders"), [16]byte{id}
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Partition, p.Leader = 3, leader
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	return resp
}

func TestADifferenceNamesItsField(t *testing.T) {
	kafka, varve := NewSide("kafka", ""), NewSide("varve", "")
	got := compare(kafka.flatten(answered(1, 1), neutral), varve.flatten(answered(2, 5), neutral))
	if len(got) != 1 || got[0].Path != "Topics[orders].Partitions[3].Leader" || got[0].Kafka != "1" || got[0].Varve != "5" {
		t.Errorf("%v, want the leader alone: ids are drawn", got)
	}
}

func TestWhatASideLearnedIsOneValue(t *testing.T) {
	join := func(s *Side, member string) []leaf {
		s.Learn("member of g", member)
		resp := kmsg.NewPtrJoinGroupResponse()
		resp.MemberID = member
		return s.flatten(resp, func(_, value string) string { return value })
	}
	if got := compare(join(NewSide("kafka", ""), "client-1"), join(NewSide("varve", ""), "client-2")); len(got) != 0 {
		t.Errorf("%v, want no difference", got)
	}
}

func TestARuleAllowsItsOwnOnly(t *testing.T) {
	records := func(kafka, varve string) Difference {
		return Difference{API: "Fetch", Step: "from 0", Path: "Topics[a].Partitions[0].RecordBatches", Kafka: kafka, Varve: varve}
	}
	for _, c := range []struct {
		d    Difference
		want bool
	}{
		{records("aabb", "aa"), true},
		{records("aabb", ""), false},
		{records("aabb", "ab"), false},
		{records("aa", "aabb"), false},
		{Difference{API: "Produce", Step: "codec 7", Path: "Topics[a].Partitions[0].ErrorCode", Kafka: "-1", Varve: "76"}, true},
		{Difference{API: "Produce", Step: "gzip", Path: "Topics[a].Partitions[0].ErrorCode", Kafka: "-1", Varve: "76"}, false},
	} {
		if got := allowedBy(c.d) != nil; got != c.want {
			t.Errorf("%v: allowed %t, want %t", c.d, got, c.want)
		}
	}
}

func TestLongRecordsAreToldByTheirBatches(t *testing.T) {
	one := batchSpec{values: []string{strings.Repeat("x", 20_000)}}.bytes()
	whole, torn := text(append(one, one...)), text(append(one, one[:100]...))
	if !strings.HasPrefix(whole, text(one)) || !strings.HasPrefix(torn, text(one)) || !strings.HasSuffix(torn, "100 bytes more") {
		t.Errorf("%q and %q, want both to begin with %q", whole, torn, text(one))
	}
}
