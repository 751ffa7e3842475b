package record

import (
	"encoding/binary"
	"math"

	"varve/broker/kafka"
)

// A Builder makes a batch of records. Set the fields, Add the records, AppendTo;
// Reset and go on. The zero value builds an uncompressed batch without a producer.
type Builder struct {
	Codec         Codec
	Level         int // DefaultLevel, or on the codec's scale
	BaseOffset    kafka.Offset
	LeaderEpoch   kafka.LeaderEpoch
	Producer      *Producer // nil: none
	Transactional bool
	Control       bool
	LogAppendTime bool
	AppendTime    int64 // ms, where LogAppendTime is set

	records    []byte
	count      int32
	base, high int64 // timestamps, ms
	compressor Compressor
}

// A Producer is the idempotent producer's part of a batch.
type Producer struct {
	ID       kafka.ProducerID
	Epoch    kafka.ProducerEpoch
	Sequence int32 // of the first record; -1 in a marker's batch
}

// Reset forgets the records and keeps the fields.
func (w *Builder) Reset() { w.records, w.count = w.records[:0], 0 }

// Count is the number of records added.
func (w *Builder) Count() int { return int(w.count) }

// Size is the bytes of the batch without compression.
func (w *Builder) Size() int { return HeaderSize + len(w.records) }

// Add adds a record behind the last. r.Offset is not looked at: offsets are dense.
func (w *Builder) Add(r Record) {
	if w.count == 0 {
		w.base, w.high = r.Timestamp, r.Timestamp
	}
	w.high = max(w.high, r.Timestamp)
	delta := r.Timestamp - w.base
	w.records = appendVarint(w.records, int64(sizeBody(r, delta, w.count)))
	w.records = append(w.records, byte(r.Attributes))
	w.records = appendVarint(w.records, delta)
	w.records = appendVarint(w.records, int64(w.count))
	w.records = appendBytes(w.records, r.Key)
	w.records = appendBytes(w.records, r.Value)
	w.records = appendVarint(w.records, int64(len(r.Headers)))
	for _, h := range r.Headers {
		w.records = appendVarint(w.records, int64(len(h.Key)))
		w.records = append(w.records, h.Key...)
		w.records = appendBytes(w.records, h.Value)
	}
	w.count++
}

func sizeBody(r Record, delta int64, index int32) int {
	n := 1 + sizeVarint(delta) + sizeVarint(int64(index)) + sizeBytes(r.Key) + sizeBytes(r.Value) +
		sizeVarint(int64(len(r.Headers)))
	for _, h := range r.Headers {
		n += sizeVarint(int64(len(h.Key))) + len(h.Key) + sizeBytes(h.Value)
	}
	return n
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return appendVarint(dst, -1)
	}
	return append(appendVarint(dst, int64(len(b))), b...)
}

func sizeBytes(b []byte) int {
	if b == nil {
		return 1
	}
	return sizeVarint(int64(len(b))) + len(b)
}

// AppendTo appends the batch to dst, whole and with its checksum.
func (w *Builder) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	dst = w.compressor.fold(dst, w.Codec, w.Level, w.records)
	b := Batch(dst[at:])
	if len(b)-lengthEnd > math.MaxInt32 {
		panic("record: built a batch of more than 2 GiB")
	}
	w.putHeader(b)
	return dst
}

func (w *Builder) putHeader(b Batch) {
	b.Stamp(w.BaseOffset, w.LeaderEpoch)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-lengthEnd))
	b[16] = magicV2
	b[22] = w.attributes()
	binary.BigEndian.PutUint32(b[23:], uint32(w.count-1))
	high := w.high
	if w.LogAppendTime {
		high = w.AppendTime
	}
	binary.BigEndian.PutUint64(b[27:], uint64(w.base))
	binary.BigEndian.PutUint64(b[35:], uint64(high))
	p := Producer{kafka.NoProducer, -1, -1}
	if w.Producer != nil {
		p = *w.Producer
	}
	binary.BigEndian.PutUint64(b[43:], uint64(p.ID))
	binary.BigEndian.PutUint16(b[51:], uint16(p.Epoch))
	binary.BigEndian.PutUint32(b[53:], uint32(p.Sequence))
	binary.BigEndian.PutUint32(b[57:], uint32(w.count))
	binary.BigEndian.PutUint32(b[17:], b.sum())
}

func (w *Builder) attributes() byte {
	a := byte(w.Codec)
	if w.LogAppendTime {
		a |= appendTimeBit
	}
	if w.Transactional {
		a |= transactionalBit
	}
	if w.Control {
		a |= controlBit
	}
	return a
}
