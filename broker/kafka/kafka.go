// Package kafka is the vocabulary of the log: the distinct numbers and names
// that travel between rooms, and the error codes of the wire. It imports nothing
// of ours and decides nothing.
package kafka

import (
	"encoding/base64"
	"fmt"
	"strconv"
)

// An Offset is the place of a record in its partition's log. Offsets are dense
// from the producers' side, and may have gaps after compaction.
type Offset int64

// NoOffset is the absence of an offset on the wire.
const NoOffset Offset = -1

// A LeaderEpoch numbers the leaderships of one partition, upward only.
type LeaderEpoch int32

// NoEpoch is "not known" on the wire: the check is skipped.
const NoEpoch LeaderEpoch = -1

// A BrokerID is a node's number; -1 is "none" (and a consumer, in a fetch).
type BrokerID int32

// NoBroker is the absence of a broker: no leader, or a fetch by a consumer.
const NoBroker BrokerID = -1

// A BrokerEpoch numbers the registrations of brokers, upward only over the whole
// cluster: a later registration of the same broker has a higher one.
type BrokerEpoch int64

// A ControllerEpoch numbers the terms of controllers, upward only.
type ControllerEpoch int32

// A PartitionEpoch counts the changes of one partition's state, upward only.
type PartitionEpoch int32

// A ProducerID names an idempotent or transactional producer; -1 is none.
type ProducerID int64

// NoProducer is the producer id of a batch without idempotence.
const NoProducer ProducerID = -1

// A ProducerEpoch numbers the incarnations of one producer id.
type ProducerEpoch int16

// A TopicID names one creation of a topic: a topic deleted and made again under
// the same name has another.
type TopicID [16]byte

// String is the id as Kafka prints it: base64url without padding, 22 characters.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// IsZero tells whether the id is absent.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// ParseTopicID reads what String wrote.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("topic id %q: want 22 characters of base64url", s)
	}
	copy(id[:], b)
	return id, nil
}

// A TopicPartition names one log of the cluster.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the partition's folder name: topic-partition.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// An EpochStart says that a leader epoch's first record has offset Start.
type EpochStart struct {
	Epoch LeaderEpoch
	Start Offset
}

// A Range is the records from Start up to, not including, End.
type Range struct{ Start, End Offset }

// String is the range in half-open notation.
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.Start, r.End) }

// Empty tells whether no offset is in the range.
func (r Range) Empty() bool { return r.End <= r.Start }
