package metadata

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
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
