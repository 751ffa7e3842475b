package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/partition"
)

// OffsetForLeaderEpoch, key 23: where the records of a leader epoch end.
//
//	v2  current leader epoch
//	v3  replica id
//	v4  flexible
//
// Errors per partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
// FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
func (b *Broker) offsetForLeaderEpoch(x *call, req *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = t.Topic
		for _, q := range t.Partitions {
			end, e := b.epochEnd(t.Topic, q)
			rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rp.Partition, rp.ErrorCode = q.Partition, code(e)
			rp.LeaderEpoch, rp.EndOffset = int32(end.Epoch), int64(end.End)
			rt.Partitions = append(rt.Partitions, rp)
			b.refused(x, t.Topic, q.Partition, e)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (b *Broker) epochEnd(topic string, q kmsg.OffsetForLeaderEpochRequestTopicPartition) (partition.EpochEnd, *kafka.Error) {
	none := partition.EpochEnd{Epoch: kafka.NoEpoch, End: kafka.NoOffset}
	p, c := b.opt.Host.Find(topic, q.Partition)
	if c != kafka.None {
		return none, unknownPartition(c)
	}
	end, err := p.EndOffsetFor(kafka.LeaderEpoch(q.CurrentLeaderEpoch), kafka.LeaderEpoch(q.LeaderEpoch))
	if err != nil {
		return none, asRefusal(err)
	}
	return end, nil
}
