package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/record"
)

// What Kafka 4.3 answers, as cmd/e2e/oracle saw it.

func TestARefusalTellsTheLogStartWhereKafkaDoes(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	altered := func(change func(b record.Batch)) []byte {
		b := record.Batch(batch(1, 10))
		change(b)
		b.SetMaxTimestamp(b.MaxTimestamp()+1, false) // and the checksum
		return b
	}
	c := r.dial()
	for _, q := range []struct {
		what    string
		records []byte
		code    kafka.Code
		start   int64
	}{
		{"no batch", []byte{}, kafka.InvalidRecord, -1},
		{"two batches", append(batch(1, 10), batch(1, 10)...), kafka.InvalidRecord, -1},
		{"magic 3", altered(func(b record.Batch) { b[16] = 3 }), kafka.CorruptMessage, -1},
		{"damage", func() []byte { b := batch(1, 10); b[len(b)-1] ^= 1; return b }(), kafka.CorruptMessage, -1},
		{"a base offset", altered(func(b record.Batch) { b.Stamp(5, 0) }), kafka.InvalidRecord, 0},
		{"a count of another", altered(func(b record.Batch) { b[60] = 9 }), kafka.InvalidRecord, 0},
		{"a control batch", altered(func(b record.Batch) { b[22] |= 1 << 5 }), kafka.InvalidRecord, 0},
	} {
		p := produced(t, ask[*kmsg.ProduceResponse](c, produceOf("orders", 0, 1, q.records)))
		wantCode(t, q.what, p.ErrorCode, q.code)
		if p.LogStartOffset != q.start {
			t.Errorf("%s: log start %d, want %d", q.what, p.LogStartOffset, q.start)
		}
	}
}

func TestARepeatedBatchTellsItsFirstTime(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	w := record.Builder{Producer: &record.Producer{ID: 7}}
	w.Add(record.Record{Timestamp: 1_000_000, Value: []byte("v")})
	c := r.dial()
	for i, want := range []int64{-1, 1_000_000} {
		p := produced(t, ask[*kmsg.ProduceResponse](c, produceOf("orders", 0, 1, w.AppendTo(nil))))
		if p.ErrorCode != 0 || p.BaseOffset != 0 || p.LogAppendTime != want {
			t.Errorf("time %d: %+v, want append time %d", i+1, p, want)
		}
	}
}

func TestMetadataByIDBeforeVersion12IsRefusedAsAWhole(t *testing.T) {
	r := newRig(t, nil)
	id := r.topic("orders", 1)
	for _, version := range []int16{10, 11} {
		req := kmsg.NewPtrMetadataRequest()
		req.Version = version
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("orders")}, {TopicID: id}}
		resp := ask[*kmsg.MetadataResponse](r.dial(), req)
		if len(resp.Brokers) != 0 || resp.ClusterID != nil || resp.ControllerID != -1 || len(resp.Topics) != 2 {
			t.Fatalf("v%d: %+v", version, resp)
		}
		for _, topic := range resp.Topics {
			wantCode(t, *topic.Topic, topic.ErrorCode, kafka.InvalidRequest)
		}
		if resp.Topics[1].TopicID != id {
			t.Errorf("v%d: id %v, want %v", version, resp.Topics[1].TopicID, id)
		}
	}
}

func TestANegativeEpochOfAFetchIsNone(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	r.append("orders", 0, 2, 10)
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.SessionEpoch = 12, 1<<20, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.PartitionMaxBytes = -2, -2, 1<<20
	req.Topics = []kmsg.FetchRequestTopic{{Topic: "orders", Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	got := ask[*kmsg.FetchResponse](r.dial(), req).Topics[0].Partitions[0]
	if got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
		t.Errorf("%v, %d bytes", kafka.Code(got.ErrorCode), len(got.RecordBatches))
	}
}

func TestAProducerIDComesWithAnEpochOrWithout(t *testing.T) {
	r := newRig(t, nil)
	c := r.dial()
	for _, q := range []struct {
		id    int64
		epoch int16
		want  kafka.Code
	}{{-1, -1, kafka.None}, {7, 3, kafka.None}, {7, -1, kafka.InvalidRequest}, {-1, 3, kafka.InvalidRequest}} {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version, req.ProducerID, req.ProducerEpoch = 4, q.id, q.epoch
		wantCode(t, "", ask[*kmsg.InitProducerIDResponse](c, req).ErrorCode, q.want)
	}
}

func TestRequestsOfGroupsAreRefusedBeforeTheGroupIsAsked(t *testing.T) {
	r := newRig(t, nil) // whose groups answer NOT_COORDINATOR
	c := r.dial()
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.Protocol = 5, "g", kmsg.StringPtr("range")
	wantCode(t, "sync without a protocol type", ask[*kmsg.SyncGroupResponse](c, sync).ErrorCode, kafka.InconsistentGroupProtocol)
	sync.Version = 4
	wantCode(t, "sync of version 4", ask[*kmsg.SyncGroupResponse](c, sync).ErrorCode, kafka.NotCoordinator)
	wantCode(t, "offsets of the empty group", ask[*kmsg.OffsetDeleteResponse](c, kmsg.NewPtrOffsetDeleteRequest()).ErrorCode, kafka.InvalidGroupID)
}

func TestDescribeConfigsHasNoNullMessage(t *testing.T) {
	r := newRig(t, nil)
	r.topic("orders", 1)
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	for _, name := range []string{"orders", "nothing"} {
		req.Resources = append(req.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: name})
	}
	for _, got := range ask[*kmsg.DescribeConfigsResponse](r.dial(), req).Resources {
		if got.ErrorMessage == nil || *got.ErrorMessage != "" {
			t.Errorf("%s: message %v", got.ResourceName, got.ErrorMessage)
		}
	}
}
