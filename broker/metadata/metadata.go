// Package metadata is the cluster's image and the records it is folded from.
//
// An edit's payload (after the journal has unpacked it) is records back to back:
//
//	class u8 | version u8 | flags u8 | length uvarint | body [length]
//
// A body is its class's fields and then the tagged fields: a count, and per field
// tag, length, bytes. Numbers are varints unless they say otherwise, strings carry
// their length, ids are 16 bytes raw. A reader skips tags it does not know, skips a
// record of an unknown class or version whose flags have bit 0 (ignorable), and
// stops at any other (protocols.md §3-3). docs/formats/metadata.md lists the bodies.
//
// An Image never changes. Apply returns the image after an edit and shares all that
// the edit did not touch, so that every edit may be published and the controller
// may keep a speculative image beside the committed one (A4). The fold is
// deterministic: it ignores what it does not allow (an older epoch, a topic that is
// not there) instead of failing, because all readers must agree.
//
// Partitions are packed: 32 bytes in chunks of 64, replica sets interned (one pointer
// each), ISR and ELR bitmaps over the set. The index by broker is a 64-bit mask
// per topic; whoever wants a broker's partitions passes over the topics.
package metadata

import (
	"iter"
	"slices"

	"varve/broker/kafka"
)

// An Image is the cluster after edit N. The zero Image is not usable; see Empty.
type Image struct {
	n          int64
	cluster    string
	controller ControllerChange
	features   []Feature // by name
	brokers    []*Broker // by id
	topics     tree[string, *Topic]
	ids        tree[kafka.TopicID, *Topic]
	folded     tree[string, string] // collision name → one topic with it, see Colliding
	deleted    []DeletedTopic       // by id: remote files to be deleted (T14)
	configs    tree[string, map[string]string]
	sets       tree[string, *ReplicaSet]
	nextPID    kafka.ProducerID
	partitions int
	frame      *openFrame
}

// A Broker is a registration and its fence.
type Broker struct {
	BrokerRegistration
	FencedAt kafka.BrokerEpoch // fenced at this broker epoch; 0 never
}

// Fenced tells whether the registration is fenced: only a higher broker epoch
// unfences (A13).
func (b *Broker) Fenced() bool { return b.FencedAt >= b.Epoch }

// openFrame holds the records of a frame until its end comes (A15).
type openFrame struct {
	id      uint64
	records []Record
}

// Empty is the image before the first edit.
func Empty() *Image {
	return &Image{
		topics: newTree[string, *Topic](byName), ids: newTree[kafka.TopicID, *Topic](byID),
		folded: newTree[string, string](byName), configs: newTree[string, map[string]string](byName),
		sets: newTree[string, *ReplicaSet](byName),
	}
}

// N is the number of the last edit folded in.
func (m *Image) N() int64 { return m.n }

// ClusterID is "" until the first edit.
func (m *Image) ClusterID() string { return m.cluster }

// Controller is the newest term that the log tells of.
func (m *Image) Controller() ControllerChange { return m.controller }

// Feature is the finalized level of a feature, 0 where there is none.
func (m *Image) Feature(name string) int16 {
	for _, f := range m.features {
		if f.Name == name {
			return f.Level
		}
	}
	return 0
}

// Features are the finalized features by name; not to be written to.
func (m *Image) Features() []Feature { return m.features }

// Brokers are the registered brokers by id, fenced ones too; not to be written to.
func (m *Image) Brokers() []*Broker { return m.brokers }

// Broker is the registration of id.
func (m *Image) Broker(id kafka.BrokerID) (*Broker, bool) {
	i, ok := m.brokerAt(id)
	if !ok {
		return nil, false
	}
	return m.brokers[i], true
}

// Live tells whether id is registered and not fenced.
func (m *Image) Live(id kafka.BrokerID) bool {
	b, ok := m.Broker(id)
	return ok && !b.Fenced()
}

func (m *Image) brokerAt(id kafka.BrokerID) (int, bool) {
	return slices.BinarySearchFunc(m.brokers, id, func(b *Broker, id kafka.BrokerID) int { return int(b.ID - id) })
}

// Topic is the topic of that name.
func (m *Image) Topic(name string) (*Topic, bool) { return m.topics.get(name) }

// TopicByID is the topic of that id.
func (m *Image) TopicByID(id kafka.TopicID) (*Topic, bool) { return m.ids.get(id) }

// Topics visits the topics by name.
func (m *Image) Topics() iter.Seq2[string, *Topic] { return m.topics.all() }

// TopicCount and PartitionCount are how many there are.
func (m *Image) TopicCount() int { return m.topics.size }

// PartitionCount is the number of partitions of all topics.
func (m *Image) PartitionCount() int { return m.partitions }

// Partition is the state of one partition.
func (m *Image) Partition(tp kafka.TopicPartition) (PartitionState, bool) {
	t, ok := m.Topic(tp.Topic)
	if !ok {
		return PartitionState{}, false
	}
	return t.Partition(tp.Partition)
}

// ByBroker visits the topics in which id may replicate something, by name; see
// Topic.Of for what.
func (m *Image) ByBroker(id kafka.BrokerID) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range m.Topics() {
			if t.brokers>>(uint32(id)%64)&1 == 1 && !yield(t) {
				return
			}
		}
	}
}

// Deleted are the deleted topics whose remote files are still there; not to be
// written to.
func (m *Image) Deleted() []DeletedTopic { return m.deleted }

// Config are the settings of a resource; nil where there are none. Not to be
// written to.
func (m *Image) Config(t ResourceType, name string) map[string]string {
	if t == TopicResource {
		if topic, ok := m.Topic(name); ok {
			return topic.configs
		}
		return nil
	}
	c, _ := m.configs.get(configKey(t, name))
	return c
}

// NextProducerID is the first producer id that no block holds.
func (m *Image) NextProducerID() kafka.ProducerID { return m.nextPID }

// FrameOpen tells whether a change of several edits waits for its end (A15).
func (m *Image) FrameOpen() bool { return m.frame != nil }

// Colliding is a topic whose name equals name but for '.' and '_' standing for
// each other, and differs from it: their metric names would be the same.
func (m *Image) Colliding(name string) (string, bool) {
	other, ok := m.folded.get(collisionName(name))
	return other, ok && other != name
}

// Changed visits the topics that differ between two images, by name; old or new is
// nil where it is not there. A topic made again under its name is visited once.
// What the images share costs nothing.
func Changed(old, new *Image) iter.Seq2[*Topic, *Topic] {
	return func(yield func(old, new *Topic) bool) {
		old.topics.diff(old.topics.root, new.topics.root, func(a, b *node[string, *Topic]) bool {
			var was, is *Topic
			if a != nil {
				was = a.value
			}
			if b != nil {
				is = b.value
			}
			return was == is || yield(was, is)
		})
	}
}
