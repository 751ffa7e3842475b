package metadata

import (
	"iter"

	"varve/broker/kafka"
)

// A Topic is one topic of one image. It never changes: an edit that touches it
// makes another, so two images that hold the same *Topic agree on it.
type Topic struct {
	Name string
	ID   kafka.TopicID

	count   int32
	brokers uint64 // bit id mod 64 of every broker that replicates something of it
	chunks  [][]partition
	configs map[string]string
}

// chunkSize bounds what a change of one partition copies.
const chunkSize = 64

// A partition is a partition's state in 32 bytes. Equal sets are one set.
type partition struct {
	set            *ReplicaSet
	isr, elr       Members
	leaderEpoch    kafka.LeaderEpoch
	partitionEpoch kafka.PartitionEpoch
	leader, last   int8
	recovering     bool
}

// A PartitionState is what the image knows of one partition. The slices belong to
// the image.
type PartitionState struct {
	Replicas, Adding, Removing []kafka.BrokerID
	// ISR is who is in sync, ELR who may be elected when nobody of the ISR lives
	// (KIP-966); both in the order of Replicas.
	ISR, ELR       []kafka.BrokerID
	Leader         kafka.BrokerID // kafka.NoBroker while there is none
	LastLeader     kafka.BrokerID // who led last while there is none (A7)
	LeaderEpoch    kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	Recovering     bool
}

// Count is the number of partitions.
func (t *Topic) Count() int32 { return t.count }

// Configs are the topic's own settings; not to be written to.
func (t *Topic) Configs() map[string]string { return t.configs }

// Partition is the state of partition p.
func (t *Topic) Partition(p int32) (PartitionState, bool) {
	if p < 0 || p >= t.count {
		return PartitionState{}, false
	}
	return t.at(p).state(), true
}

// Slot is partition p's state over its replica set, as records write it; p must be
// there. Set is NoSet.
func (t *Topic) Slot(p int32) (ReplicaSet, Slot) {
	x := t.at(p)
	return *x.set, Slot{
		Partition: p, Set: NoSet, ISR: x.isr, ELR: x.elr, Leader: x.leader, LastLeader: x.last,
		LeaderEpoch: x.leaderEpoch, PartitionEpoch: x.partitionEpoch, Recovering: x.recovering,
	}
}

// Partitions visits the partitions by number.
func (t *Topic) Partitions() iter.Seq2[int32, PartitionState] {
	return func(yield func(int32, PartitionState) bool) {
		for p := range t.count {
			if !yield(p, t.at(p).state()) {
				return
			}
		}
	}
}

// Of visits the partitions that broker replicates.
func (t *Topic) Of(broker kafka.BrokerID) iter.Seq2[int32, PartitionState] {
	return func(yield func(int32, PartitionState) bool) {
		if t.brokers>>(uint32(broker)%64)&1 == 0 {
			return
		}
		for p := range t.count {
			x := t.at(p)
			if x.set.Place(broker) >= 0 && !yield(p, x.state()) {
				return
			}
		}
	}
}

func (t *Topic) at(p int32) *partition { return &t.chunks[p/chunkSize][p%chunkSize] }

func (x *partition) state() PartitionState {
	set := x.set
	s := PartitionState{
		Replicas: set.Replicas, Adding: set.Adding, Removing: set.Removing,
		ISR: set.Brokers(x.isr), Leader: kafka.NoBroker, LastLeader: kafka.NoBroker,
		LeaderEpoch: x.leaderEpoch, PartitionEpoch: x.partitionEpoch, Recovering: x.recovering,
	}
	if x.elr != 0 {
		s.ELR = set.Brokers(x.elr)
	}
	if x.leader >= 0 {
		s.Leader = set.Replicas[x.leader]
	}
	if x.last >= 0 {
		s.LastLeader = set.Replicas[x.last]
	}
	return s
}
