package controller

import (
	"fmt"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

func (c *Machine) createPartitions(req CreatePartitions) Outcome {
	img := c.spec
	twice := repeated(req.Topics, func(t MorePartitions) string { return t.Name })
	var out Outcome
	var answer PartitionsCreated
	for _, t := range req.Topics {
		if again, ok := twice[t.Name]; ok {
			if again {
				twice[t.Name] = false
				answer.Topics = append(answer.Topics, NameResult{t.Name, duplicateName()})
			}
			continue
		}
		records, err := c.addPartitions(img, t)
		answer.Topics = append(answer.Topics, NameResult{t.Name, err})
		out.Records = append(out.Records, records...)
	}
	if req.ValidateOnly {
		out.Records = nil
	}
	out.Answer, out.Atomic = answer, true
	return out
}

func (c *Machine) addPartitions(img *metadata.Image, want MorePartitions) ([]metadata.Record, *kafka.Error) {
	t, ok := img.Topic(want.Name)
	if !ok {
		return nil, &kafka.Error{Code: kafka.UnknownTopicOrPartition}
	}
	more := int(want.Count) - int(t.Count())
	switch {
	case more == 0:
		return nil, kafka.Refuse(kafka.InvalidPartitions, "Topic already has %d partition(s).", t.Count())
	case more < 0:
		return nil, kafka.Refuse(kafka.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", t.Name, t.Count(), want.Count)
	case want.Assignments != nil && len(want.Assignments) != more:
		return nil, kafka.Refuse(kafka.InvalidReplicaAssignment, "Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", more, len(want.Assignments))
	case more > c.cfg.MaxPartitions:
		return nil, kafka.Refuse(kafka.PolicyViolation, "Excessively large number of partitions per request.")
	}
	first, _ := t.Partition(0)
	factor := len(first.Replicas)
	assigned := want.Assignments
	for i, brokers := range assigned {
		if err := checkAssignment(img, brokers, factor); err != nil {
			return nil, err
		}
		if err := checkSomeLive(img, t.Count()+int32(i), brokers); err != nil {
			return nil, err
		}
	}
	if assigned == nil {
		var err *kafka.Error
		if assigned, err = place(img, t.Name, int(t.Count()), more, factor); err != nil {
			return nil, err
		}
	}
	return newPartitions(img, t.ID, t.Count(), assigned), nil
}

// alterPartition decides leaders' wishes. A6: a member counts by the broker epoch its
// position came with; A3: "already so" is answered by the driver after Check like
// any answer.
func (c *Machine) alterPartition(req AlterPartition) Outcome {
	b, ok := c.spec.Broker(req.Broker)
	if !ok || b.Epoch != req.BrokerEpoch || b.Fenced() {
		return Outcome{Answer: PartitionsAltered{Err: &kafka.Error{Code: kafka.StaleBrokerEpoch}}}
	}
	type place struct {
		topic     kafka.TopicID
		partition int32
	}
	twice := repeated(req.Partitions, func(w WantedISR) place { return place{w.Topic, w.Partition} })
	changes := newChanges()
	var answer PartitionsAltered
	for _, want := range req.Partitions {
		t, ok := c.spec.TopicByID(want.Topic)
		done := PartitionAltered{Topic: want.Topic, Partition: want.Partition}
		switch {
		case !ok:
			done.Code = kafka.UnknownTopicID
		case want.Partition < 0 || want.Partition >= t.Count():
			done.Code = kafka.UnknownTopicOrPartition
		case twice[place{want.Topic, want.Partition}]:
			done.Code = kafka.InvalidRequest
		default:
			done.Code, done.State = c.alterOne(req.Broker, t, want, changes)
		}
		answer.Partitions = append(answer.Partitions, done)
	}
	return Outcome{Records: changes.records(), Answer: answer}
}

func (c *Machine) alterOne(leader kafka.BrokerID, t *metadata.Topic, want WantedISR, changes *changes) (kafka.Code, metadata.PartitionState) {
	state, _ := t.Partition(want.Partition)
	set, slot := t.Slot(want.Partition)
	if code := c.checkWish(leader, state, set, slot, want); code != kafka.None {
		return code, metadata.PartitionState{}
	}
	isr := wanted(set, want)
	if isr == slot.ISR && want.Recovering == slot.Recovering {
		return kafka.None, state // already so: answered, not written
	}
	if want.PartitionEpoch != slot.PartitionEpoch {
		return kafka.InvalidUpdateVersion, metadata.PartitionState{}
	}
	for _, m := range want.Members {
		b, ok := c.spec.Broker(m.Broker)
		if !ok || b.Fenced() || m.Epoch != -1 && m.Epoch != b.Epoch { // A6
			return kafka.IneligibleReplica, metadata.PartitionState{}
		}
	}
	before := slot
	slot.ISR, slot.Recovering = isr, want.Recovering
	slot.ELR = c.eligible(t, set, before, slot.ISR)
	slot.PartitionEpoch++
	changes.add(t, slot)
	state.ISR, state.ELR = set.Brokers(slot.ISR), set.Brokers(slot.ELR)
	state.PartitionEpoch, state.Recovering = slot.PartitionEpoch, slot.Recovering
	return kafka.None, state
}

// checkWish refuses wishes of who does not lead in this epoch, and ISRs that cannot be.
func (c *Machine) checkWish(leader kafka.BrokerID, state metadata.PartitionState, set metadata.ReplicaSet, slot metadata.Slot, want WantedISR) kafka.Code {
	switch {
	case want.LeaderEpoch > slot.LeaderEpoch || want.LeaderEpoch == slot.LeaderEpoch && want.PartitionEpoch > slot.PartitionEpoch:
		return kafka.NotController // it has seen edits that are not here
	case want.LeaderEpoch < slot.LeaderEpoch:
		return kafka.FencedLeaderEpoch
	case state.Leader != leader:
		return kafka.InvalidRequest
	case len(repeated(want.Members, func(m ISRMember) kafka.BrokerID { return m.Broker })) > 0:
		return kafka.InvalidRequest
	}
	for _, m := range want.Members {
		if set.Place(m.Broker) < 0 {
			return kafka.InvalidRequest
		}
	}
	isr := wanted(set, want)
	switch {
	case !isr.Has(int(slot.Leader)):
		return kafka.InvalidRequest
	case want.Recovering && !slot.Recovering, want.Recovering && len(want.Members) > 1:
		return kafka.InvalidRequest // recovered is for ever; a recovering leader stands alone (KIP-704)
	}
	return kafka.None
}

func wanted(set metadata.ReplicaSet, want WantedISR) (isr metadata.Members) {
	for _, m := range want.Members {
		isr = isr.With(set.Place(m.Broker))
	}
	return isr
}

// changes collects partition changes, grouped by topic in the order of arrival.
type changes struct {
	topics []*metadata.Topic
	slots  map[kafka.TopicID][]metadata.Slot
}

func newChanges() *changes { return &changes{slots: map[kafka.TopicID][]metadata.Slot{}} }

func (c *changes) add(t *metadata.Topic, s metadata.Slot) {
	list, ok := c.slots[t.ID]
	if !ok {
		c.topics = append(c.topics, t)
	}
	at := len(list) // records want rising partitions; they nearly always come so
	for at > 0 && list[at-1].Partition > s.Partition {
		at--
	}
	if at > 0 && list[at-1].Partition == s.Partition {
		panic(fmt.Sprintf("controller: partition %s-%d changed twice in one request", t.Name, s.Partition))
	}
	list = append(list, metadata.Slot{})
	copy(list[at+1:], list[at:])
	list[at] = s
	c.slots[t.ID] = list
}

func (c *changes) records() []metadata.Record {
	var out []metadata.Record
	for _, t := range c.topics {
		list := c.slots[t.ID]
		for from := 0; from < len(list); from += recordSlots {
			out = append(out, metadata.PartitionChange{Topic: t.ID, Slots: list[from:min(from+recordSlots, len(list))]})
		}
	}
	return out
}
