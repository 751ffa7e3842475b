package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// OffsetFetch, key 9.
//
//	v2  null topics ask for all; an error of its own for the whole
//	v5  LeaderEpoch
//	v7  RequireStable
//	v8  several groups
//	v10 topic ids
//
// Errors: those of group's, for the whole; v8 on for each group. A topic id that is not
// known is UNKNOWN_TOPIC_ID on its partitions; a name that is not is no error.
func (b *Broker) offsetFetch(x *call, req *kmsg.OffsetFetchRequest) kmsg.Response {
	if req.Version < 8 {
		return b.askGroup(x, req.Group, req)
	}
	image := b.opt.Controller.Image()
	unknown := make([][]kmsg.OffsetFetchResponseGroupTopic, len(req.Groups))
	var qs []question
	for i, g := range req.Groups {
		if req.Version >= 10 {
			g.Topics, unknown[i] = known(image, g.Topics)
		}
		one := *req
		one.Groups = []kmsg.OffsetFetchRequestGroup{g}
		qs = append(qs, question{b.opt.Groups.Shard(g.Group), &one})
	}
	resp := kmsg.NewPtrOffsetFetchResponse()
	for i, r := range b.ask(x, qs) {
		g := r.(*kmsg.OffsetFetchResponse).Groups[0]
		if req.Version >= 10 {
			g.Topics = withIDs(image, g.Topics)
		}
		if g.ErrorCode == 0 {
			g.Topics = append(unknown[i], g.Topics...)
		}
		resp.Groups = append(resp.Groups, g)
	}
	return resp
}

// known names the topics that are asked for by id, and answers those that are not
// there. Nil, which asks for all, stays nil.
func known(image *metadata.Image, asked []kmsg.OffsetFetchRequestGroupTopic) (have []kmsg.OffsetFetchRequestGroupTopic, unknown []kmsg.OffsetFetchResponseGroupTopic) {
	if asked == nil {
		return nil, nil
	}
	have = []kmsg.OffsetFetchRequestGroupTopic{}
	for _, t := range asked {
		if topic, ok := image.TopicByID(t.TopicID); ok {
			t.Topic = topic.Name
			have = append(have, t)
			continue
		}
		r := kmsg.NewOffsetFetchResponseGroupTopic()
		r.TopicID = t.TopicID
		for _, p := range t.Partitions {
			one := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			one.Partition, one.Offset, one.LeaderEpoch, one.Metadata = p, -1, -1, new(string)
			one.ErrorCode = int16(kafka.UnknownTopicID)
			r.Partitions = append(r.Partitions, one)
		}
		unknown = append(unknown, r)
	}
	return have, unknown
}

// withIDs gives topics their ids. One that has none, because it is no more, cannot be
// told by id and is left out.
func withIDs(image *metadata.Image, topics []kmsg.OffsetFetchResponseGroupTopic) []kmsg.OffsetFetchResponseGroupTopic {
	var out []kmsg.OffsetFetchResponseGroupTopic
	for _, t := range topics {
		if t.TopicID == [16]byte{} {
			topic, ok := image.Topic(t.Topic)
			if !ok {
				continue
			}
			t.TopicID = topic.ID
		}
		out = append(out, t)
	}
	return out
}
