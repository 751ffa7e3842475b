package wire

import (
	"encoding/binary"

	"varve/broker/kafka"
)

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }
func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }
func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// appendCount appends an array's size, or a byte field's length.
func appendCount(dst []byte, n int, compact bool) []byte {
	if compact {
		return binary.AppendUvarint(dst, uint64(n)+1)
	}
	return appendInt32(dst, int32(n))
}

// appendNull appends the size of an array that is null.
func appendNull(dst []byte, compact bool) []byte {
	if compact {
		return append(dst, 0)
	}
	return appendInt32(dst, -1)
}

func appendString(dst []byte, s string, compact bool) []byte {
	if compact {
		dst = binary.AppendUvarint(dst, uint64(len(s))+1)
	} else {
		dst = appendInt16(dst, int16(len(s)))
	}
	return append(dst, s...)
}

// appendNullableString takes "" for null.
func appendNullableString(dst []byte, s string, compact bool) []byte {
	switch {
	case s != "":
		return appendString(dst, s, compact)
	case compact:
		return append(dst, 0)
	default:
		return appendInt16(dst, -1)
	}
}

// appendNoTags appends an empty tag section where there is one.
func appendNoTags(dst []byte, flexible bool) []byte {
	if flexible {
		return append(dst, 0)
	}
	return dst
}

// A LeaderHint tells a client that was refused who leads now (KIP-951). The zero
// value is none.
type LeaderHint struct {
	Known  bool
	Leader kafka.BrokerID
	Epoch  kafka.LeaderEpoch
}

// appendTag appends tag number with the hint: two numbers and no tags of its own.
func (h LeaderHint) appendTag(dst []byte, number byte) []byte {
	dst = append(dst, number, 4+4+1)
	dst = appendInt32(dst, int32(h.Leader))
	dst = appendInt32(dst, int32(h.Epoch))
	return append(dst, 0)
}

// A Node is where a broker that a LeaderHint names can be reached.
type Node struct {
	ID   kafka.BrokerID
	Host string
	Port int32
	Rack string // "" is none
}

// size is the node's length when encoded compactly.
func (n Node) size() int {
	size := 4 + uvarintSize(uint64(len(n.Host))+1) + len(n.Host) + 4 + 1 + 1
	if n.Rack != "" {
		size += uvarintSize(uint64(len(n.Rack))+1) - 1 + len(n.Rack)
	}
	return size
}

// appendNodes appends a message's tag section: tag 0 with nodes, or nothing.
func appendNodes(dst []byte, nodes []Node) []byte {
	if len(nodes) == 0 {
		return append(dst, 0)
	}
	size := uvarintSize(uint64(len(nodes)) + 1)
	for _, n := range nodes {
		size += n.size()
	}
	dst = append(dst, 1, 0)
	dst = binary.AppendUvarint(dst, uint64(size))
	dst = appendCount(dst, len(nodes), true)
	for _, n := range nodes {
		dst = appendInt32(dst, int32(n.ID))
		dst = appendString(dst, n.Host, true)
		dst = appendInt32(dst, n.Port)
		dst = appendNullableString(dst, n.Rack, true)
		dst = append(dst, 0)
	}
	return dst
}

func uvarintSize(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
