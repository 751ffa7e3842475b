package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/ha/controller"
)

// DeleteTopics, key 20.
//
//	v5  error messages
//	v6  topics by name or by id
//
// Errors per topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST,
// TOPIC_DELETION_DISABLED, REQUEST_TIMED_OUT.
func (b *Broker) deleteTopics(x *call, req *kmsg.DeleteTopicsRequest) kmsg.Response {
	resp := kmsg.NewPtrDeleteTopicsResponse()
	var ask controller.DeleteTopics
	if x.h.Version >= 6 {
		for _, t := range req.Topics {
			ask.Topics = append(ask.Topics, controller.TopicRef{Name: t.Topic, ID: t.TopicID})
		}
	} else {
		for _, name := range req.TopicNames {
			ask.Topics = append(ask.Topics, controller.TopicRef{Name: &name})
		}
	}
	a, e := b.doDelete(x, req, ask)
	if e != nil {
		for _, t := range ask.Topics {
			d := controller.TopicDeleted{ID: t.ID, Err: e}
			if t.Name != nil {
				d.Name = *t.Name
			}
			a.Topics = append(a.Topics, d)
		}
	}
	for _, t := range a.Topics {
		rt := kmsg.NewDeleteTopicsResponseTopic()
		rt.TopicID, rt.ErrorCode = t.ID, code(t.Err)
		if t.Name != "" || x.h.Version < 6 {
			rt.Topic = &t.Name
		}
		if t.Err != nil {
			rt.ErrorMessage = message(t.Err)
		}
		resp.Topics = append(resp.Topics, rt)
		b.refused(x, t.Name, -1, t.Err)
	}
	return resp
}

func (b *Broker) doDelete(x *call, req *kmsg.DeleteTopicsRequest, ask controller.DeleteTopics) (controller.TopicsDeleted, *kafka.Error) {
	if !b.opt.DeleteTopics {
		return controller.TopicsDeleted{}, &kafka.Error{Code: kafka.TopicDeletionDisabled, Message: "delete.topic.enable is false"}
	}
	return do[controller.TopicsDeleted](b, x, timeoutOf(req.TimeoutMillis), ask)
}
