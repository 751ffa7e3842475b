package load

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"time"
)

// batchHeader is the size of a record batch before its first record (v2).
const batchHeader = 61

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batch is an encoded record batch that is sent again and again.
type batch struct {
	bytes   []byte
	records int
	valueAt int // where the first record's value begins
}

// newBatch fills about size bytes with records whose values are noise, so that
// no compression helps; one record where size is smaller than that.
func newBatch(size, recordBytes int) *batch {
	b := &batch{}
	rng := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, recordBytes)
	var records []byte
	for len(records) == 0 || len(records)+recordBytes+12 < size-batchHeader {
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		head := recordHead(b.records, recordBytes)
		size := len(head) + recordBytes + 1 // and the count of headers, 0
		records = binary.AppendVarint(records, int64(size))
		records = append(records, head...)
		if b.records == 0 {
			b.valueAt = batchHeader + len(records)
		}
		records = append(append(records, value...), 0)
		b.records++
	}
	b.bytes = append(make([]byte, batchHeader), records...)
	be := binary.BigEndian
	be.PutUint32(b.bytes[8:], uint32(len(b.bytes)-12))
	be.PutUint32(b.bytes[12:], ^uint32(0)) // no leader epoch
	b.bytes[16] = 2                        // magic
	be.PutUint32(b.bytes[23:], uint32(b.records-1))
	be.PutUint64(b.bytes[43:], ^uint64(0)) // no producer id,
	be.PutUint16(b.bytes[51:], ^uint16(0)) // epoch
	be.PutUint32(b.bytes[53:], ^uint32(0)) // or sequence
	be.PutUint32(b.bytes[57:], uint32(b.records))
	b.stamp(time.Now())
	return b
}

// recordHead is a record from its attributes to the length of its value.
func recordHead(offsetDelta, valueBytes int) []byte {
	head := []byte{0}                   // attributes
	head = binary.AppendVarint(head, 0) // timestamp delta
	head = binary.AppendVarint(head, int64(offsetDelta))
	head = binary.AppendVarint(head, -1) // no key
	return binary.AppendVarint(head, int64(valueBytes))
}

// stamp gives the batch a time and its checksum.
func (b *batch) stamp(t time.Time) {
	ms := uint64(t.UnixMilli())
	binary.BigEndian.PutUint64(b.bytes[27:], ms)
	binary.BigEndian.PutUint64(b.bytes[35:], ms)
	binary.BigEndian.PutUint32(b.bytes[17:], crc32.Checksum(b.bytes[21:], castagnoli))
}

// due writes a moment into the first value, for the consumer to find.
func (b *batch) due(t time.Time) {
	binary.BigEndian.PutUint64(b.bytes[b.valueAt:], uint64(t.UnixNano()))
	b.stamp(t)
}

// sentAt reads that moment from a batch that was laid out as b is.
func (b *batch) sentAt(received []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(received[b.valueAt:])))
}

// skim walks the batches of a fetched partition from offset next on; each, if
// any, is called with every batch that is not older.
func skim(b []byte, next int64, each func([]byte)) (after, records, size int64) {
	for len(b) >= batchHeader {
		n := int(binary.BigEndian.Uint32(b[8:])) + 12
		if n > len(b) {
			break
		}
		base := int64(binary.BigEndian.Uint64(b))
		last := base + int64(binary.BigEndian.Uint32(b[23:]))
		if last >= next {
			if each != nil {
				each(b[:n])
			}
			records += last - max(base, next) + 1
			next = last + 1
		}
		size += int64(n)
		b = b[n:]
	}
	return next, records, size
}
