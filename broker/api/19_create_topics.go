package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/ha/controller"
)

// CreateTopics, key 19.
//
//	v4  -1 stands for the broker's defaults
//	v5  the answer has counts and configs
//	v7  the answer has the topic id
//
// Errors per topic: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS,
// INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG,
// INVALID_REQUEST, POLICY_VIOLATION, REQUEST_TIMED_OUT.
func (b *Broker) createTopics(x *call, req *kmsg.CreateTopicsRequest) kmsg.Response {
	resp := kmsg.NewPtrCreateTopicsResponse()
	ask := controller.CreateTopics{ValidateOnly: req.ValidateOnly}
	for _, t := range req.Topics {
		ask.Topics = append(ask.Topics, newTopic(t))
	}
	a, e := do[controller.TopicsCreated](b, x, timeoutOf(req.TimeoutMillis), ask)
	if e != nil {
		for _, t := range req.Topics {
			a.Topics = append(a.Topics, controller.TopicCreated{Name: t.Topic, Err: e})
		}
	}
	for _, t := range a.Topics {
		resp.Topics = append(resp.Topics, b.topicCreated(t))
		b.refused(x, t.Name, -1, t.Err)
	}
	return resp
}

func newTopic(t kmsg.CreateTopicsRequestTopic) controller.NewTopic {
	n := controller.NewTopic{Name: t.Topic, Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor}
	for _, a := range t.ReplicaAssignment {
		n.Assignments = append(n.Assignments, controller.Assignment{Partition: a.Partition, Brokers: brokers(a.Replicas)})
	}
	for _, c := range t.Configs {
		n.Configs = append(n.Configs, controller.NamedValue{Name: c.Name, Value: c.Value})
	}
	return n
}

func brokers(in []int32) []kafka.BrokerID {
	out := make([]kafka.BrokerID, len(in))
	for i, id := range in {
		out[i] = kafka.BrokerID(id)
	}
	return out
}

func (b *Broker) topicCreated(t controller.TopicCreated) kmsg.CreateTopicsResponseTopic {
	rt := kmsg.NewCreateTopicsResponseTopic()
	rt.Topic, rt.Configs = t.Name, []kmsg.CreateTopicsResponseTopicConfig{} // null is a crash of the Java admin client
	rt.NumPartitions, rt.ReplicationFactor = -1, -1
	if t.Err != nil {
		rt.ErrorCode, rt.ErrorMessage = int16(t.Err.Code), message(t.Err)
		return rt
	}
	rt.TopicID, rt.NumPartitions, rt.ReplicationFactor = t.ID, t.Partitions, t.ReplicationFactor
	entries := b.opt.Configs.TopicEntries(t.Configs)
	for _, e := range slices.Clip(entries) {
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.ReadOnly, c.Source, c.IsSensitive = e.Name, e.Value, e.ReadOnly, int8(e.Source), e.Sensitive
		rt.Configs = append(rt.Configs, c)
	}
	return rt
}
