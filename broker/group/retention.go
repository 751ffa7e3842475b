package group

import (
	"maps"
	"slices"

	"varve/broker/kafka"
)

// expireOffsets drops what was committed too long ago, and groups that have nothing
// left. A group's offsets age from when it became empty; of consumers at work, those
// of topics that they do not read; without members, from the commit.
func (m *Machine) expireOffsets() {
	now, keep := m.now.UnixMilli(), m.config.Retention.Milliseconds()
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[name]
		for _, at := range g.places() {
			o := g.offsets[at]
			from, ages := g.agesFrom(at, o)
			if ages && (o.expires >= 0 && now >= o.expires || o.expires < 0 && now-from >= keep) {
				m.dropOffset(g, at)
			}
		}
		if g.state == empty && len(g.offsets) == 0 && len(g.pending) == 0 {
			m.dropGroup(g)
		}
	}
}

// agesFrom is when the age of an offset counts from, if it ages at all.
func (g *group) agesFrom(at place, o offset) (ms int64, ages bool) {
	switch {
	case g.protocolType == "":
		return o.when, true
	case g.state == empty && g.since >= 0:
		return g.since, true
	case g.state == empty:
		return o.when, true
	case g.state == stable && g.protocolType == consumerType:
		subscribed, known := g.subscribes(at.topic)
		return o.when, known && !subscribed
	}
	return 0, false
}

func (m *Machine) dropGroup(g *group) {
	for _, at := range g.places() {
		m.dropOffset(g, at)
	}
	m.write(Record{Key: groupKey(g.name)})
	delete(m.groups, g.name)
}

// ForgetTopics drops what groups have committed for topics that are gone. id is the
// topic's when it was committed, zero where that is not known.
func (m *Machine) ForgetTopics(gone func(topic string, id kafka.TopicID) bool) []Record {
	m.begin(m.now)
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[name]
		for _, at := range g.places() {
			if gone(at.topic, g.offsets[at].topicID) {
				m.dropOffset(g, at)
			}
		}
	}
	return m.records
}
