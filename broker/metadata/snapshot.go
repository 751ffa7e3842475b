package metadata

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"varve/broker/kafka"
)

// recordSlots bounds the slots of one record that Encode writes for a snapshot.
const recordSlots = 1000

// EncodeSnapshot appends the image as records whose fold gives it again: one
// format for edits and snapshots. Packing (zstd) is the journal's.
func (m *Image) EncodeSnapshot(dst []byte) []byte {
	dst = Encode(dst, m.head())
	for key, c := range m.configs.all() {
		number, name, _ := strings.Cut(key, "/")
		t, _ := strconv.Atoi(number)
		dst = Encode(dst, []Record{Config{ResourceType(t), name, settings(c)}})
	}
	for _, t := range m.Topics() {
		dst = Encode(dst, t.records())
	}
	if m.frame != nil { // its records wait behind the rest, as they do in the log
		dst = Encode(dst, []Record{Frame{m.frame.id, FrameBegin}})
		dst = Encode(dst, m.frame.records)
	}
	return dst
}

// head is all but configs and topics. Brokers come before partitions, because the
// fold of a registration raises epochs (A5).
func (m *Image) head() []Record {
	var out []Record
	if m.cluster != "" {
		out = append(out, Cluster{m.cluster})
	}
	if m.controller.Epoch > 0 {
		out = append(out, m.controller)
	}
	for _, f := range m.features {
		out = append(out, f)
	}
	for _, b := range m.brokers {
		out = append(out, b.BrokerRegistration)
		if b.Fenced() {
			out = append(out, BrokerFence{b.ID, b.FencedAt})
		}
	}
	for _, d := range m.deleted {
		out = append(out, d)
	}
	if m.nextPID > 0 {
		out = append(out, ProducerIDBlock{Broker: kafka.NoBroker, Epoch: -1, Next: m.nextPID})
	}
	return out
}

// records are the records that make the topic.
func (t *Topic) records() []Record {
	out := []Record{NewTopic{t.ID, t.Name}}
	for from := int32(0); from < t.count; from += recordSlots {
		p := Partitions{Topic: t.ID}
		at := map[*ReplicaSet]int{}
		for i := from; i < min(from+recordSlots, t.count); i++ {
			_, slot := t.Slot(i)
			set := t.at(i).set
			n, ok := at[set]
			if !ok {
				n = len(p.Sets)
				at[set] = n
				p.Sets = append(p.Sets, *set)
			}
			slot.Set = n
			p.Slots = append(p.Slots, slot)
		}
		out = append(out, p)
	}
	if len(t.configs) > 0 {
		out = append(out, Config{TopicResource, t.Name, settings(t.configs)})
	}
	return out
}

func settings(c map[string]string) []Setting {
	out := make([]Setting, 0, len(c))
	for _, k := range slices.Sorted(maps.Keys(c)) {
		v := c[k]
		out = append(out, Setting{k, &v})
	}
	return out
}

// DecodeSnapshot reads the image up to edit n.
func DecodeSnapshot(n int64, b []byte) (*Image, error) {
	records, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("decoding the snapshot of edit %d: %w", n, err)
	}
	at := slices.IndexFunc(records, func(r Record) bool { _, ok := r.(Frame); return ok })
	if at < 0 {
		at = len(records)
	}
	m := Empty().Apply(n, records[:at])
	if at < len(records) {
		m = m.Apply(n, records[at:])
	}
	return m, nil
}
