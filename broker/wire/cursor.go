package wire

import "encoding/binary"

// A cursor reads a message from its start. Past the end, or at a length that is
// none, it is bad and stays so; everything read from then on is zero. A length is
// held to what is left before it is believed.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) fail() {
	c.bad, c.b = true, nil
}

func (c *cursor) int8() int8 {
	if len(c.b) < 1 {
		c.fail()
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return int8(v)
}

func (c *cursor) int16() int16 {
	if len(c.b) < 2 {
		c.fail()
		return 0
	}
	v := binary.BigEndian.Uint16(c.b)
	c.b = c.b[2:]
	return int16(v)
}

func (c *cursor) int32() int32 {
	if len(c.b) < 4 {
		c.fail()
		return 0
	}
	v := binary.BigEndian.Uint32(c.b)
	c.b = c.b[4:]
	return int32(v)
}

func (c *cursor) int64() int64 {
	if len(c.b) < 8 {
		c.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(c.b)
	c.b = c.b[8:]
	return int64(v)
}

func (c *cursor) uuid() (id [16]byte) {
	copy(id[:], c.span(len(id)))
	return id
}

// uvarint reads at most 32 bits in at most five bytes.
func (c *cursor) uvarint() uint32 {
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := uint32(c.b[0])
		c.b = c.b[1:]
		return v
	}
	v, n := binary.Uvarint(c.b[:min(len(c.b), 5)])
	if n <= 0 || v > 1<<32-1 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return uint32(v)
}

// span is the next n bytes, in place; appending to it does not touch what follows.
func (c *cursor) span(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.fail()
		return nil
	}
	s := c.b[:n:n]
	c.b = c.b[n:]
	return s
}

// length reads a length or a count; -1 is null.
func (c *cursor) length(compact bool) int {
	if compact {
		return int(c.uvarint()) - 1
	}
	n := int(c.int32())
	if n < -1 {
		c.fail()
	}
	return n
}

// count reads the size of an array that may not be null and whose elements take at
// least min bytes each.
func (c *cursor) count(compact bool, min int) int {
	n := c.length(compact)
	if n < 0 || n > len(c.b)/min {
		c.fail()
		return 0
	}
	return n
}

func (c *cursor) nullableBytes(compact bool) []byte {
	n := c.length(compact)
	if n < 0 {
		return nil
	}
	return c.span(n)
}

func (c *cursor) nullableString(compact bool) (s string, ok bool) {
	n := 0
	if compact {
		n = int(c.uvarint()) - 1
	} else if n = int(c.int16()); n < -1 {
		c.fail()
	}
	if n < 0 || c.bad {
		return "", false
	}
	return alias(c.span(n)), !c.bad
}

func (c *cursor) string(compact bool) string {
	s, ok := c.nullableString(compact)
	if !ok {
		c.fail()
	}
	return s
}

// tag reads the next tag's number and value.
func (c *cursor) tag() (uint32, cursor) {
	n := c.uvarint()
	return n, cursor{b: c.span(int(c.uvarint()))}
}

func (c *cursor) skipTags() {
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		c.tag()
	}
}

// inner takes over the fault of a tag's value.
func (c *cursor) inner(v *cursor) {
	if v.bad {
		c.fail()
	}
}
