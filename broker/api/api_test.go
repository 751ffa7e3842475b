package api

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/wire"
)

// TestEveryKeyAndVersionIsAnswered asks every request of the table, with nothing in it,
// in every version; an answer that does not read to its end is none.
func TestEveryKeyAndVersionIsAnswered(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	for _, a := range wire.APIs {
		for v := a.Min; v <= a.Max; v++ {
			req := kmsg.RequestForKey(a.Key)
			req.SetVersion(v)
			if q, ok := req.(*kmsg.ProduceRequest); ok {
				q.Acks = 1
			}
			c := r.dial()
			c.send(req)
			if _, err := c.receive(req); err != nil {
				t.Errorf("%s v%d: %v", a.Name, v, err)
			}
		}
	}
	for _, a := range wire.APIs {
		if n := r.broker.Served()[a.Key]; n != int64(a.Max-a.Min)+1 {
			t.Errorf("%s: served %d, want %d", a.Name, n, a.Max-a.Min+1)
		}
	}
}

func TestErrorsBecomeCodesInOnePlace(t *testing.T) {
	for _, c := range []struct {
		err  error
		want kafka.Code
	}{
		{&kafka.Error{Code: kafka.NotController}, kafka.NotController},
		{fmt.Errorf("appending: %w", &kafka.Error{Code: kafka.KafkaStorageError}), kafka.KafkaStorageError},
		{&record.Refusal{Code: kafka.CorruptMessage}, kafka.CorruptMessage},
		{context.DeadlineExceeded, kafka.RequestTimedOut},
		{context.Canceled, kafka.NotController},
		{errors.New("anything"), kafka.UnknownServerError},
	} {
		if got := asRefusal(c.err); got.Code != c.want {
			t.Errorf("%v is %v, want %v", c.err, got.Code, c.want)
		}
	}
}

func TestApiVersionsTellsTheTable(t *testing.T) {
	r := newRig(t, nil)
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, "varve-test", "1.0"
	resp := ask[*kmsg.ApiVersionsResponse](r.dial(), req)
	if len(resp.ApiKeys) != len(wire.APIs) {
		t.Errorf("%d keys, want %d", len(resp.ApiKeys), len(wire.APIs))
	}
	req.ClientSoftwareName = "no spaces"
	wantCode(t, "a software name that is none", ask[*kmsg.ApiVersionsResponse](r.dial(), req).ErrorCode, kafka.InvalidRequest)
}

// metadataOf asks for topics by name.
func metadataOf(create bool, names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 9, create
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		req.Topics = append(req.Topics, t)
	}
	return req
}

func TestMetadataMakesTopicsOnDemand(t *testing.T) {
	r := newRig(t, nil)
	c := r.dial()
	wantCode(t, "not asked to", ask[*kmsg.MetadataResponse](c, metadataOf(false, "orders")).Topics[0].ErrorCode, kafka.UnknownTopicOrPartition)
	resp := ask[*kmsg.MetadataResponse](c, metadataOf(true, "orders", "orders", "no/slash"))
	if len(resp.Topics) != 2 {
		t.Fatalf("%d topics, want each name once", len(resp.Topics))
	}
	made := resp.Topics[0]
	if made.ErrorCode != 0 || len(made.Partitions) != 1 || made.Partitions[0].Leader != 1 {
		t.Errorf("made on demand: %+v", made)
	}
	wantCode(t, "no name", resp.Topics[1].ErrorCode, kafka.InvalidTopicException)
	if p := produced(t, ask[*kmsg.ProduceResponse](c, produceOf("orders", 0, 1, batch(1, 10)))); p.ErrorCode != 0 {
		t.Errorf("what was made takes no records: %+v", p)
	}
	if len(resp.Brokers) != 1 || resp.Brokers[0].Port != 9092 {
		t.Errorf("brokers: %+v", resp.Brokers)
	}
}

func TestMetadataWithoutAutoCreationMakesNothing(t *testing.T) {
	r := newRig(t, func(o *Options) { o.AutoCreate = false })
	wantCode(t, "auto.create.topics.enable=false", ask[*kmsg.MetadataResponse](r.dial(), metadataOf(true, "orders")).Topics[0].ErrorCode, kafka.UnknownTopicOrPartition)
	if n := r.controller.Image().TopicCount(); n != 0 {
		t.Errorf("%d topics", n)
	}
}

