package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// OffsetCommit, key 8.
//
//	v2-4 RetentionTimeMillis, this commit's own
//	v6   LeaderEpoch
//	v7   InstanceID
//	v9   GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH are understood (KIP-848)
//	v10  topic ids
//
// Errors per partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (v10), and those of
// group's. Topics and partitions are answered in the order of the request: clients
// compare them by place.
func (b *Broker) offsetCommit(x *call, req *kmsg.OffsetCommitRequest) kmsg.Response {
	codes, known := checkCommitted(b.opt.Controller.Image(), req)
	if known == nil {
		return merged(req, codes, nil)
	}
	ask := *req
	ask.Topics = known
	return merged(req, codes, b.askGroup(x, req.Group, &ask).(*kmsg.OffsetCommitResponse))
}

// checkCommitted names the topics by name and id as the image knows them and returns
// those that are there, with the partitions that are. codes are by topic and partition.
func checkCommitted(image *metadata.Image, req *kmsg.OffsetCommitRequest) (codes [][]kafka.Code, known []kmsg.OffsetCommitRequestTopic) {
	for i := range req.Topics {
		t := &req.Topics[i]
		topic, code := topicOf(image, req.Version >= 10, &t.Topic, &t.TopicID)
		all := make([]kafka.Code, len(t.Partitions))
		have := *t
		have.Partitions = nil
		for k, p := range t.Partitions {
			all[k] = code
			if code == kafka.None && (p.Partition < 0 || p.Partition >= topic.Count()) {
				all[k] = kafka.UnknownTopicOrPartition
			}
			if all[k] == kafka.None {
				have.Partitions = append(have.Partitions, p)
			}
		}
		if codes = append(codes, all); have.Partitions != nil {
			known = append(known, have)
		}
	}
	return codes, known
}

// topicOf finds a topic by its name, or by its id where the version says so, and fills
// in the other.
func topicOf(image *metadata.Image, byID bool, name *string, id *[16]byte) (*metadata.Topic, kafka.Code) {
	if byID {
		t, ok := image.TopicByID(*id)
		if !ok {
			return nil, kafka.UnknownTopicID
		}
		*name = t.Name
		return t, kafka.None
	}
	t, ok := image.Topic(*name)
	if !ok {
		return nil, kafka.UnknownTopicOrPartition
	}
	*id = t.ID
	return t, kafka.None
}

// merged puts the coordinator's answers, which are in the request's order, between
// those that need no coordinator.
func merged(req *kmsg.OffsetCommitRequest, codes [][]kafka.Code, resp *kmsg.OffsetCommitResponse) kmsg.Response {
	var answered []kmsg.OffsetCommitResponseTopicPartition
	if resp != nil {
		for _, t := range resp.Topics {
			answered = append(answered, t.Partitions...)
		}
	}
	out := kmsg.NewPtrOffsetCommitResponse()
	for i, t := range req.Topics {
		topic := kmsg.NewOffsetCommitResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for k, p := range t.Partitions {
			one := kmsg.NewOffsetCommitResponseTopicPartition()
			one.Partition, one.ErrorCode = p.Partition, int16(codes[i][k])
			if codes[i][k] == kafka.None {
				one, answered = answered[0], answered[1:]
			}
			topic.Partitions = append(topic.Partitions, one)
		}
		out.Topics = append(out.Topics, topic)
	}
	return out
}
