package metadata

import (
	"bytes"
	"slices"

	"varve/broker/kafka"
)

func (m *Image) foldTopic(r NewTopic) {
	_, named := m.topics.get(r.Name)
	_, known := m.ids.get(r.ID)
	if named || known || r.Name == "" {
		return
	}
	m.store(&Topic{Name: r.Name, ID: r.ID})
	m.folded = m.folded.put(collisionName(r.Name), r.Name)
}

func (m *Image) foldPartitions(r Partitions) {
	t, ok := m.ids.get(r.Topic)
	if !ok {
		return
	}
	next := t.edit()
	sets := m.internAll(r.Sets)
	for _, s := range r.Slots {
		if s.Partition != next.count || s.Set == NoSet || !fits(sets[s.Set], s) {
			continue // partitions are dense
		}
		next.push(packed(sets[s.Set], s))
		next.mark(r.Sets[s.Set])
	}
	if added := next.count - t.count; added > 0 {
		m.partitions += int(added)
		m.store(next.Topic)
	}
}

func (m *Image) foldChange(r PartitionChange) {
	t, ok := m.ids.get(r.Topic)
	if !ok {
		return
	}
	next := t.edit()
	sets := m.internAll(r.Sets)
	touched := false
	for _, s := range r.Slots {
		if s.Partition >= next.count {
			continue
		}
		x := next.at(s.Partition)
		set := x.set
		if s.Set != NoSet {
			set = sets[s.Set]
		}
		if !newer(x, s) || !fits(set, s) {
			continue
		}
		*next.own(s.Partition) = packed(set, s)
		if s.Set != NoSet {
			next.mark(r.Sets[s.Set])
		}
		touched = true
	}
	if touched {
		m.store(next.Topic)
	}
}

// newer tells whether s moves the partition upward: leaders move by (leader epoch,
// partition epoch) and never back (A3).
func newer(x *partition, s Slot) bool {
	return s.LeaderEpoch > x.leaderEpoch || s.LeaderEpoch == x.leaderEpoch && s.PartitionEpoch > x.partitionEpoch
}

// fits tells whether the places that s names are in the set.
func fits(set *ReplicaSet, s Slot) bool {
	n := len(set.Replicas)
	all := Members(uint64(1)<<n - 1)
	return s.ISR&^all == 0 && s.ELR&^all == 0 && int(s.Leader) < n && int(s.LastLeader) < n
}

func packed(set *ReplicaSet, s Slot) partition {
	return partition{
		set: set, isr: s.ISR, elr: s.ELR, leader: s.Leader, last: s.LastLeader,
		leaderEpoch: s.LeaderEpoch, partitionEpoch: s.PartitionEpoch, recovering: s.Recovering,
	}
}

// internAll returns the one copy of each set.
func (m *Image) internAll(list []ReplicaSet) []*ReplicaSet {
	out := make([]*ReplicaSet, len(list))
	for i := range list {
		key := setKey(list[i])
		set, ok := m.sets.get(key)
		if !ok {
			one := list[i] // not &list[i]: it would keep the record alive
			set = &one
			m.sets = m.sets.put(key, set)
		}
		out[i] = set
	}
	return out
}

func setKey(s ReplicaSet) string {
	return string(appendIDs(appendIDs(appendIDs(make([]byte, 0, 32), s.Replicas), s.Adding), s.Removing))
}

func (m *Image) foldRemove(r RemoveTopic) {
	t, ok := m.ids.get(r.ID)
	if !ok {
		return
	}
	m.topics, m.ids = m.topics.remove(t.Name), m.ids.remove(t.ID)
	if name, _ := m.folded.get(collisionName(t.Name)); name == t.Name {
		m.folded = m.folded.remove(collisionName(t.Name))
	}
	m.partitions -= int(t.count)
	if r.Tiered {
		m.foldDeleted(DeletedTopic{t.ID, t.Name, t.count})
	}
}

// foldDeleted remembers a topic until nothing of it is left in the tier (T14).
func (m *Image) foldDeleted(r DeletedTopic) {
	if i, ok := m.deletedAt(r.ID); !ok {
		m.deleted = slices.Insert(slices.Clone(m.deleted), i, r)
	}
}

func (m *Image) deletedAt(id kafka.TopicID) (int, bool) {
	return slices.BinarySearchFunc(m.deleted, id, func(d DeletedTopic, id kafka.TopicID) int { return bytes.Compare(d.ID[:], id[:]) })
}

// A topicEdit is a topic's next version and which of its chunks are ours.
type topicEdit struct {
	*Topic
	ours []bool
}

func (t *Topic) edit() topicEdit {
	next := *t
	next.chunks = slices.Clone(t.chunks)
	return topicEdit{&next, make([]bool, len(t.chunks), len(t.chunks)+1)}
}

// own returns partition p for writing.
func (t *topicEdit) own(p int32) *partition {
	if c := p / chunkSize; !t.ours[c] {
		t.chunks[c] = slices.Clone(t.chunks[c])
		t.ours[c] = true
	}
	return t.at(p)
}

func (t *topicEdit) push(p partition) {
	if t.count%chunkSize == 0 {
		t.chunks = append(t.chunks, nil)
		t.ours = append(t.ours, false)
	}
	last := len(t.chunks) - 1
	if !t.ours[last] {
		t.chunks[last] = slices.Clone(t.chunks[last])
		t.ours[last] = true
	}
	t.chunks[last] = append(t.chunks[last], p)
	t.count++
}

// mark notes the set's brokers in the topic's mask; bits are not taken back.
func (t *topicEdit) mark(s ReplicaSet) {
	for _, b := range s.Replicas {
		t.brokers |= 1 << (uint32(b) % 64)
	}
}