func TestMetadataByID(t *testing.T) {
	r := newRig(t, nil)
	id := r.topic("orders", 2)
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	req.Topics = []kmsg.MetadataRequestTopic{{TopicID: id}, {TopicID: kafka.TopicID{99}}}
	resp := ask[*kmsg.MetadataResponse](r.dial(), req)
	if got := resp.Topics[0]; got.Topic == nil || *got.Topic != "orders" || len(got.Partitions) != 2 {
		t.Errorf("by id: %+v", got)
	}
	wantCode(t, "an unknown id", resp.Topics[1].ErrorCode, kafka.UnknownTopicID)
}

func TestTopicsAreMadeGrownAlteredAndDeleted(t *testing.T) {
	r := newRig(t, nil)
	c := r.dial()
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, 5000
	for _, name := range []string{"orders", "orders.b"} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 2, 1
		create.Topics = append(create.Topics, topic)
	}
	made := ask[*kmsg.CreateTopicsResponse](c, create)
	if got := made.Topics[0]; got.ErrorCode != 0 || got.NumPartitions != 2 || len(got.Configs) == 0 || got.TopicID == [16]byte{} {
		t.Fatalf("made: %+v", got)
	}
	again := ask[*kmsg.CreateTopicsResponse](c, create).Topics[0]
	wantCode(t, "made again", again.ErrorCode, kafka.TopicAlreadyExists)
	if again.Configs == nil {
		t.Error("null configs beside an error: the Java admin client fails on them")
	}
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Version, grow.TimeoutMillis = 3, 5000
	grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "orders", Count: 3}, {Topic: "orders.b", Count: 1}}
	grown := ask[*kmsg.CreatePartitionsResponse](c, grow)
	wantCode(t, "grown", grown.Topics[0].ErrorCode, kafka.None)
	wantCode(t, "shrunk", grown.Topics[1].ErrorCode, kafka.InvalidPartitions)
	if p := produced(t, ask[*kmsg.ProduceResponse](c, produceOf("orders", 2, 1, batch(1, 10)))); p.ErrorCode != 0 {
		t.Errorf("the third partition takes no records: %+v", p)
	}
	drop := kmsg.NewPtrDeleteTopicsRequest()
	drop.Version, drop.TimeoutMillis = 6, 5000
	drop.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr("orders")}, {TopicID: kafka.TopicID{99}}}
	dropped := ask[*kmsg.DeleteTopicsResponse](c, drop)
	wantCode(t, "deleted", dropped.Topics[0].ErrorCode, kafka.None)
	wantCode(t, "an unknown id", dropped.Topics[1].ErrorCode, kafka.UnknownTopicID)
	if p := produced(t, ask[*kmsg.ProduceResponse](c, produceOf("orders", 0, 1, batch(1, 10)))); kafka.Code(p.ErrorCode) != kafka.UnknownTopicOrPartition {
		t.Errorf("the deleted topic answers %v", kafka.Code(p.ErrorCode))
	}
}

func TestDeletionMayBeDisabled(t *testing.T) {
	r := newRig(t, func(o *Options) { o.DeleteTopics = false })
	r.topic("orders", 1)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TopicNames = 5, []string{"orders"}
	wantCode(t, "delete.topic.enable=false", ask[*kmsg.DeleteTopicsResponse](r.dial(), req).Topics[0].ErrorCode, kafka.TopicDeletionDisabled)
	if n := r.controller.Image().TopicCount(); n != 1 {
		t.Errorf("%d topics", n)
	}
}

func TestConfigsOfATopicAreDescribedAndAltered(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	c := r.dial()
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	alter.Version = 1
	alter.Resources = []kmsg.IncrementalAlterConfigsRequestResource{
		{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"},
		{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "orders",
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: kmsg.StringPtr("60000")}}},
		{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "nothing"},
	}
	altered := ask[*kmsg.IncrementalAlterConfigsResponse](c, alter).Resources
	wantCode(t, "a broker's", altered[0].ErrorCode, kafka.InvalidRequest)
	wantCode(t, "a topic's", altered[1].ErrorCode, kafka.None)
	wantCode(t, "no topic's", altered[2].ErrorCode, kafka.UnknownTopicOrPartition)
	describe := kmsg.NewPtrDescribeConfigsRequest()
	describe.Version = 4
	describe.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "orders", ConfigNames: []string{"retention.ms"}}}
	got := ask[*kmsg.DescribeConfigsResponse](c, describe).Resources[0].Configs
	if len(got) != 1 || got[0].Value == nil || *got[0].Value != "60000" {
		t.Errorf("retention.ms: %+v", got)
	}
}

