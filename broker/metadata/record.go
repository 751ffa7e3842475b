package metadata

import (
	"slices"

	"varve/broker/kafka"
)

// A Record is one change of the image. Records are values: nothing of them is
// written to after they were made.
type Record interface {
	// kind is the record's class on the wire.
	kind() kind
	// appendBody appends the fields, without the tagged ones.
	appendBody(dst []byte) []byte
}

type kind uint8

// The classes of records. Numbers are for ever; 16 to 23 are kept for client
// quotas, ACLs, SCRAM credentials and delegation tokens.
const (
	kindCluster         kind = 1
	kindFeature         kind = 2
	kindController      kind = 3
	kindFrame           kind = 4
	kindBroker          kind = 5
	kindFence           kind = 6
	kindUnregister      kind = 7
	kindTopic           kind = 8
	kindPartitions      kind = 9
	kindPartitionChange kind = 10
	kindRemoveTopic     kind = 11
	kindTopicGone       kind = 12
	kindConfig          kind = 13
	kindProducerIDs     kind = 14
	kindDeletedTopic    kind = 15
)

// MaxReplicas bounds a partition's replica set: ISR and ELR are bitmaps over it.
const MaxReplicas = 32

// Cluster names the cluster; the first edit of a log holds it.
type Cluster struct{ ID string }

// Feature sets a feature's finalized level; 0 removes it.
type Feature struct {
	Name  string
	Level int16
}

// ControllerChange says that a controller's term began. It drops a frame that the
// term before left open (A15).
type ControllerChange struct {
	Epoch kafka.ControllerEpoch
	Who   string
}

// A FrameState is the place of an edit within a change of several edits.
type FrameState uint8

// The states of a frame: begin, more…, end; or aborted by the next controller.
const (
	FrameBegin FrameState = iota
	FrameMore
	FrameEnd
	FrameAbort
)

// Frame says that all records after it in its edit are part of one change, which
// readers apply at its end (A15). ID tells frames of different terms apart.
type Frame struct {
	ID    uint64
	State FrameState
}

// A Listener is one way to reach a broker.
type Listener struct {
	Name     string
	Host     string
	Port     uint16
	Security int16 // Kafka's SecurityProtocol id: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
}

// BrokerRegistration says that a process took a broker's id. It is void unless
// Epoch is above the one registered (A13), and unfences the broker. Its fold
// raises the leader epoch of every partition that the broker leads at that
// moment, so that no epoch has two appenders (A5); where the broker stands beside
// others, partition changes before it in the same edit have taken its seat.
type BrokerRegistration struct {
	ID          kafka.BrokerID
	Epoch       kafka.BrokerEpoch
	Incarnation [16]byte // drawn by each process
	Folder      [16]byte // id of its data folder
	Listeners   []Listener
	Rack        string
	// Unclean: the log may have lost its end (A7); partitions of which the broker is the
	// only member are led RECOVERING.
	Unclean bool
}

// BrokerFence fences a broker at an epoch; void if it has registered above (A13).
type BrokerFence struct {
	ID    kafka.BrokerID
	Epoch kafka.BrokerEpoch
}

// Unregister forgets a fenced broker.
type Unregister struct{ ID kafka.BrokerID }

// NewTopic makes a topic without partitions; Partitions records give it some.
type NewTopic struct {
	ID   kafka.TopicID
	Name string
}

// A Members is a set of places in a replica set: bit i is Replicas[i].
type Members uint32

// A ReplicaSet is a partition's assignment. Adding and Removing are subsets of
// Replicas while the partition is being reassigned.
type ReplicaSet struct {
	Replicas, Adding, Removing []kafka.BrokerID
}

// A Slot is a partition's state, written over its replica set.
type Slot struct {
	Partition      int32
	Set            int // index into the record's Sets; NoSet keeps the one there is
	ISR, ELR       Members
	Leader         int8 // place in the set, -1 none
	LastLeader     int8 // place of who led last while nobody leads, else -1 (A7)
	LeaderEpoch    kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	Recovering     bool // elected uncleanly and not yet recovered (KIP-704)
}

