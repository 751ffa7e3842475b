package namenode

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// A message is a protobuf message being written, field by field.
type message []byte

func (m message) str(n protowire.Number, s string) message {
	return protowire.AppendString(protowire.AppendTag(m, n, protowire.BytesType), s)
}

func (m message) raw(n protowire.Number, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), b)
}

func (m message) num(n protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), v)
}

// zig is a sint32 or sint64.
func (m message) zig(n protowire.Number, v int64) message {
	return m.num(n, protowire.EncodeZigZag(v))
}

func (m message) flag(n protowire.Number, v bool) message {
	return m.num(n, protowire.EncodeBool(v))
}

// fields are a protobuf message that was read: the values of each field in order.
// A message inside is parsed when it is asked for.
type fields map[protowire.Number][]value

// A value is a varint (num) or what has a length (bytes).
type value struct {
	num   uint64
	bytes []byte
}

func parse(b []byte) (fields, error) {
	m := fields{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, fmt.Errorf("reading a message: %w", protowire.ParseError(n))
		}
		b = b[n:]
		var v value
		switch kind {
		case protowire.VarintType:
			v.num, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return nil, fmt.Errorf("reading field %d: %w", number, protowire.ParseError(n))
		}
		b = b[n:]
		m[number] = append(m[number], v)
	}
	return m, nil
}

// last is the value that counts where a field comes twice.
func (m fields) last(n protowire.Number) value {
	if v := m[n]; len(v) > 0 {
		return v[len(v)-1]
	}
	return value{}
}

func (m fields) has(n protowire.Number) bool     { return len(m[n]) > 0 }
func (m fields) num(n protowire.Number) int64    { return int64(m.last(n).num) }
func (m fields) flag(n protowire.Number) bool    { return m.last(n).num != 0 }
func (m fields) str(n protowire.Number) string   { return string(m.last(n).bytes) }
func (m fields) each(n protowire.Number) []value { return m[n] }
func (m fields) sub(n protowire.Number) fields   { return m.last(n).message() }
func (m fields) int(n protowire.Number) int      { return int(int32(m.last(n).num)) }

// message is a value as a message; one that is none has no fields.
func (v value) message() fields {
	m, err := parse(v.bytes)
	if err != nil {
		return fields{}
	}
	return m
}

// frame puts parts behind one length of four bytes, each behind a varint length.
func frame(parts ...message) []byte {
	b := make([]byte, 4, 128)
	for _, p := range parts {
		b = protowire.AppendBytes(b, p)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// cut takes one part off the front of a frame's contents.
func cut(b []byte) (part, rest []byte, err error) {
	p, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, nil, fmt.Errorf("reading a frame of %d bytes: %w", len(b), protowire.ParseError(n))
	}
	return p, b[n:], nil
}
