package record

import (
	"fmt"

	"varve/broker/kafka"
)

// A Record is one record. Its slices alias the batch, or the Decompressor's buffer
// where the batch was compressed.
type Record struct {
	Offset     kafka.Offset
	Timestamp  int64 // ms
	Attributes int8  // none are defined
	Key, Value []byte
	Headers    []Header
}

// A Header is one header of a record; a nil Value is null.
type Header struct {
	Key   []byte
	Value []byte
}

// Records walks the records of one batch: for it.Next(&r) { … }; it.Err().
type Records struct {
	batch Batch
	rest  []byte
	left  int32
	err   error

	headers []Header // reused
}

// Records begins a walk. d unfolds a compressed batch and may be nil for one that
// is not; the records are good until d is used again.
func (b Batch) Records(d *Decompressor) Records {
	it := Records{batch: b, rest: b.payload(), left: b.Count()}
	if it.left < 0 {
		it.fail("Found invalid record count %d in magic v2 batch", it.left)
		return it
	}
	if b.Codec() != CodecNone {
		if d == nil {
			d = new(Decompressor)
		}
		it.rest, it.err = d.unfold(b.Codec(), it.rest)
	}
	return it
}

// Err is what ended the walk early: a *CorruptError or an error of the codec.
func (it *Records) Err() error { return it.err }

func (it *Records) fail(format string, args ...any) bool {
	it.err = &CorruptError{fmt.Sprintf(format, args...)}
	return false
}

// Next reads the next record into r. r's Headers are good until the next call.
func (it *Records) Next(r *Record) bool {
	if it.err != nil {
		return false
	}
	if it.left == 0 {
		if len(it.rest) != 0 {
			return it.fail("Incorrect declared batch size, records still remaining in file")
		}
		return false
	}
	it.left--
	body, rest, err := cutRecord(it.rest)
	if err != nil {
		it.err = err
		return false
	}
	it.rest = rest
	return it.read(r, body)
}

// cutRecord takes the first record off b and returns what its length field counts.
func cutRecord(b []byte) (body, rest []byte, err error) {
	length, n := varint(b)
	if n == 0 {
		return nil, b, &CorruptError{"Found invalid record structure"}
	}
	b = b[n:]
	if length < 0 || int64(length) > int64(len(b)) {
		return nil, b, &CorruptError{fmt.Sprintf("Invalid record size: expected %d bytes in record payload, "+
			"but instead the buffer has only %d remaining bytes.", length, len(b))}
	}
	return b[:length:length], b[length:], nil
}

func (it *Records) read(r *Record, body []byte) bool {
	c := cursor{rest: body}
	r.Attributes = int8(c.byte())
	r.Timestamp = it.batch.BaseTimestamp() + c.varlong()
	if it.batch.LogAppendTime() {
		r.Timestamp = it.batch.MaxTimestamp()
	}
	r.Offset = it.batch.BaseOffset() + kafka.Offset(c.varint())
	r.Key = c.bytes()
	r.Value = c.bytes()
	it.headers = it.headers[:0]
	n := c.varint()
	if n < 0 || int(n) > len(c.rest) {
		return it.fail("Found invalid number of record headers %d", n)
	}
	for ; n > 0 && !c.bad; n-- {
		key := c.bytes()
		if key == nil {
			return it.fail("Invalid negative header key size -1")
		}
		it.headers = append(it.headers, Header{key, c.bytes()})
	}
	r.Headers = it.headers
	if c.bad {
		return it.fail("Found invalid record structure")
	}
	if len(c.rest) != 0 {
		return it.fail("Invalid record size: expected to read %d bytes in record payload, but instead read %d",
			len(body), len(body)-len(c.rest))
	}
	return true
}

// A cursor reads fields off a record's body; bad says that one was not there.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) byte() byte {
	if len(c.rest) == 0 {
		c.bad = true
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *cursor) varint() int32 {
	v, n := varint(c.rest)
	c.bad = c.bad || n == 0
	c.rest = c.rest[n:]
	return v
}

func (c *cursor) varlong() int64 {
	v, n := varlong(c.rest)
	c.bad = c.bad || n == 0
	c.rest = c.rest[n:]
	return v
}

// bytes reads a length and as many bytes; nil where the length is negative.
func (c *cursor) bytes() []byte {
	n := c.varint()
	if n < 0 {
		return nil
	}
	if int64(n) > int64(len(c.rest)) {
		c.bad = true
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}
