package metadata

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"varve/broker/kafka"
)

// Apply returns the image after edit n of these records. It must be the next edit
// of m's log; the journal has proved that.
func (m *Image) Apply(n int64, records []Record) *Image {
	next := *m
	next.n = n
	if len(records) > 0 {
		if f, ok := records[0].(Frame); ok {
			next.foldFrame(f, records[1:])
			return &next
		}
	}
	next.fold(records)
	return &next
}

// foldFrame collects a frame's edits and applies them at its end (A15).
func (m *Image) foldFrame(f Frame, records []Record) {
	if f.State == FrameBegin {
		m.frame = &openFrame{id: f.ID, records: slices.Clone(records)}
		return
	}
	open := m.frame
	if open == nil || open.id != f.ID {
		return
	}
	switch f.State {
	case FrameMore:
		m.frame = &openFrame{id: f.ID, records: slices.Concat(open.records, records)}
	case FrameEnd:
		m.frame = nil
		m.fold(open.records)
		m.fold(records)
	case FrameAbort:
		m.frame = nil
	}
}

// fold applies records to m, which nobody else has seen yet.
func (m *Image) fold(records []Record) {
	for _, r := range records {
		m.foldOne(r)
	}
}

func (m *Image) foldOne(r Record) {
	switch r := r.(type) {
	case Cluster:
		if m.cluster == "" {
			m.cluster = r.ID
		}
	case Feature:
		m.foldFeature(r)
	case ControllerChange:
		if r.Epoch > m.controller.Epoch {
			m.controller, m.frame = r, nil // A15: what the term before left open is void
		}
	case BrokerRegistration:
		m.foldRegistration(r)
	case BrokerFence:
		m.foldFence(r)
	case Unregister:
		if i, ok := m.brokerAt(r.ID); ok && m.brokers[i].Fenced() {
			m.brokers = slices.Delete(slices.Clone(m.brokers), i, i+1)
		}
	case NewTopic:
		m.foldTopic(r)
	case Partitions:
		m.foldPartitions(r)
	case PartitionChange:
		m.foldChange(r)
	case RemoveTopic:
		m.foldRemove(r)
	case DeletedTopic:
		m.foldDeleted(r)
	case TopicGone:
		if i, ok := m.deletedAt(r.ID); ok {
			m.deleted = slices.Delete(slices.Clone(m.deleted), i, i+1)
		}
	case Config:
		m.foldConfig(r)
	case ProducerIDBlock:
		m.nextPID = max(m.nextPID, r.Next)
	}
}

func (m *Image) foldFeature(r Feature) {
	i, ok := slices.BinarySearchFunc(m.features, r.Name, func(f Feature, name string) int { return strings.Compare(f.Name, name) })
	m.features = slices.Clone(m.features)
	switch {
	case ok && r.Level == 0:
		m.features = slices.Delete(m.features, i, i+1)
	case ok:
		m.features[i] = r
	case r.Level != 0:
		m.features = slices.Insert(m.features, i, r)
	}
}

func (m *Image) foldRegistration(r BrokerRegistration) {
	i, ok := m.brokerAt(r.ID)
	if ok && r.Epoch <= m.brokers[i].Epoch {
		return // A13: only a higher broker epoch counts
	}
	b := &Broker{BrokerRegistration: r}
	m.brokers = slices.Clone(m.brokers)
	if ok {
		if m.brokers[i].FencedAt >= r.Epoch {
			b.FencedAt = m.brokers[i].FencedAt
		}
		m.brokers[i] = b
	} else {
		m.brokers = slices.Insert(m.brokers, i, b)
	}
	m.raiseEpochs(r)
}

// raiseEpochs gives every partition that the broker leads its next leader epoch, so
// that a process that leads again never appends in the epoch of the one before (A5).
func (m *Image) raiseEpochs(r BrokerRegistration) {
	var led []*Topic
	for t := range m.ByBroker(r.ID) {
		led = append(led, t)
	}
	for _, t := range led {
		next := t.edit()
		touched := false
		for p := range t.count {
			x := t.at(p)
			if x.leader < 0 || x.set.Replicas[x.leader] != r.ID {
				continue
			}
			if x.leaderEpoch == math.MaxInt32 || x.partitionEpoch == math.MaxInt32 {
				continue
			}
			y := next.own(p)
			y.leaderEpoch++
			y.partitionEpoch++
			if r.Unclean && x.isr == Members(0).With(int(x.leader)) && x.elr == 0 {
				y.recovering = true // A7
			}
			touched = true
		}
		if touched {
			m.store(next.Topic)
		}
	}
}

func (m *Image) foldFence(r BrokerFence) {
	i, ok := m.brokerAt(r.ID)
	if !ok || r.Epoch < m.brokers[i].Epoch || r.Epoch <= m.brokers[i].FencedAt {
		return // A13: a late fence does not hit the next incarnation
	}
	b := *m.brokers[i]
	b.FencedAt = r.Epoch
	m.brokers = slices.Clone(m.brokers)
	m.brokers[i] = &b
}

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

func (m *Image) foldConfig(r Config) {
	if r.Type != TopicResource {
		key := configKey(r.Type, r.Name)
		old, _ := m.configs.get(key)
		if c := changed(old, r.Settings); len(c) > 0 {
			m.configs = m.configs.put(key, c)
		} else {
			m.configs = m.configs.remove(key)
		}
		return
	}
	if t, ok := m.topics.get(r.Name); ok {
		next := *t
		next.configs = changed(t.configs, r.Settings)
		m.store(&next)
	}
}

func changed(old map[string]string, settings []Setting) map[string]string {
	c := maps.Clone(old)
	for _, s := range settings {
		if s.Value == nil {
			delete(c, s.Key)
			continue
		}
		if c == nil {
			c = map[string]string{}
		}
		c[s.Key] = *s.Value
	}
	return c
}

// store puts a topic's new version under its name and id.
func (m *Image) store(t *Topic) {
	m.topics, m.ids = m.topics.put(t.Name, t), m.ids.put(t.ID, t)
}

func configKey(t ResourceType, name string) string { return strconv.Itoa(int(t)) + "/" + name }

// collisionName is the name as metric names have it.
func collisionName(name string) string { return strings.ReplaceAll(name, ".", "_") }

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
