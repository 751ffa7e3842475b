package api

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/ha/controller"
)

// notAsked is AuthorizedOperations where the request did not ask for them.
const notAsked = math.MinInt32

// What anybody may do with a topic, the cluster or a group while there is no
// authorizer: bits of the operations by number (KIP-430).
const (
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	groupOperations   = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
)

// Metadata, key 3.
//
//	v0   empty topics means all
//	v1   null topics means all; rack, controller id, internal
//	v4   allow auto creation
//	v7   leader epochs
//	v8   authorized operations
//	v10  topic ids
//	v12  topics by id
//
// Errors per topic: UNKNOWN_TOPIC_OR_PARTITION (also for one being made),
// UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST by id before version 12.
// Per partition: LEADER_NOT_AVAILABLE.
func (b *Broker) metadata(x *call, req *kmsg.MetadataRequest) kmsg.Response {
	if x.h.Version >= 10 && x.h.Version < 12 && slices.ContainsFunc(req.Topics, namesByID) {
		return b.refuseMetadata(x, req)
	}
	image := b.opt.Controller.Image()
	resp := kmsg.NewPtrMetadataResponse()
	resp.ClusterID = &b.opt.ClusterID
	resp.ControllerID = int32(b.opt.Broker)
	resp.AuthorizedOperations = notAsked
	if req.IncludeClusterAuthorizedOperations && x.h.Version <= 10 {
		resp.AuthorizedOperations = clusterOperations
	}
	b.brokers(x, image, resp)
	if req.Topics == nil || x.h.Version == 0 && len(req.Topics) == 0 {
		for _, t := range image.Topics() {
			resp.Topics = append(resp.Topics, b.topicMetadata(x, req, t))
		}
		return resp
	}
	seen := map[string]bool{}
	for _, q := range req.Topics {
		if q.Topic != nil && seen[*q.Topic] {
			continue
		}
		if q.Topic != nil {
			seen[*q.Topic] = true
		}
		resp.Topics = append(resp.Topics, b.oneTopic(x, req, image, q))
	}
	return resp
}

func namesByID(t kmsg.MetadataRequestTopic) bool { return t.Topic == nil || t.TopicID != [16]byte{} }

// refuseMetadata answers versions 10 and 11 that ask by id: they have ids, and may not
// be asked by them.
func (b *Broker) refuseMetadata(x *call, req *kmsg.MetadataRequest) kmsg.Response {
	e := kafka.Refuse(kafka.InvalidRequest, "version %d asks for topics by id; version 12 may", x.h.Version)
	b.refused(x, "", -1, e)
	resp := kmsg.NewPtrMetadataResponse()
	resp.ControllerID, resp.AuthorizedOperations = int32(kafka.NoBroker), notAsked
	for _, q := range req.Topics {
		name := q.Topic
		if name == nil {
			name = kmsg.StringPtr("")
		}
		resp.Topics = append(resp.Topics, b.noTopic(name, q.TopicID, e.Code))
	}
	return resp
}

// brokers lists the live brokers at the address of the listener that was asked.
func (b *Broker) brokers(x *call, image *metadata.Image, resp *kmsg.MetadataResponse) {
	for _, r := range image.Brokers() {
		if r.Fenced() {
			continue
		}
		one := kmsg.NewMetadataResponseBroker()
		one.NodeID = int32(r.ID)
		if r.Rack != "" {
			one.Rack = kmsg.StringPtr(r.Rack)
		}
		if r.ID == b.opt.Broker {
			e := b.opt.Advertised[x.c.Listener]
			one.Host, one.Port = e.Host, int32(e.Port)
		} else if !addressOf(r, x.c.Listener, &one) {
			continue
		}
		resp.Brokers = append(resp.Brokers, one)
	}
}

func addressOf(r *metadata.Broker, listener string, one *kmsg.MetadataResponseBroker) bool {
	for _, l := range r.Listeners {
		if l.Name == listener {
			one.Host, one.Port = l.Host, int32(l.Port)
			return true
		}
	}
	return false
}

