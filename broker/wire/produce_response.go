package wire

import (
	"encoding/binary"

	"varve/broker/kafka"
)

// A ProduceResponse is the version of a Produce answer; its methods append the
// answer's pieces, in the order
//
//	Begin { Topic { Partition } EndTopic } End
type ProduceResponse int16

// A ProduceResult is what became of one partition's records.
type ProduceResult struct {
	Partition  int32
	Code       kafka.Code
	Base       kafka.Offset // of the first record; NoOffset where refused
	AppendTime int64        // ms since the epoch; -1 unless the topic stamps it
	LogStart   kafka.Offset
	Records    []RecordError // from version 8 on, as Message
	Message    string        // "" is null
	Leader     LeaderHint    // from version 10 on
}

// A RecordError says what is wrong with one record of a refused batch.
type RecordError struct {
	Index   int32 // in the batch
	Message string
}

// CodeAt is where a partition's code lies, in bytes after the partition's start.
// A Produce that waits for replicas is encoded at once, and the codes of those
// partitions that fail afterwards are overwritten.
const CodeAt = 4

// SetCode overwrites the code of the partition that starts at b.
func SetCode(b []byte, code kafka.Code) { binary.BigEndian.PutUint16(b[CodeAt:], uint16(code)) }

func (v ProduceResponse) flexible() bool { return v >= 9 }

// Begin appends what comes before the topics.
func (v ProduceResponse) Begin(dst []byte, topics int) []byte {
	return appendCount(dst, topics, v.flexible())
}

// Topic appends a topic up to its partitions, by name up to version 12, by id after.
func (v ProduceResponse) Topic(dst []byte, name string, id kafka.TopicID, partitions int) []byte {
	if v >= 13 {
		dst = append(dst, id[:]...)
	} else {
		dst = appendString(dst, name, v.flexible())
	}
	return appendCount(dst, partitions, v.flexible())
}

// Partition appends a partition whole.
func (v ProduceResponse) Partition(dst []byte, r *ProduceResult) []byte {
	dst = appendInt32(dst, r.Partition)
	dst = appendInt16(dst, int16(r.Code))
	dst = appendInt64(dst, int64(r.Base))
	dst = appendInt64(dst, r.AppendTime)
	if v >= 5 {
		dst = appendInt64(dst, int64(r.LogStart))
	}
	if v >= 8 {
		dst = appendCount(dst, len(r.Records), v.flexible())
		for _, e := range r.Records {
			dst = appendInt32(dst, e.Index)
			dst = appendNullableString(dst, e.Message, v.flexible())
			dst = appendNoTags(dst, v.flexible())
		}
		dst = appendNullableString(dst, r.Message, v.flexible())
	}
	if v >= 10 && r.Leader.Known {
		return r.Leader.appendTag(append(dst, 1), 0)
	}
	return appendNoTags(dst, v.flexible())
}

// EndTopic appends what comes after a topic's partitions.
func (v ProduceResponse) EndTopic(dst []byte) []byte { return appendNoTags(dst, v.flexible()) }

// End appends what comes after the topics: the throttle time in ms, and the nodes
// that leader hints name, from version 10 on.
func (v ProduceResponse) End(dst []byte, throttle int32, nodes []Node) []byte {
	dst = appendInt32(dst, throttle)
	if v >= 10 {
		return appendNodes(dst, nodes)
	}
	return appendNoTags(dst, v.flexible())
}
