package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/partition"
)

// ListOffsets, key 2.
//
//	v1   one offset for each partition, with its timestamp
//	v2   isolation level
//	v4   leader epochs
//	v7   -3, the record with the highest timestamp
//	v8   -4, the first local offset
//	v9   -5, the last tiered offset
//	v10  time-out for what has to ask the tier
//	v11  -6, the first offset that waits to be tiered
//
// Errors per partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
// FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE (LEADER_NOT_AVAILABLE
// before v5), UNSUPPORTED_VERSION for a place that the version does not know,
// REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR, INVALID_REQUEST for a partition twice, once.
func (b *Broker) listOffsets(x *call, req *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := kmsg.NewPtrListOffsetsResponse()
	twice := repeatedPartitions(req)
	refused := map[kafka.TopicPartition]bool{} // those of twice that are answered
	for _, t := range req.Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, q := range t.Partitions {
			place, e := partition.Place{Offset: kafka.NoOffset, Timestamp: -1, Epoch: kafka.NoEpoch}, (*kafka.Error)(nil)
			if tp := (kafka.TopicPartition{Topic: t.Topic, Partition: q.Partition}); twice[tp] {
				if refused[tp] {
					continue
				}
				refused[tp] = true
				e = &kafka.Error{Code: kafka.InvalidRequest}
			} else {
				place, e = b.listOffset(x, req, t.Topic, q)
			}
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.ErrorCode = q.Partition, code(e)
			rp.Offset, rp.Timestamp, rp.LeaderEpoch = int64(place.Offset), place.Timestamp, int32(place.Epoch)
			rt.Partitions = append(rt.Partitions, rp)
			b.refused(x, t.Topic, q.Partition, e)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func repeatedPartitions(req *kmsg.ListOffsetsRequest) map[kafka.TopicPartition]bool {
	seen := map[kafka.TopicPartition]bool{}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			tp := kafka.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			_, again := seen[tp]
			seen[tp] = again
		}
	}
	return seen
}

// placeSince is the first version that knows a place.
var placeSince = map[int64]int16{
	partition.Latest: 0, partition.Earliest: 0, partition.MaxTimestamp: 7, partition.EarliestLocal: 8,
	partition.LatestTiered: 9, partition.EarliestPending: 11,
}

func (b *Broker) listOffset(x *call, req *kmsg.ListOffsetsRequest, topic string, q kmsg.ListOffsetsRequestTopicPartition) (place partition.Place, e *kafka.Error) {
	none := partition.Place{Offset: kafka.NoOffset, Timestamp: -1, Epoch: kafka.NoEpoch}
	if since, known := placeSince[q.Timestamp]; q.Timestamp < 0 && (!known || x.h.Version < since) {
		return none, &kafka.Error{Code: kafka.UnsupportedVersion, Message: "the request's version does not know this timestamp"}
	}
	p, c := b.opt.Host.Find(topic, q.Partition)
	if c != kafka.None {
		return none, unknownPartition(c)
	}
	epoch := kafka.NoEpoch
	if x.h.Version >= 4 {
		epoch = kafka.LeaderEpoch(q.CurrentLeaderEpoch)
	}
	ask := func(ctx context.Context) {
		var err error
		place, err = p.Locate(ctx, q.Timestamp, epoch, req.IsolationLevel == 1)
		if err != nil {
			place, e = none, asRefusal(err)
		}
	}
	if v := p.Log().View(); v.LogStart < v.LocalStart && (q.Timestamp >= 0 || q.Timestamp == partition.MaxTimestamp) {
		x.c.Block(func(ctx context.Context) { // the tier is asked
			ctx, cancel := context.WithTimeout(ctx, timeoutOf(req.TimeoutMillis))
			defer cancel()
			ask(ctx)
		})
	} else {
		ask(context.Background())
	}
	if e != nil && e.Code == kafka.OffsetNotAvailable && x.h.Version < 5 {
		e = &kafka.Error{Code: kafka.LeaderNotAvailable, Message: e.Message}
	}
	return place, e
}

// timeoutOf is a request's time-out, or what Kafka takes where it has none.
func timeoutOf(millis int32) time.Duration {
	if millis <= 0 {
		return 30 * time.Second
	}
	return time.Duration(millis) * time.Millisecond
}
