package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"varve/broker/kafka"
)

// flagIgnorable marks a record that a reader without its class may skip.
const flagIgnorable = 1

// An UnknownRecordError stops a reader: a record was written by a later version of
// Varve and may not be skipped (protocols.md §3-3).
type UnknownRecordError struct{ Class, Version uint8 }

func (e *UnknownRecordError) Error() string {
	return fmt.Sprintf("metadata record of class %d version %d is not known here; a later version of varve wrote it", e.Class, e.Version)
}

// ErrMalformed is the kind of every fault in a record's bytes.
var ErrMalformed = errors.New("malformed metadata record")

// Decode reads what Encode wrote, to its end. Strings and ids are copied, lengths
// are checked against what is left before anything is allocated. Unknown records
// that are marked ignorable are left out; others are an *UnknownRecordError.
func Decode(payload []byte) ([]Record, error) {
	var out []Record
	for in := (reader{b: payload}); len(in.b) > 0; {
		at := len(payload) - len(in.b)
		r, err := in.record()
		if err != nil {
			return nil, fmt.Errorf("at byte %d: %w", at, err)
		}
		if r != nil {
			out = append(out, r)
		}
	}
	return out, nil
}

// A reader takes fields off the front of b; the first fault sticks.
type reader struct {
	b   []byte
	err error
}

// record reads one record; nil for one that may be skipped.
func (in *reader) record() (Record, error) {
	class, version, flags := in.byte(), in.byte(), in.byte()
	body := reader{b: in.take(in.count(1))}
	if in.err != nil {
		return nil, in.err
	}
	r, known := body.known(kind(class), version)
	switch {
	case !known && flags&flagIgnorable != 0:
		return nil, nil
	case !known:
		return nil, &UnknownRecordError{class, version}
	}
	body.tags()
	if body.err == nil && len(body.b) > 0 {
		body.fail("%d bytes after the last field", len(body.b))
	}
	if body.err != nil {
		return nil, fmt.Errorf("class %d: %w", class, body.err)
	}
	return r, nil
}

func (in *reader) known(k kind, version uint8) (Record, bool) {
	if version != 0 {
		return nil, false
	}
	switch k {
	case kindCluster:
		return Cluster{in.string()}, true
	case kindFeature:
		return Feature{in.string(), int16(in.varint(0, math.MaxInt16))}, true
	case kindController:
		return ControllerChange{kafka.ControllerEpoch(in.uvarint(math.MaxInt32)), in.string()}, true
	case kindFrame:
		return in.frame(), true
	case kindBroker:
		return in.registration(), true
	case kindFence:
		return BrokerFence{in.broker(), kafka.BrokerEpoch(in.uvarint(math.MaxInt64))}, true
	case kindUnregister:
		return Unregister{in.broker()}, true
	case kindTopic:
		return NewTopic{in.id(), in.string()}, true
	case kindPartitions:
		id := in.id()
		sets, slots := in.slots()
		return Partitions{id, sets, slots}, true
	case kindPartitionChange:
		id := in.id()
		sets, slots := in.slots()
		return PartitionChange{id, sets, slots}, true
	case kindRemoveTopic:
		return RemoveTopic{in.id(), in.bool()}, true
	case kindDeletedTopic:
		return DeletedTopic{in.id(), in.string(), int32(in.uvarint(math.MaxInt32))}, true
	case kindTopicGone:
		return TopicGone{in.id()}, true
	case kindConfig:
		return in.config(), true
	case kindProducerIDs:
		return ProducerIDBlock{
			kafka.BrokerID(in.varint(-1, math.MaxInt32)), kafka.BrokerEpoch(in.varint(-1, math.MaxInt64)),
			kafka.ProducerID(in.uvarint(math.MaxInt64)),
		}, true
	default:
		return nil, false
	}
}

func (in *reader) frame() Frame {
	f := Frame{in.uvarint(math.MaxUint64), FrameState(in.byte())}
	if f.State > FrameAbort {
		in.fail("frame state %d", f.State)
	}
	return f
}

func (in *reader) registration() BrokerRegistration {
	r := BrokerRegistration{ID: in.broker(), Epoch: kafka.BrokerEpoch(in.uvarint(math.MaxInt64)), Incarnation: in.id(), Folder: in.id()}
	for n := in.count(5); n > 0 && in.err == nil; n-- {
		r.Listeners = append(r.Listeners, Listener{in.string(), in.string(), in.uint16(), int16(in.byte())})
	}
	r.Rack, r.Unclean = in.string(), in.bool()
	return r
}

func (in *reader) config() Config {
	r := Config{Type: ResourceType(in.byte()), Name: in.string()}
	for n := in.count(2); n > 0 && in.err == nil; n-- {
		s := Setting{Key: in.string()}
		if in.bool() {
			v := in.string()
			s.Value = &v
		}
		r.Settings = append(r.Settings, s)
	}
	return r
}