func (b *Broker) oneTopic(x *call, req *kmsg.MetadataRequest, image *metadata.Image, q kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
	id := kafka.TopicID(q.TopicID)
	if q.Topic == nil || x.h.Version >= 12 && !id.IsZero() {
		t, ok := image.TopicByID(id)
		if !ok {
			return b.noTopic(nil, id, kafka.UnknownTopicID)
		}
		return b.topicMetadata(x, req, t)
	}
	if t, ok := image.Topic(*q.Topic); ok {
		return b.topicMetadata(x, req, t)
	}
	if e := controller.CheckTopicName(*q.Topic); e != nil {
		b.refused(x, *q.Topic, -1, e)
		return b.noTopic(q.Topic, kafka.TopicID{}, kafka.InvalidTopicException)
	}
	if b.opt.AutoCreate && (x.h.Version < 4 || req.AllowAutoTopicCreation) {
		return b.autoCreate(x, req, *q.Topic)
	}
	return b.noTopic(q.Topic, kafka.TopicID{}, kafka.UnknownTopicOrPartition)
}

// autoCreate makes a topic that a client asked about. Here it is there at once; a
// client that is told that it is unknown would ask again only after its back-off.
func (b *Broker) autoCreate(x *call, req *kmsg.MetadataRequest, name string) kmsg.MetadataResponseTopic {
	a, e := do[controller.TopicsCreated](b, x, autoCreateTimeout, controller.CreateTopics{
		Topics: []controller.NewTopic{{Name: name, Partitions: -1, ReplicationFactor: -1}}})
	if e == nil {
		if made := a.Topics[0]; made.Err != nil && made.Err.Code != kafka.TopicAlreadyExists {
			e = made.Err
		}
	}
	if e != nil {
		b.refused(x, name, -1, e)
		if e.Code != kafka.InvalidTopicException {
			e = errUnknown
		}
		return b.noTopic(&name, kafka.TopicID{}, e.Code)
	}
	if t, ok := b.opt.Controller.Image().Topic(name); ok {
		return b.topicMetadata(x, req, t)
	}
	return b.noTopic(&name, kafka.TopicID{}, kafka.UnknownTopicOrPartition)
}

const autoCreateTimeout = 10 * time.Second

func (b *Broker) noTopic(name *string, id kafka.TopicID, c kafka.Code) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID, t.ErrorCode, t.AuthorizedOperations = name, id, int16(c), notAsked
	if name != nil {
		t.IsInternal = internal(*name)
	}
	return t
}

func (b *Broker) topicMetadata(_ *call, req *kmsg.MetadataRequest, t *metadata.Topic) kmsg.MetadataResponseTopic {
	rt := kmsg.NewMetadataResponseTopic()
	name := t.Name
	rt.Topic, rt.TopicID, rt.IsInternal, rt.AuthorizedOperations = &name, t.ID, internal(name), notAsked
	if req.IncludeTopicAuthorizedOperations {
		rt.AuthorizedOperations = topicOperations
	}
	for n, s := range t.Partitions() {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch = n, int32(s.Leader), int32(s.LeaderEpoch)
		p.Replicas, p.ISR = ids(s.Replicas), ids(s.ISR)
		if s.Leader == kafka.NoBroker {
			p.ErrorCode = int16(kafka.LeaderNotAvailable)
		}
		p.OfflineReplicas = []int32{}
		rt.Partitions = append(rt.Partitions, p)
	}
	return rt
}

func ids(in []kafka.BrokerID) []int32 {
	out := make([]int32, len(in))
	for i, id := range in {
		out[i] = int32(id)
	}
	return out
}

// internal tells whether a topic belongs to the broker.
func internal(name string) bool {
	return name == "__consumer_offsets" || name == "__transaction_state" || name == "__share_group_state"
}
