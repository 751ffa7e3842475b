package controller

import (
	"math/bits"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// leave takes broker b out of a partition: fenced, or registered anew. The ELR keeps
// whoever leaves an ISR that gets smaller than min.insync.replicas, because it holds
// everything acknowledged; b is not among them if it may have lost the end of its
// log (A7, KIP-966).
func (c *Machine) leave(t *metadata.Topic, set metadata.ReplicaSet, slot metadata.Slot, b kafka.BrokerID, unclean bool) metadata.Slot {
	place := set.Place(b)
	before := slot
	slot.ISR = slot.ISR.Without(place)
	slot.ELR = c.eligible(t, set, before, slot.ISR)
	if unclean {
		slot.ELR = slot.ELR.Without(place)
	}
	if int(slot.Leader) == place {
		slot.Leader, slot.LastLeader = -1, slot.Leader
	}
	return slot
}

// eligible is the ELR after the ISR became isr: empty while the ISR is big enough,
// else everybody who left it since.
func (c *Machine) eligible(t *metadata.Topic, set metadata.ReplicaSet, before metadata.Slot, isr metadata.Members) metadata.Members {
	least := min(c.cfg.MinISR(t.Configs()), len(set.Replicas))
	if bits.OnesCount32(uint32(isr)) >= least {
		return 0
	}
	return (before.ISR | before.ELR) &^ isr
}

// elect gives a partition without a leader one that live says is there: of the ISR,
// then of the ELR, then, where both are empty, who led last: it comes back RECOVERING,
// and records may be missing (A7).
func elect(set metadata.ReplicaSet, slot metadata.Slot, live func(kafka.BrokerID) bool) metadata.Slot {
	if slot.Leader >= 0 {
		return slot
	}
	first := func(m metadata.Members) int {
		for i, b := range set.Replicas {
			if m.Has(i) && live(b) {
				return i
			}
		}
		return -1
	}
	if i := first(slot.ISR); i >= 0 {
		slot.Leader = int8(i)
	} else if i := first(slot.ELR); i >= 0 && slot.ISR == 0 {
		slot.Leader, slot.ISR, slot.ELR = int8(i), slot.ISR.With(i), slot.ELR.Without(i)
	} else if last := int(slot.LastLeader); slot.ISR == 0 && slot.ELR == 0 && last >= 0 && live(set.Replicas[last]) {
		slot.Leader, slot.ISR, slot.Recovering = slot.LastLeader, slot.ISR.With(last), true
	}
	if slot.Leader >= 0 {
		slot.LastLeader = -1
	}
	return slot
}

// settle numbers a change: a new partition epoch, and a new leader epoch if the
// leadership moved or went. ok is false where nothing changed.
func settle(before, after metadata.Slot) (_ metadata.Slot, ok bool) {
	if before == after {
		return before, false
	}
	after.PartitionEpoch++
	if before.Leader != after.Leader {
		after.LeaderEpoch++
	}
	return after, true
}
