// Package record owns the record batch, version 2: the run of bytes in which
// records travel from producer to disk to consumer. It reads, stamps, checks,
// walks, builds and compresses batches, and never copies what need not change.
//
//	 0  base offset       i64   stamped by the leader
//	 8  length            i32   bytes after this field
//	12  leader epoch      i32   stamped by the leader
//	16  magic             i8    2
//	17  crc               u32   CRC32C of everything from byte 21 on
//	21  attributes        i16   0-2 codec, 3 log append time, 4 transactional,
//	                            5 control, 6 delete horizon
//	23  last offset delta i32
//	27  base timestamp    i64   ms; the delete horizon where bit 6 is set
//	35  max timestamp     i64   ms
//	43  producer id       i64   -1 none
//	51  producer epoch    i16
//	53  base sequence     i32   -1 none
//	57  count             i32
//	61  records, back to back; compressed as one stream where the codec says so:
//
//	length varint | attributes i8 | timestamp delta varlong | offset delta varint |
//	key length varint (-1 null) | key | value length varint (-1 null) | value |
//	headers varint | { key length varint | key | value length varint (-1 null) | value }
//
// Varints are zigzag, base 128, lowest group first. The base offset and the leader
// epoch lie outside the checksum: stamping them is all that a leader must change.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"varve/broker/kafka"
)

const (
	// HeaderSize is the bytes of a batch before its first record.
	HeaderSize = 61
	// lengthEnd is where the bytes begin that the length field counts.
	lengthEnd = 12
	magicV2   = 2
	// crcStart is the first byte under the checksum.
	crcStart = 21
)

// NoTimestamp is the timestamp of a record that has none.
const NoTimestamp int64 = -1

// The bits of the attributes field.
const (
	codecMask        = 0x07
	appendTimeBit    = 0x08
	transactionalBit = 0x10
	controlBit       = 0x20
	horizonBit       = 0x40
)

// ErrShort says that the bytes end before the batch does: it is torn, or there is
// more to read.
var ErrShort = errors.New("record: bytes end before the batch does")

// A CorruptError says that bytes cannot be a batch of version 2.
type CorruptError struct{ Message string }

func (e *CorruptError) Error() string { return e.Message }

// A Batch is the bytes of one whole batch, often in place in a request's or a
// file's buffer. Accessors trust what Parse has checked.
type Batch []byte

// Parse takes the first batch off b. It checks the bounds, the version and the
// length, not the checksum: *CorruptError for what can be no batch, ErrShort
// where b ends before the batch does. rest is what follows.
func Parse(b []byte) (batch Batch, rest []byte, err error) {
	if len(b) < lengthEnd {
		return nil, b, ErrShort
	}
	length := int64(int32(binary.BigEndian.Uint32(b[8:])))
	if length < HeaderSize-lengthEnd {
		return nil, b, &CorruptError{fmt.Sprintf(
			"record batch is corrupt: length %d is below the least, %d", length, HeaderSize-lengthEnd)}
	}
	if len(b) > 16 && b[16] != magicV2 {
		return nil, b, &CorruptError{fmt.Sprintf("record batch has magic %d, want %d", int8(b[16]), magicV2)}
	}
	if int64(len(b)) < lengthEnd+length {
		return nil, b, ErrShort
	}
	n := int(lengthEnd + length)
	return Batch(b[:n:n]), b[n:], nil
}

// SizeOf tells how long the batch is whose first 12 bytes are at hand; a value
// below HeaderSize means that they begin no batch.
func SizeOf(prefix []byte) int64 {
	return lengthEnd + int64(int32(binary.BigEndian.Uint32(prefix[8:lengthEnd])))
}

// Size is the batch's length in bytes, header included.
func (b Batch) Size() int { return len(b) }

// BaseOffset is the offset of the first record that was in the batch.
func (b Batch) BaseOffset() kafka.Offset { return kafka.Offset(binary.BigEndian.Uint64(b)) }

// LastOffset is the offset of the last record that was in the batch; compaction
// leaves it standing.
func (b Batch) LastOffset() kafka.Offset { return b.BaseOffset() + kafka.Offset(b.LastOffsetDelta()) }

// NextOffset is the first offset after the batch.
func (b Batch) NextOffset() kafka.Offset { return b.LastOffset() + 1 }

// LeaderEpoch is the epoch of the leader that appended the batch.
func (b Batch) LeaderEpoch() kafka.LeaderEpoch {
	return kafka.LeaderEpoch(binary.BigEndian.Uint32(b[12:]))
}

// LastOffsetDelta is LastOffset - BaseOffset.
func (b Batch) LastOffsetDelta() int32 { return int32(binary.BigEndian.Uint32(b[23:])) }

// BaseTimestamp is what the records' timestamp deltas count from, in ms.
func (b Batch) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[27:])) }

// MaxTimestamp is the highest timestamp of the batch in ms, or the time of its
// append where LogAppendTime is set.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[35:])) }

// ProducerID is the idempotent producer's id, or NoProducer.
func (b Batch) ProducerID() kafka.ProducerID {
	return kafka.ProducerID(binary.BigEndian.Uint64(b[43:]))
}

// ProducerEpoch is the idempotent producer's epoch, -1 without one.
func (b Batch) ProducerEpoch() kafka.ProducerEpoch {
	return kafka.ProducerEpoch(binary.BigEndian.Uint16(b[51:]))
}

// BaseSequence is the sequence number of the first record, -1 without one.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[53:])) }

// LastSequence is the sequence number of the last record. Numbers go round from
// 2^31-1 to 0.
func (b Batch) LastSequence() int32 {
	first := b.BaseSequence()
	if first < 0 {
		return first
	}
	return AddSequence(first, b.LastOffsetDelta())
}

// AddSequence is the sequence number n after s, n >= 0; 2^31-1 is followed by 0.
func AddSequence(s, n int32) int32 {
	return int32((int64(s) + int64(n)) & math.MaxInt32)
}

// Count is the number of records in the batch, as its header has it.
func (b Batch) Count() int32 { return int32(binary.BigEndian.Uint32(b[57:])) }

// Codec is how the records are compressed.
func (b Batch) Codec() Codec { return Codec(b[22] & codecMask) }

// LogAppendTime tells whether MaxTimestamp is the timestamp of every record.
func (b Batch) LogAppendTime() bool { return b[22]&appendTimeBit != 0 }

// Transactional tells whether the batch belongs to a transaction.
func (b Batch) Transactional() bool { return b[22]&transactionalBit != 0 }

// Control tells whether the batch holds a marker of the broker's.
func (b Batch) Control() bool { return b[22]&controlBit != 0 }

// HasDeleteHorizon tells whether BaseTimestamp is the time after which the
// cleaner may drop the batch's tombstones (KIP-534).
func (b Batch) HasDeleteHorizon() bool { return b[22]&horizonBit != 0 }

// DeleteHorizon is the time in ms after which tombstones may go; ok is false
// where the batch has none.
func (b Batch) DeleteHorizon() (ms int64, ok bool) { return b.BaseTimestamp(), b.HasDeleteHorizon() }

// payload is the records as they lie in the batch.
func (b Batch) payload() []byte { return b[HeaderSize:] }

// String is for people.
func (b Batch) String() string {
	return fmt.Sprintf("batch [%d,%d] epoch %d, %d records in %d bytes, producer %d/%d, sequence %d",
		b.BaseOffset(), b.LastOffset(), b.LeaderEpoch(), b.Count(), len(b),
		b.ProducerID(), b.ProducerEpoch(), b.BaseSequence())
}
