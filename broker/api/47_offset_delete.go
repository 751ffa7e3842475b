package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/group"
	"varve/broker/kafka"
	"varve/broker/metadata"
)

// OffsetDelete, key 47.
//
// Errors per partition: UNKNOWN_TOPIC_OR_PARTITION, and those of group's; for the whole
// INVALID_GROUP_ID and those of group's. Partitions are answered in the order of the request.
func (b *Broker) offsetDelete(x *call, req *kmsg.OffsetDeleteRequest) kmsg.Response {
	if req.Group == "" {
		return group.Refuse(req, kafka.InvalidGroupID)
	}
	image := b.opt.Controller.Image()
	ask := *req
	ask.Topics = nil
	for _, t := range req.Topics {
		have := t
		have.Partitions = nil
		for _, p := range t.Partitions {
			if isThere(image, t.Topic, p.Partition) {
				have.Partitions = append(have.Partitions, p)
			}
		}
		ask.Topics = append(ask.Topics, have)
	}
	resp := b.askGroup(x, req.Group, &ask).(*kmsg.OffsetDeleteResponse)
	if resp.ErrorCode == 0 {
		resp.Topics = withUnknown(req, resp.Topics)
	}
	return resp
}

func isThere(image *metadata.Image, topic string, partition int32) bool {
	_, ok := image.Partition(kafka.TopicPartition{Topic: topic, Partition: partition})
	return ok
}

// withUnknown puts the coordinator's answers, which are in the request's order, between
// those of what is not there.
func withUnknown(req *kmsg.OffsetDeleteRequest, answered []kmsg.OffsetDeleteResponseTopic) (out []kmsg.OffsetDeleteResponseTopic) {
	for i, t := range req.Topics {
		topic := kmsg.NewOffsetDeleteResponseTopic()
		topic.Topic = t.Topic
		rest := answered[i].Partitions
		for _, p := range t.Partitions {
			one := kmsg.NewOffsetDeleteResponseTopicPartition()
			one.Partition, one.ErrorCode = p.Partition, int16(kafka.UnknownTopicOrPartition)
			if len(rest) > 0 && rest[0].Partition == p.Partition {
				one, rest = rest[0], rest[1:]
			}
			topic.Partitions = append(topic.Partitions, one)
		}
		out = append(out, topic)
	}
	return out
}
