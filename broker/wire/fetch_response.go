package wire

import (
	"encoding/binary"

	"varve/broker/kafka"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A FetchResponse is the version of a Fetch answer; its methods append the answer's
// pieces around the record bytes, which never pass through here, in the order
//
//	Begin { Topic { Partition, record bytes, EndPartition } EndTopic } End
type FetchResponse int16

// A FetchResult is a partition's part of the answer without its records.
type FetchResult struct {
	Partition     int32
	Code          kafka.Code
	HighWatermark kafka.Offset
	LastStable    kafka.Offset
	LogStart      kafka.Offset
	Aborted       []AbortedTransaction // read_committed only
	ReadCommitted bool                 // Aborted is an array, perhaps empty, and not null
	Preferred     kafka.BrokerID       // replica to read from instead; NoBroker is none

	Diverging Diverging  // from version 12 on, as Leader
	Leader    LeaderHint // who leads now
	Follower  FollowerFacts
}

// An AbortedTransaction is one whose records a read_committed reader skips.
type AbortedTransaction struct {
	Producer kafka.ProducerID
	First    kafka.Offset
}

// A Diverging tells a reader the largest epoch, not above its own, that the leader
// knows, and where it ends. The zero value is none.
type Diverging struct {
	Known bool
	Epoch kafka.LeaderEpoch
	End   kafka.Offset
}

// FollowerFacts is what a leader tells its followers beyond Kafka's fields, in
// private tags of the partition. The zero value sends nothing; consumers are sent
// nothing.
type FollowerFacts struct {
	Known         bool
	SegmentBase   kafka.Offset // base of the segment that the records are of
	HighestTiered kafka.Offset // last offset that is in the tier; NoOffset is none
	LogStart      kafka.Offset // of the partition, tier included
}

// The private tags, each an int64. Kafka's own end at 2.
const (
	TagSegmentBase   = 10_000
	TagHighestTiered = 10_001
	TagLogStart      = 10_002
)

func (v FetchResponse) flexible() bool { return v >= 12 }

// Begin appends what comes before the topics. throttle is in ms.
func (v FetchResponse) Begin(dst []byte, throttle int32, code kafka.Code, session int32, topics int) []byte {
	dst = appendInt32(dst, throttle)
	if v >= 7 {
		dst = appendInt16(dst, int16(code))
		dst = appendInt32(dst, session)
	}
	return appendCount(dst, topics, v.flexible())
}

// Topic appends a topic up to its partitions, by name up to version 12, by id after.
func (v FetchResponse) Topic(dst []byte, name string, id kafka.TopicID, partitions int) []byte {
	if v >= 13 {
		dst = append(dst, id[:]...)
	} else {
		dst = appendString(dst, name, v.flexible())
	}
	return appendCount(dst, partitions, v.flexible())
}

// Partition appends a partition up to its records, of which there are n bytes.
func (v FetchResponse) Partition(dst []byte, r *FetchResult, n int) []byte {
	dst = appendInt32(dst, r.Partition)
	dst = appendInt16(dst, int16(r.Code))
	dst = appendInt64(dst, int64(r.HighWatermark))
	dst = appendInt64(dst, int64(r.LastStable))
	if v >= 5 {
		dst = appendInt64(dst, int64(r.LogStart))
	}
	dst = v.aborted(dst, r)
	if v >= 11 {
		dst = appendInt32(dst, int32(r.Preferred))
	}
	return appendCount(dst, n, v.flexible())
}

func (v FetchResponse) aborted(dst []byte, r *FetchResult) []byte {
	if !r.ReadCommitted {
		return appendNull(dst, v.flexible())
	}
	dst = appendCount(dst, len(r.Aborted), v.flexible())
	for _, a := range r.Aborted {
		dst = appendInt64(dst, int64(a.Producer))
		dst = appendInt64(dst, int64(a.First))
		dst = appendNoTags(dst, v.flexible())
	}
	return dst
}

// EndPartition appends what comes after a partition's records.
func (v FetchResponse) EndPartition(dst []byte, r *FetchResult) []byte {
	if !v.flexible() {
		return dst
	}
	at := len(dst)
	dst = append(dst, 0)
	if d := r.Diverging; d.Known {
		dst[at]++
		dst = append(dst, 0, 4+8+1)
		dst = appendInt32(dst, int32(d.Epoch))
		dst = appendInt64(dst, int64(d.End))
		dst = append(dst, 0)
	}
	if r.Leader.Known {
		dst[at]++
		dst = r.Leader.appendTag(dst, 1)
	}
	if f := r.Follower; f.Known {
		dst[at] += 3
		dst = appendOffsetTag(dst, TagSegmentBase, f.SegmentBase)
		dst = appendOffsetTag(dst, TagHighestTiered, f.HighestTiered)
		dst = appendOffsetTag(dst, TagLogStart, f.LogStart)
	}
	return dst
}

func appendOffsetTag(dst []byte, number uint64, o kafka.Offset) []byte {
	dst = binary.AppendUvarint(dst, number)
	return appendInt64(append(dst, 8), int64(o))
}

// EndTopic appends what comes after a topic's partitions.
func (v FetchResponse) EndTopic(dst []byte) []byte { return appendNoTags(dst, v.flexible()) }

// End appends what comes after the topics: the nodes that leader hints name, from
// version 16 on.
func (v FetchResponse) End(dst []byte, nodes []Node) []byte {
	if v >= 16 {
		return appendNodes(dst, nodes)
	}
	return appendNoTags(dst, v.flexible())
}

// ReadFollowerFacts finds a leader's private tags among those of a partition that
// kmsg decoded. Facts are known only where all three are there and whole.
func ReadFollowerFacts(tags *kmsg.Tags) FollowerFacts {
	var f FollowerFacts
	found := 0
	tags.Each(func(number uint32, v []byte) {
		if len(v) != 8 {
			return
		}
		o := kafka.Offset(binary.BigEndian.Uint64(v))
		switch number {
		case TagSegmentBase:
			f.SegmentBase = o
		case TagHighestTiered:
			f.HighestTiered = o
		case TagLogStart:
			f.LogStart = o
		default:
			return
		}
		found++
	})
	if found != 3 {
		return FollowerFacts{}
	}
	f.Known = true
	return f
}