func (in *reader) slots() (sets []ReplicaSet, slots []Slot) {
	for n := in.count(4); n > 0 && in.err == nil; n-- {
		s := ReplicaSet{in.ids(), in.ids(), in.ids()}
		if len(s.Replicas) == 0 {
			in.fail("a replica set without replicas")
		}
		sets = append(sets, s)
	}
	n := in.count(6)
	slots = make([]Slot, 0, n)
	for next := int64(0); n > 0 && in.err == nil; n-- {
		at := next + int64(in.uvarint(math.MaxInt32))
		if at >= math.MaxInt32 {
			in.fail("partition %d after %d", at, next-1)
			break
		}
		slots = append(slots, in.slot(int32(at), sets))
		next = at + 1
	}
	return sets, slots
}

func (in *reader) slot(partition int32, sets []ReplicaSet) Slot {
	s := Slot{Partition: partition, Set: NoSet, LastLeader: -1}
	width := uint64(MaxReplicas)
	flags := in.byte()
	if flags&slotHasSet != 0 {
		set := in.uvarint(math.MaxInt32)
		if set >= uint64(len(sets)) {
			in.fail("replica set %d of %d", set, len(sets))
			return s
		}
		s.Set, width = int(set), uint64(len(sets[set].Replicas))
	}
	all := uint64(1)<<width - 1
	if flags&slotISRAll != 0 {
		n := in.byte()
		if uint64(n) > width {
			in.fail("%d of %d replicas in sync", n, width)
		}
		s.ISR = Members(uint64(1)<<n - 1)
	} else {
		s.ISR = Members(in.uvarint(all))
	}
	if flags&slotHasELR != 0 {
		s.ELR = Members(in.uvarint(all))
	}
	s.Leader = in.place(width)
	if flags&slotHasLast != 0 {
		if s.LastLeader = int8(in.byte()); uint64(s.LastLeader) >= width {
			in.fail("last leader at place %d of %d", s.LastLeader, width)
		}
	}
	s.Recovering = flags&slotRecovering != 0
	s.LeaderEpoch = kafka.LeaderEpoch(in.uvarint(math.MaxInt32))
	s.PartitionEpoch = kafka.PartitionEpoch(in.uvarint(math.MaxInt32))
	return s
}

// place reads a place + 1, 0 for none.
func (in *reader) place(width uint64) int8 {
	p := in.byte()
	if uint64(p) > width {
		in.fail("leader at place %d of %d", int(p)-1, width)
	}
	return int8(p) - 1
}

func (in *reader) ids() []kafka.BrokerID {
	n := in.count(1)
	if n > MaxReplicas {
		in.fail("%d replicas, at most %d", n, MaxReplicas)
	}
	if n == 0 || in.err != nil {
		return nil
	}
	ids := make([]kafka.BrokerID, n)
	for i := range ids {
		ids[i] = kafka.BrokerID(in.uvarint(math.MaxInt32))
	}
	return ids
}

func (in *reader) broker() kafka.BrokerID { return kafka.BrokerID(in.varint(0, math.MaxInt32)) }

// tags skips the tagged fields: count, then (tag, length, bytes) each.
func (in *reader) tags() {
	for n := in.count(2); n > 0 && in.err == nil; n-- {
		in.uvarint(math.MaxInt32)
		in.take(in.count(1))
	}
}

func (in *reader) fail(format string, args ...any) {
	if in.err == nil {
		in.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
	in.b = nil
}

// take returns the next n bytes in place.
func (in *reader) take(n int) []byte {
	if n > len(in.b) {
		in.fail("%d bytes wanted, %d left", n, len(in.b))
		return nil
	}
	b := in.b[:n]
	in.b = in.b[n:]
	return b
}

// count reads the number of things of at least size bytes each, no more than fit.
func (in *reader) count(size int) int {
	n := in.uvarint(math.MaxInt32)
	if n > uint64(len(in.b)/size) {
		in.fail("%d things of %d bytes announced, %d bytes left", n, size, len(in.b))
		return 0
	}
	return int(n)
}

func (in *reader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(in.b)
	if n <= 0 || v > most {
		in.fail("a number above %d or cut off", most)
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *reader) varint(least, most int64) int64 {
	v, n := binary.Varint(in.b)
	if n <= 0 || v < least || v > most {
		in.fail("a number outside [%d,%d] or cut off", least, most)
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *reader) byte() byte {
	if b := in.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (in *reader) uint16() uint16 {
	if b := in.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (in *reader) bool() bool {
	v := in.byte()
	if v > 1 {
		in.fail("a boolean of %d", v)
	}
	return v == 1
}

func (in *reader) string() string { return string(in.take(in.count(1))) }

func (in *reader) id() (id kafka.TopicID) {
	copy(id[:], in.take(len(id)))
	return id
}