// NoSet is Slot.Set of a change that leaves the replica set alone.
const NoSet = -1

// Partitions adds partitions to a topic, dense from its present count on.
type Partitions struct {
	Topic kafka.TopicID
	Sets  []ReplicaSet
	Slots []Slot
}

// PartitionChange replaces partitions' states. A slot is void unless its (leader
// epoch, partition epoch) is above what is there.
type PartitionChange struct {
	Topic kafka.TopicID
	Sets  []ReplicaSet
	Slots []Slot
}

// RemoveTopic deletes a topic and its configs. Tiered leaves its name behind until
// TopicGone: somebody must delete its remote files (T14).
type RemoveTopic struct {
	ID     kafka.TopicID
	Tiered bool
}

// DeletedTopic is what RemoveTopic leaves behind, in snapshots: a topic whose remote
// files somebody must still delete (T14).
type DeletedTopic struct {
	ID         kafka.TopicID
	Name       string
	Partitions int32
}

// TopicGone says that nothing of a deleted topic is left in the tier (T14).
type TopicGone struct{ ID kafka.TopicID }

// A ResourceType says what a config belongs to, in Kafka's numbers.
type ResourceType int8

// The resource types that the image keeps configs of.
const (
	TopicResource         ResourceType = 2
	BrokerResource        ResourceType = 4
	ClientMetricsResource ResourceType = 16
	GroupResource         ResourceType = 32
)

// A Setting is a config's new value; nil removes it.
type Setting struct {
	Key   string
	Value *string
}

// Config changes settings of one resource. A topic's is void if there is no such topic.
type Config struct {
	Type     ResourceType
	Name     string // topic name, broker id in decimals ("" = all), group id
	Settings []Setting
}

// ProducerIDBlock says that ids below Next are given out.
type ProducerIDBlock struct {
	Broker kafka.BrokerID
	Epoch  kafka.BrokerEpoch
	Next   kafka.ProducerID
}

func (DeletedTopic) kind() kind       { return kindDeletedTopic }
func (Cluster) kind() kind            { return kindCluster }
func (Feature) kind() kind            { return kindFeature }
func (ControllerChange) kind() kind   { return kindController }
func (Frame) kind() kind              { return kindFrame }
func (BrokerRegistration) kind() kind { return kindBroker }
func (BrokerFence) kind() kind        { return kindFence }
func (Unregister) kind() kind         { return kindUnregister }
func (NewTopic) kind() kind           { return kindTopic }
func (Partitions) kind() kind         { return kindPartitions }
func (PartitionChange) kind() kind    { return kindPartitionChange }
func (RemoveTopic) kind() kind        { return kindRemoveTopic }
func (TopicGone) kind() kind          { return kindTopicGone }
func (Config) kind() kind             { return kindConfig }
func (ProducerIDBlock) kind() kind    { return kindProducerIDs }

// Has tells whether place i is a member.
func (m Members) Has(i int) bool { return i >= 0 && m>>i&1 == 1 }

// With returns m with place i.
func (m Members) With(i int) Members { return m | 1<<i }

// Without returns m without place i.
func (m Members) Without(i int) Members { return m &^ (1 << i) }

// Place is b's place in the set, or -1.
func (s ReplicaSet) Place(b kafka.BrokerID) int { return slices.Index(s.Replicas, b) }

// Members is the bitmap of those of ids that are in the set.
func (s ReplicaSet) Members(ids []kafka.BrokerID) (m Members) {
	for _, b := range ids {
		if i := s.Place(b); i >= 0 {
			m = m.With(i)
		}
	}
	return m
}

// Brokers are the members of m, in the order of the assignment. Where m is the
// whole set it is Replicas itself: not to be written to.
func (s ReplicaSet) Brokers(m Members) []kafka.BrokerID {
	if m == 1<<len(s.Replicas)-1 {
		return s.Replicas
	}
	out := make([]kafka.BrokerID, 0, len(s.Replicas))
	for i, b := range s.Replicas {
		if m.Has(i) {
			out = append(out, b)
		}
	}
	return out
}
