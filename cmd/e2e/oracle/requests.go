package oracle

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// at sets a request's version and hands it on.
func at[R kmsg.Request](version int16, req R) R {
	req.SetVersion(version)
	return req
}

// same is a step that asks both sides the same.
func same(req func() kmsg.Request) func(*Side) kmsg.Request {
	return func(*Side) kmsg.Request { return req() }
}

func createTopic(version int16, name string, partitions int32, configs ...string) *kmsg.CreateTopicsRequest {
	req := at(version, kmsg.NewPtrCreateTopicsRequest())
	req.TimeoutMillis = 10_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for i := 0; i+1 < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = configs[i], kmsg.StringPtr(configs[i+1])
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// Topic makes a topic on both sides, learns its id as the name, and waits until its
// partitions have leaders.
func (x *Exchange) Topic(name string, partitions int32, configs ...string) {
	x.Learn("create "+name, same(func() kmsg.Request { return createTopic(7, name, partitions, configs...) }),
		func(s *Side, resp kmsg.Response) {
			for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
				s.Learn("id of "+name, t.TopicID)
			}
		})
	x.Eventually("leaders of "+name, same(func() kmsg.Request { return metadataOf(12, name) }), func(resp kmsg.Response) bool {
		ts := resp.(*kmsg.MetadataResponse).Topics
		if len(ts) != 1 || ts[0].ErrorCode != 0 || len(ts[0].Partitions) != int(partitions) {
			return false
		}
		for _, p := range ts[0].Partitions {
			if p.ErrorCode != 0 || p.Leader < 0 {
				return false
			}
		}
		return true
	})
	for p := range partitions {
		x.Eventually("offsets of "+name, same(func() kmsg.Request { return listOffsets(4, name, p, -1) }), func(resp kmsg.Response) bool {
			return resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode == 0
		})
	}
}

func topicID(s *Side, name string) [16]byte { return Learned[[16]byte](s, "id of "+name) }

func metadataOf(version int16, names ...string) *kmsg.MetadataRequest {
	req := at(version, kmsg.NewPtrMetadataRequest())
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, n := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(n)
		req.Topics = append(req.Topics, t)
	}
	return req
}

func listOffsets(version int16, topic string, partition int32, timestamp int64) *kmsg.ListOffsetsRequest {
	req := at(version, kmsg.NewPtrListOffsetsRequest())
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, timestamp
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// produce builds a request that carries records for one partition.
func produce(s *Side, version int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	req := at(version, kmsg.NewPtrProduceRequest())
	req.Acks, req.TimeoutMillis = -1, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = topic, topicID(s, topic)
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// fetch builds a sessionless request for one partition.
func fetch(s *Side, version int16, topic string, partition int32, offset int64) *kmsg.FetchRequest {
	req := at(version, kmsg.NewPtrFetchRequest())
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, 20, 1, 1<<20
	req.SessionID, req.SessionEpoch = 0, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, topicID(s, topic)
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	p.CurrentLeaderEpoch = -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// stamp is the timestamp of every record: fixed, so that both sides hold the same
// bytes, and recent, so that no retention takes it.
var stamp = time.Now().Truncate(time.Hour).UnixMilli()

// a batchSpec says what a batch is to hold; the zero value is one valid record.
type batchSpec struct {
	values      []string
	noKey       bool
	base        int64
	magic       int8 // 0 = 2
	attributes  int16
	pid         int64 // 0 = none
	epoch       int16
	seq         int32
	timestamp   int64 // 0 = stamp
	count       int32 // 0 = as many as there are
	breakCRC    bool
	lastOffset  int32 // 0 = as it is
	compression func([]byte) []byte
}

func (spec batchSpec) bytes() []byte {
	if spec.values == nil {
		spec.values = []string{"value"}
	}
	if spec.timestamp == 0 {
		spec.timestamp = stamp
	}
	n := int32(len(spec.values))
	b := kmsg.RecordBatch{FirstOffset: spec.base, PartitionLeaderEpoch: -1, Magic: 2, Attributes: spec.attributes, LastOffsetDelta: n - 1,
		FirstTimestamp: spec.timestamp, MaxTimestamp: spec.timestamp, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: n}
	if spec.magic != 0 {
		b.Magic = spec.magic
	}
	if spec.pid != 0 {
		b.ProducerID, b.ProducerEpoch, b.FirstSequence = spec.pid, spec.epoch, spec.seq
	}
	if spec.count != 0 {
		b.NumRecords = spec.count
	}
	if spec.lastOffset != 0 {
		b.LastOffsetDelta = spec.lastOffset
	}
	for i, v := range spec.values {
		b.Records = append(b.Records, recordBytes(int32(i), spec.noKey, v)...)
	}
	if spec.compression != nil {
		b.Records = spec.compression(b.Records)
	}
	b.Length = int32(49 + len(b.Records))
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	if spec.breakCRC {
		raw[20] ^= 1
	}
	return raw
}

func recordBytes(delta int32, noKey bool, value string) []byte {
	r := kmsg.Record{OffsetDelta: delta, Value: []byte(value)}
	if !noKey {
		r.Key = []byte("key")
	}
	body := r.AppendTo(nil)
	_, n := binary.Varint(body)
	r.Length = int32(len(body) - n)
	return r.AppendTo(nil)
}

// Coordinator waits until both can be asked for groups: the first question makes their
// topic.
func (x *Exchange) Coordinator() {
	x.Eventually("a coordinator", same(func() kmsg.Request {
		req := at(3, kmsg.NewPtrFindCoordinatorRequest())
		req.CoordinatorKey = "any"
		return req
	}), func(resp kmsg.Response) bool { return resp.(*kmsg.FindCoordinatorResponse).ErrorCode == 0 })
	x.Eventually("its log", same(func() kmsg.Request { return describeGroupsRequest("any") }), func(resp kmsg.Response) bool {
		return resp.(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode == 0
	})
}

func describeGroupsRequest(names ...string) *kmsg.DescribeGroupsRequest {
	req := at(4, kmsg.NewPtrDescribeGroupsRequest())
	req.Groups = names
	return req
}

// ProducerID waits until both give producer ids: Kafka has none before its first block.
func (x *Exchange) ProducerID() {
	x.Eventually("a first producer id", same(func() kmsg.Request { return initProducerID(4) }), func(resp kmsg.Response) bool {
		return resp.(*kmsg.InitProducerIDResponse).ErrorCode == 0
	})
}

func initProducerID(version int16) *kmsg.InitProducerIDRequest {
	req := at(version, kmsg.NewPtrInitProducerIDRequest())
	req.TransactionTimeoutMillis = 60_000
	req.ProducerID, req.ProducerEpoch = -1, -1
	return req
}
