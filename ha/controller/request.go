package controller

import (
	"varve/broker/kafka"
	"varve/broker/metadata"
)

// A Request is something a client, a broker or the driver asks of the controller.
type Request interface{ request() }

// An Answer is the reply to the request of the same name.
type Answer interface{ answer() }

// BeginTerm is the first request of every term: it says in the log who writes, names
// a new cluster, aborts an open frame (A15) and finishes fencings that a failover cut.
type BeginTerm struct {
	Epoch     kafka.ControllerEpoch
	Who       string
	ClusterID string // used where the log has none
}

// TermBegun answers BeginTerm.
type TermBegun struct{ ClusterID string }

// RegisterBroker says that a process took a broker's id.
type RegisterBroker struct {
	ID          kafka.BrokerID
	ClusterID   string
	Incarnation [16]byte
	Folder      [16]byte // zero: not checked
	Listeners   []metadata.Listener
	Rack        string
	// Unclean: no clean-shutdown marker and another boot id than the last run's (A7).
	Unclean bool
	// Epoch is the broker epoch (a session's czxid); 0 lets the controller draw one.
	Epoch kafka.BrokerEpoch
}

// BrokerRegistered answers RegisterBroker. The same incarnation asking again gets the
// epoch that it has.
type BrokerRegistered struct {
	Err   *kafka.Error
	Epoch kafka.BrokerEpoch
}

// FenceBroker takes a broker out of service at its broker epoch (A13).
type FenceBroker struct {
	ID    kafka.BrokerID
	Epoch kafka.BrokerEpoch
}

// BrokerFenced answers FenceBroker.
type BrokerFenced struct{ Err *kafka.Error }

// CreateTopics makes topics.
type CreateTopics struct {
	Topics       []NewTopic
	ValidateOnly bool
}

// A NewTopic is wanted: either counts (-1 = default) or Assignments with both -1.
type NewTopic struct {
	Name              string
	Partitions        int32
	ReplicationFactor int16
	Assignments       []Assignment
	Configs           []NamedValue
}

// An Assignment puts one partition on brokers, the preferred leader first.
type Assignment struct {
	Partition int32
	Brokers   []kafka.BrokerID
}

// A NamedValue is a config; a nil value is null on the wire.
type NamedValue struct {
	Name  string
	Value *string
}

// TopicsCreated answers CreateTopics, in the order of the request; a name that it had
// twice is answered once.
type TopicsCreated struct{ Topics []TopicCreated }

// TopicCreated is one topic's result. The fields behind Err are set where it is nil.
type TopicCreated struct {
	Name              string
	Err               *kafka.Error
	ID                kafka.TopicID
	Partitions        int32
	ReplicationFactor int16
	Configs           map[string]string // the topic's own settings
}

// DeleteTopics deletes topics, each by name or by id.
type DeleteTopics struct{ Topics []TopicRef }

// A TopicRef names a topic by Name, or by ID where Name is nil.
type TopicRef struct {
	Name *string
	ID   kafka.TopicID
}

// TopicsDeleted answers DeleteTopics.
type TopicsDeleted struct{ Topics []TopicDeleted }

// TopicDeleted is one topic's result; both name and id are set where they are known.
type TopicDeleted struct {
	Name string // "" unknown
	ID   kafka.TopicID
	Err  *kafka.Error
}

// CreatePartitions raises topics' partition counts.
type CreatePartitions struct {
	Topics       []MorePartitions
	ValidateOnly bool
}

// MorePartitions wants Count partitions in all. Assignments, where not nil, has the
// brokers of each additional one.
type MorePartitions struct {
	Name        string
	Count       int32
	Assignments [][]kafka.BrokerID
}

// PartitionsCreated answers CreatePartitions.
type PartitionsCreated struct{ Topics []NameResult }

// A NameResult is a topic's error, nil for success.
type NameResult struct {
	Name string
	Err  *kafka.Error
}

// An OpKind is what an alteration does, in the numbers of IncrementalAlterConfigs.
type OpKind int8

// The kinds of alterations.
const (
	OpSet OpKind = iota
	OpDelete
	OpAppend
	OpSubtract
)

// AlterConfigs changes settings, each resource as a whole or not at all. Replace is
// the old AlterConfigs: what a resource does not name goes back to its default.
type AlterConfigs struct {
	Resources    []AlterResource
	Replace      bool
	ValidateOnly bool
}

// An AlterResource is one resource's alterations.
type AlterResource struct {
	Type metadata.ResourceType
	Name string
	Ops  []ConfigOp
}

// A ConfigOp alters one setting.
type ConfigOp struct {
	Name  string
	Kind  OpKind
	Value *string
}

// ConfigsAltered answers AlterConfigs, in the order of the request.
type ConfigsAltered struct{ Resources []ResourceAltered }

// ResourceAltered is one resource's result.
type ResourceAltered struct {
	Type metadata.ResourceType
	Name string
	Err  *kafka.Error
}

// AlterPartition is a leader's wish for another ISR (KIP-497, KIP-903).
type AlterPartition struct {
	Broker      kafka.BrokerID
	BrokerEpoch kafka.BrokerEpoch
	Partitions  []WantedISR
}

// A WantedISR is one partition's; Members carry the broker epoch of the fetch that
// gave each position (A6).
type WantedISR struct {
	Topic          kafka.TopicID
	Partition      int32
	LeaderEpoch    kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	Members        []ISRMember
	Recovering     bool
}

// An ISRMember is a broker in one of its registrations; epoch -1 skips the check.
type ISRMember struct {
	Broker kafka.BrokerID
	Epoch  kafka.BrokerEpoch
}

// PartitionsAltered answers AlterPartition. Err refuses the whole request.
type PartitionsAltered struct {
	Err        *kafka.Error
	Partitions []PartitionAltered
}

// PartitionAltered is one partition's result, with the state that came of it.
type PartitionAltered struct {
	Topic     kafka.TopicID
	Partition int32
	Code      kafka.Code
	State     metadata.PartitionState
}

// AllocateProducerIDs asks for a block of producer ids.
type AllocateProducerIDs struct {
	Broker      kafka.BrokerID
	BrokerEpoch kafka.BrokerEpoch
}

// ProducerIDBlockSize is how many ids a block has, as in Kafka.
const ProducerIDBlockSize = 1000

// ProducerIDsAllocated answers AllocateProducerIDs: the ids First up to First+Count-1.
type ProducerIDsAllocated struct {
	Err   *kafka.Error
	First kafka.ProducerID
	Count int32
}

// ForgetTopics says that nothing of these deleted topics is left in the tier (T14).
type ForgetTopics struct{ IDs []kafka.TopicID }

// TopicsForgotten answers ForgetTopics.
type TopicsForgotten struct{}

func (BeginTerm) request()           {}
func (RegisterBroker) request()      {}
func (FenceBroker) request()         {}
func (CreateTopics) request()        {}
func (DeleteTopics) request()        {}
func (CreatePartitions) request()    {}
func (AlterConfigs) request()        {}
func (AlterPartition) request()      {}
func (AllocateProducerIDs) request() {}
func (ForgetTopics) request()        {}

func (TermBegun) answer()            {}
func (BrokerRegistered) answer()     {}
func (BrokerFenced) answer()         {}
func (TopicsCreated) answer()        {}
func (TopicsDeleted) answer()        {}
func (PartitionsCreated) answer()    {}
func (ConfigsAltered) answer()       {}
func (PartitionsAltered) answer()    {}
func (ProducerIDsAllocated) answer() {}
func (TopicsForgotten) answer()      {}
