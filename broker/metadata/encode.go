package metadata

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"varve/broker/kafka"
)

// Encode appends records, each as
//
//	class u8 | version u8 | flags u8 | length uvarint | body
//
// to dst. See the package comment for what a body is.
func Encode(dst []byte, records []Record) []byte {
	var scratch []byte
	for _, r := range records {
		scratch = r.appendBody(scratch[:0])
		dst = append(dst, byte(r.kind()), 0, 0)
		dst = binary.AppendUvarint(dst, uint64(len(scratch)+1))
		dst = append(dst, scratch...)
		dst = append(dst, 0) // no tagged fields yet
	}
	return dst
}

func (r Cluster) appendBody(b []byte) []byte { return appendString(b, r.ID) }

func (r Feature) appendBody(b []byte) []byte {
	return binary.AppendVarint(appendString(b, r.Name), int64(r.Level))
}

func (r ControllerChange) appendBody(b []byte) []byte {
	return appendString(binary.AppendUvarint(b, uint64(r.Epoch)), r.Who)
}

func (r Frame) appendBody(b []byte) []byte {
	return append(binary.AppendUvarint(b, r.ID), byte(r.State))
}

func (r BrokerRegistration) appendBody(b []byte) []byte {
	b = binary.AppendVarint(b, int64(r.ID))
	b = binary.AppendUvarint(b, uint64(r.Epoch))
	b = append(b, r.Incarnation[:]...)
	b = append(b, r.Folder[:]...)
	b = binary.AppendUvarint(b, uint64(len(r.Listeners)))
	for _, l := range r.Listeners {
		b = appendString(appendString(b, l.Name), l.Host)
		b = binary.BigEndian.AppendUint16(b, l.Port)
		b = append(b, byte(l.Security))
	}
	b = appendString(b, r.Rack)
	return appendBool(b, r.Unclean)
}

func (r BrokerFence) appendBody(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, int64(r.ID)), uint64(r.Epoch))
}

func (r Unregister) appendBody(b []byte) []byte { return binary.AppendVarint(b, int64(r.ID)) }

func (r NewTopic) appendBody(b []byte) []byte { return appendString(append(b, r.ID[:]...), r.Name) }

func (r Partitions) appendBody(b []byte) []byte {
	return appendSlots(append(b, r.Topic[:]...), r.Sets, r.Slots)
}

func (r PartitionChange) appendBody(b []byte) []byte {
	return appendSlots(append(b, r.Topic[:]...), r.Sets, r.Slots)
}

func (r RemoveTopic) appendBody(b []byte) []byte { return appendBool(append(b, r.ID[:]...), r.Tiered) }

func (r DeletedTopic) appendBody(b []byte) []byte {
	return binary.AppendUvarint(appendString(append(b, r.ID[:]...), r.Name), uint64(r.Partitions))
}

func (r TopicGone) appendBody(b []byte) []byte { return append(b, r.ID[:]...) }

func (r Config) appendBody(b []byte) []byte {
	b = appendString(append(b, byte(r.Type)), r.Name)
	b = binary.AppendUvarint(b, uint64(len(r.Settings)))
	for _, s := range r.Settings {
		b = appendBool(appendString(b, s.Key), s.Value != nil)
		if s.Value != nil {
			b = appendString(b, *s.Value)
		}
	}
	return b
}

func (r ProducerIDBlock) appendBody(b []byte) []byte {
	b = binary.AppendVarint(b, int64(r.Broker))
	b = binary.AppendVarint(b, int64(r.Epoch))
	return binary.AppendUvarint(b, uint64(r.Next))
}

// Bits of a slot's first byte: what follows it.
const (
	slotHasSet = 1 << iota
	slotHasELR
	slotHasLast
	slotRecovering
	slotISRAll // the ISR is every place up to its highest: its count follows, not a bitmap
)

// appendSlots writes a table of replica sets and slots that refer to it. Slots
// stand in rising order; each tells how far it is from the one before.
func appendSlots(b []byte, sets []ReplicaSet, slots []Slot) []byte {
	b = binary.AppendUvarint(b, uint64(len(sets)))
	for _, s := range sets {
		b = appendIDs(appendIDs(appendIDs(b, s.Replicas), s.Adding), s.Removing)
	}
	b = binary.AppendUvarint(b, uint64(len(slots)))
	next := int32(0)
	for _, s := range slots {
		if s.Partition < next {
			panic(fmt.Sprintf("metadata: partition %d behind %d in one record", s.Partition, next-1))
		}
		b = binary.AppendUvarint(b, uint64(s.Partition-next))
		next = s.Partition + 1
		b = appendSlot(b, s)
	}
	return b
}

func appendSlot(b []byte, s Slot) []byte {
	var flags byte
	if s.Set != NoSet {
		flags |= slotHasSet
	}
	if s.ELR != 0 {
		flags |= slotHasELR
	}
	if s.LastLeader >= 0 {
		flags |= slotHasLast
	}
	if s.Recovering {
		flags |= slotRecovering
	}
	all := s.ISR&(s.ISR+1) == 0
	if all {
		flags |= slotISRAll
	}
	b = append(b, flags)
	if s.Set != NoSet {
		b = binary.AppendUvarint(b, uint64(s.Set))
	}
	if all {
		b = append(b, byte(bits.OnesCount32(uint32(s.ISR))))
	} else {
		b = binary.AppendUvarint(b, uint64(s.ISR))
	}
	if s.ELR != 0 {
		b = binary.AppendUvarint(b, uint64(s.ELR))
	}
	b = append(b, byte(s.Leader+1))
	if s.LastLeader >= 0 {
		b = append(b, byte(s.LastLeader))
	}
	b = binary.AppendUvarint(b, uint64(s.LeaderEpoch))
	return binary.AppendUvarint(b, uint64(s.PartitionEpoch))
}

func appendIDs(b []byte, ids []kafka.BrokerID) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
