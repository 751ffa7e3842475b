package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/ha/controller"
)

// CreatePartitions, key 37.
//
// Errors per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS,
// INVALID_REPLICA_ASSIGNMENT, INVALID_REQUEST, REQUEST_TIMED_OUT.
func (b *Broker) createPartitions(x *call, req *kmsg.CreatePartitionsRequest) kmsg.Response {
	resp := kmsg.NewPtrCreatePartitionsResponse()
	ask := controller.CreatePartitions{ValidateOnly: req.ValidateOnly}
	for _, t := range req.Topics {
		m := controller.MorePartitions{Name: t.Topic, Count: t.Count}
		if t.Assignment != nil {
			m.Assignments = [][]kafka.BrokerID{}
		}
		for _, a := range t.Assignment {
			m.Assignments = append(m.Assignments, brokers(a.Replicas))
		}
		ask.Topics = append(ask.Topics, m)
	}
	a, e := do[controller.PartitionsCreated](b, x, timeoutOf(req.TimeoutMillis), ask)
	if e != nil {
		for _, t := range req.Topics {
			a.Topics = append(a.Topics, controller.NameResult{Name: t.Topic, Err: e})
		}
	}
	for _, t := range a.Topics {
		rt := kmsg.NewCreatePartitionsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = t.Name, code(t.Err), message(t.Err)
		resp.Topics = append(resp.Topics, rt)
		b.refused(x, t.Name, -1, t.Err)
	}
	return resp
}