func TestListOffsetsAnswersPlacesItsVersionKnows(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	r.append("orders", 0, 3, 10)
	c := r.dial()
	for _, q := range []struct {
		version int16
		ts      int64
		code    kafka.Code
		offset  int64
	}{
		{1, -1, kafka.None, 3}, {1, -2, kafka.None, 0}, {6, -3, kafka.UnsupportedVersion, -1}, {7, -3, kafka.None, 0},
		{8, -4, kafka.None, 0}, {9, -5, kafka.None, -1}, {11, -6, kafka.None, -1}, {11, -7, kafka.UnsupportedVersion, -1}, {4, 0, kafka.None, 0},
	} {
		req := kmsg.NewPtrListOffsetsRequest()
		req.Version, req.ReplicaID = q.version, -1
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp = q.ts
		req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "orders", Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
		got := ask[*kmsg.ListOffsetsResponse](c, req).Topics[0].Partitions[0]
		if kafka.Code(got.ErrorCode) != q.code || got.Offset != q.offset {
			t.Errorf("v%d, %d: %v, offset %d; want %v, %d", q.version, q.ts, kafka.Code(got.ErrorCode), got.Offset, q.code, q.offset)
		}
	}
}

func TestAPartitionTwiceInListOffsetsIsRefused(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 2)
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 5, -1
	topic := kmsg.ListOffsetsRequestTopic{Topic: "orders"}
	for _, n := range []int32{0, 1, 0} {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = n, -1
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	var got []kafka.Code
	for _, p := range ask[*kmsg.ListOffsetsResponse](r.dial(), req).Topics[0].Partitions {
		got = append(got, kafka.Code(p.ErrorCode))
	}
	if want := []kafka.Code{kafka.InvalidRequest, kafka.None}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTheControllersRefusalIsEveryTopics(t *testing.T) {
	r := newRig(t, nil)
	r.controller.mu.refuse = context.DeadlineExceeded
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 5
	req.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "a"}, {Topic: "b"}}
	resp := ask[*kmsg.CreateTopicsResponse](r.dial(), req)
	if len(resp.Topics) != 2 {
		t.Fatalf("%d topics answered", len(resp.Topics))
	}
	for _, topic := range resp.Topics {
		wantCode(t, topic.Topic, topic.ErrorCode, kafka.RequestTimedOut)
	}
}

func TestDescribeClusterNamesThisBroker(t *testing.T) {
	r := newRig(t, nil)
	req := kmsg.NewPtrDescribeClusterRequest()
	req.Version, req.EndpointType = 1, 1
	got := ask[*kmsg.DescribeClusterResponse](r.dial(), req)
	want := []kmsg.DescribeClusterResponseBroker{{NodeID: 1, Host: "127.0.0.1", Port: 9092}}
	if got.ClusterID != "c" || got.ControllerID != 1 || len(got.Brokers) != 1 || !reflect.DeepEqual(got.Brokers, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	req.EndpointType = 2
	wantCode(t, "controllers", ask[*kmsg.DescribeClusterResponse](r.dial(), req).ErrorCode, kafka.MismatchedEndpointType)
}

func TestEpochEndsAreTold(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	r.append("orders", 0, 3, 10)
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Version, req.ReplicaID = 4, -1
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LeaderEpoch = -1, 0
	other := p
	other.Partition = 9
	req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p, other}}}
	got := ask[*kmsg.OffsetForLeaderEpochResponse](r.dial(), req).Topics[0].Partitions
	if got[0].ErrorCode != 0 || got[0].EndOffset != 3 {
		t.Errorf("%+v", got[0])
	}
	wantCode(t, "no such partition", got[1].ErrorCode, kafka.UnknownTopicOrPartition)
}
