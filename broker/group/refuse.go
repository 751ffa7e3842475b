package group

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// Refuse is the response to a request that a shard cannot take: it is loading
// (COORDINATOR_LOAD_IN_PROGRESS), elsewhere (NOT_COORDINATOR), or could not write. The
// code stands wherever that version of the response has a place for it: OffsetFetch
// v1 has it on partitions only, and clients that find none there begin anew.
func Refuse(body kmsg.Request, code kafka.Code) kmsg.Response {
	c := int16(code)
	switch q := body.(type) {
	case *kmsg.JoinGroupRequest:
		return refusedJoin(q.Version, q.MemberID, code)
	case *kmsg.SyncGroupRequest:
		return refusedSync(q.Version, code)
	case *kmsg.HeartbeatRequest:
		r := q.ResponseKind().(*kmsg.HeartbeatResponse)
		r.ErrorCode = c
		return r
	case *kmsg.LeaveGroupRequest:
		r := q.ResponseKind().(*kmsg.LeaveGroupResponse)
		r.ErrorCode = c
		return r
	case *kmsg.OffsetCommitRequest:
		return refuseCommit(q, c)
	case *kmsg.OffsetFetchRequest:
		return refuseFetch(q, c)
	case *kmsg.OffsetDeleteRequest:
		r := q.ResponseKind().(*kmsg.OffsetDeleteResponse)
		r.ErrorCode = c
		return r
	case *kmsg.DescribeGroupsRequest:
		r := q.ResponseKind().(*kmsg.DescribeGroupsResponse)
		for _, name := range q.Groups {
			d := kmsg.NewDescribeGroupsResponseGroup()
			d.Group, d.ErrorCode, d.AuthorizedOperations = name, c, notAsked
			r.Groups = append(r.Groups, d)
		}
		return r
	case *kmsg.ListGroupsRequest:
		r := q.ResponseKind().(*kmsg.ListGroupsResponse)
		r.ErrorCode = c
		return r
	case *kmsg.DeleteGroupsRequest:
		r := q.ResponseKind().(*kmsg.DeleteGroupsResponse)
		for _, name := range q.Groups {
			d := kmsg.NewDeleteGroupsResponseGroup()
			d.Group, d.ErrorCode = name, c
			r.Groups = append(r.Groups, d)
		}
		return r
	}
	panic(fmt.Sprintf("group: unknown request %T", body))
}

func refuseCommit(q *kmsg.OffsetCommitRequest, code int16) kmsg.Response {
	r := q.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetCommitResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			one := kmsg.NewOffsetCommitResponseTopicPartition()
			one.Partition, one.ErrorCode = p.Partition, code
			topic.Partitions = append(topic.Partitions, one)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func refuseFetch(q *kmsg.OffsetFetchRequest, code int16) kmsg.Response {
	r := q.ResponseKind().(*kmsg.OffsetFetchResponse)
	if q.Version >= 8 {
		for _, asked := range q.Groups {
			g := kmsg.NewOffsetFetchResponseGroup()
			g.Group, g.ErrorCode = asked.Group, code
			r.Groups = append(r.Groups, g)
		}
		return r
	}
	r.ErrorCode = code
	if q.Version >= 2 {
		return r
	}
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetFetchResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			one := kmsg.NewOffsetFetchResponseTopicPartition()
			one.Partition, one.Offset, one.LeaderEpoch, one.Metadata, one.ErrorCode = p, -1, -1, new(string), code
			topic.Partitions = append(topic.Partitions, one)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}
