package group

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// A place is a partition that a group commits offsets of.
type place struct {
	topic     string
	partition int32
}

// An offset is what was committed last for a place.
type offset struct {
	at       int64
	epoch    kafka.LeaderEpoch // -1 unknown
	metadata string
	when     int64         // of the commit, ms
	expires  int64         // ms; -1: by the broker's retention
	topicID  kafka.TopicID // zero: not known
}

// OffsetCommit, key 8.
//
//	v2-4 RetentionTimeMillis, this commit's own
//	v6   LeaderEpoch
//	v7   InstanceID
//	v9   GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH are understood (KIP-848)
//	v10  topic ids
//
// Errors, on every partition: GROUP_ID_NOT_FOUND, ILLEGAL_GENERATION,
// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS; on one:
// OFFSET_METADATA_TOO_LARGE.
func (m *Machine) commit(q *kmsg.OffsetCommitRequest) kmsg.Response {
	code := m.checkCommit(q)
	if code == kafka.None && m.groups[q.Group] == nil {
		g := newGroup(q.Group) // of consumers that only commit; no record of its own
		g.since = m.now.UnixMilli()
		m.groups[q.Group] = g
	}
	response := q.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetCommitResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			one := kmsg.NewOffsetCommitResponseTopicPartition()
			one.Partition = p.Partition
			one.ErrorCode = int16(code)
			if code == kafka.None {
				one.ErrorCode = int16(m.commitOne(m.groups[q.Group], q, t, p))
			}
			topic.Partitions = append(topic.Partitions, one)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

// checkCommit decides whether who commits may. A commit with the right generation
// counts as a heartbeat. Without member and generation it is an operator's or a
// consumer's that assigns its partitions itself: allowed while nobody is a member.
func (m *Machine) checkCommit(q *kmsg.OffsetCommitRequest) kafka.Code {
	g := m.groups[q.Group]
	if g == nil {
		switch {
		case q.Generation < 0:
			return kafka.None
		case q.Version >= 9:
			return kafka.GroupIDNotFound
		}
		return kafka.IllegalGeneration
	}
	if q.Generation < 0 && g.state == empty {
		return kafka.None
	}
	if q.Generation < 0 && q.MemberID == "" && q.InstanceID == nil {
		return kafka.UnknownMemberID
	}
	if code := g.check(q.MemberID, q.InstanceID); code != kafka.None {
		return code
	}
	if q.Generation != g.generation {
		return kafka.IllegalGeneration
	}
	if g.state == completing {
		return kafka.RebalanceInProgress
	}
	m.touch(g, g.members[q.MemberID])
	return kafka.None
}

func (m *Machine) commitOne(g *group, q *kmsg.OffsetCommitRequest, t kmsg.OffsetCommitRequestTopic, p kmsg.OffsetCommitRequestTopicPartition) kafka.Code {
	o := offset{at: p.Offset, epoch: kafka.LeaderEpoch(p.LeaderEpoch), when: m.now.UnixMilli(), expires: -1, topicID: t.TopicID}
	if p.Metadata != nil {
		o.metadata = *p.Metadata
	}
	if len(o.metadata) > m.config.MaxMetadata {
		return kafka.OffsetMetadataTooLarge
	}
	if q.Version >= 2 && q.Version <= 4 && q.RetentionTimeMillis != -1 {
		o.expires = o.when + q.RetentionTimeMillis
	}
	at := place{t.Topic, p.Partition}
	g.offsets[at] = o
	m.write(offsetRecord(g.name, at, o))
	return kafka.None
}

// OffsetFetch, key 9.
//
//	v2  a null Topics asks for all; an error of its own for the whole
//	v5  LeaderEpoch
//	v7  RequireStable
//	v8  several groups
//	v10 topic ids
//
// A group or a partition that is not known is no error: its offset is -1.
func (m *Machine) fetch(q *kmsg.OffsetFetchRequest) kmsg.Response {
	response := q.ResponseKind().(*kmsg.OffsetFetchResponse)
	if q.Version >= 8 {
		for _, asked := range q.Groups {
			response.Groups = append(response.Groups, m.fetchGroup(asked))
		}
		return response
	}
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = q.Group
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetFetchRequestGroupTopic()
		topic.Topic, topic.Partitions = t.Topic, t.Partitions
		asked.Topics = append(asked.Topics, topic)
	}
	if q.Topics != nil && asked.Topics == nil {
		asked.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range m.fetchGroup(asked).Topics {
		topic := kmsg.NewOffsetFetchResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseTopicPartition(p))
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

func (m *Machine) fetchGroup(q kmsg.OffsetFetchRequestGroup) kmsg.OffsetFetchResponseGroup {
	response := kmsg.NewOffsetFetchResponseGroup()
	response.Group = q.Group
	g := m.groups[q.Group]
	asked := q.Topics
	if asked == nil && g != nil {
		asked = g.committed()
	}
	for _, t := range asked {
		topic := kmsg.NewOffsetFetchResponseGroupTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, fetched(g, place{t.Topic, p}, t.TopicID))
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

// fetched is the answer for one partition. What was committed for another topic of
// that name does not count.
func fetched(g *group, at place, id kafka.TopicID) kmsg.OffsetFetchResponseGroupTopicPartition {
	p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = at.partition, -1, -1, new(string)
	if g == nil {
		return p
	}
	o, ok := g.offsets[at]
	if !ok || !id.IsZero() && !o.topicID.IsZero() && id != o.topicID {
		return p
	}
	p.Offset, p.LeaderEpoch = o.at, int32(o.epoch)
	*p.Metadata = o.metadata
	return p
}

// committed lists all that the group has committed, by topic and partition.
func (g *group) committed() []kmsg.OffsetFetchRequestGroupTopic {
	list := []kmsg.OffsetFetchRequestGroupTopic{}
	for _, at := range g.places() {
		if n := len(list); n == 0 || list[n-1].Topic != at.topic {
			topic := kmsg.NewOffsetFetchRequestGroupTopic()
			topic.Topic, topic.TopicID = at.topic, g.offsets[at].topicID
			list = append(list, topic)
		}
		last := &list[len(list)-1]
		last.Partitions = append(last.Partitions, at.partition)
	}
	return list
}

func (g *group) places() []place {
	return slices.SortedFunc(maps.Keys(g.offsets), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
}

// OffsetDelete, key 47.
//
// Errors: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP for a group with members that are not
// consumers; per partition GROUP_SUBSCRIBED_TO_TOPIC.
func (m *Machine) deleteOffsets(q *kmsg.OffsetDeleteRequest) kmsg.Response {
	response := q.ResponseKind().(*kmsg.OffsetDeleteResponse)
	g := m.groups[q.Group]
	switch {
	case g == nil:
		response.ErrorCode = int16(kafka.GroupIDNotFound)
		return response
	case g.state != empty && g.protocolType != consumerType:
		response.ErrorCode = int16(kafka.NonEmptyGroup)
		return response
	}
	for _, t := range q.Topics {
		topic := kmsg.NewOffsetDeleteResponseTopic()
		topic.Topic = t.Topic
		subscribed, _ := g.subscribes(t.Topic)
		for _, p := range t.Partitions {
			one := kmsg.NewOffsetDeleteResponseTopicPartition()
			one.Partition = p.Partition
			if subscribed {
				one.ErrorCode = int16(kafka.GroupSubscribedToTopic)
			} else {
				m.dropOffset(g, place{t.Topic, p.Partition})
			}
			topic.Partitions = append(topic.Partitions, one)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

func (m *Machine) dropOffset(g *group, at place) {
	if _, ok := g.offsets[at]; ok {
		delete(g.offsets, at)
		m.write(Record{Key: offsetKey(g.name, at)})
	}
}
