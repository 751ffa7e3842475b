package record

import (
	"errors"
	"fmt"
	"math"

	"varve/broker/kafka"
)

// A Policy is what a topic and a broker ask of batches. DefaultPolicy is Kafka's.
type Policy struct {
	Partition       kafka.TopicPartition // for messages
	MaxBytes        int                  // max.message.bytes; 0: no bound
	SegmentBytes    int                  // segment.bytes; 0: no bound
	LogAppendTime   bool                 // message.timestamp.type
	BeforeMax       int64                // message.timestamp.before.max.ms
	AfterMax        int64                // message.timestamp.after.max.ms
	KeyRequired     bool                 // cleanup.policy has compact
	TargetCodec     Codec                // compression.type; CodecProducer: as it came
	Level           int                  // of TargetCodec
	ProduceVersion  int16                // of the request
	FromCoordinator bool                 // the broker's own batch: no checks of a client's
}

// DefaultPolicy is the policy of a topic without configs of its own.
func DefaultPolicy(tp kafka.TopicPartition) Policy {
	return Policy{
		Partition:    tp,
		MaxBytes:     1<<20 + 12,
		SegmentBytes: 1 << 30,
		BeforeMax:    math.MaxInt64,
		AfterMax:     60 * 60 * 1000,
		TargetCodec:  CodecProducer,
	}
}

// A Validator checks batches before they are appended. It keeps scratch for one
// caller at a time; a batch that it had to rewrite is good until its next use. The
// zero value is ready.
type Validator struct {
	Decompressor Decompressor

	builder Builder
	out     []byte
}

// Validate checks the records of one produce request's partition at the time nowMs,
// in Kafka's order and words. It returns the one batch that may be appended: in
// place, or rewritten where the policy asks for it.
//
// Records of an uncompressed batch are all looked at. A compressed one is unfolded
// only where the policy cannot be held by its header: Kafka unfolds each.
func (v *Validator) Validate(records []byte, p Policy, nowMs int64) (Batch, *Refusal) {
	b, r := parseProduced(records, p)
	if r != nil {
		r.Request = true
		return nil, r
	}
	if r := checkBatch(b, p); r != nil {
		return nil, r
	}
	out, r := v.checkRecords(b, p, nowMs)
	if r != nil {
		return nil, r
	}
	return out, checkSizes(out, p, len(out) != len(b))
}

// parseProduced finds the one batch of a produce request. Bytes behind it that are
// no whole batch are cut off.
func parseProduced(records []byte, p Policy) (Batch, *Refusal) {
	if len(records) > 16 && records[16] < magicV2 {
		return nil, refuse(kafka.InvalidRecord, "Produce requests with version %d are only allowed to contain record "+
			"batches with magic version 2", p.ProduceVersion)
	}
	if len(records) > 16 && records[16] > magicV2 {
		return nil, refuse(kafka.CorruptMessage, "Invalid magic found in record: %d", records[16])
	}
	b, rest, err := Parse(records)
	if errors.Is(err, ErrShort) {
		return nil, refuse(kafka.InvalidRecord, "Produce requests with version %d must have at least one record batch "+
			"per partition", p.ProduceVersion)
	}
	if err != nil {
		return nil, refuse(kafka.CorruptMessage, "%v", err)
	}
	if p.FromCoordinator {
		return b, nil
	}
	if p.ProduceVersion < 7 && b.Codec() == CodecZstd {
		return nil, refuse(kafka.UnsupportedCompressionType, "Produce requests with version %d are not allowed to use "+
			"ZStandard compression", p.ProduceVersion)
	}
	if _, _, err := Parse(rest); err == nil {
		return nil, refuse(kafka.InvalidRecord, "Produce requests with version %d are only allowed to contain exactly "+
			"one record batch per partition", p.ProduceVersion)
	}
	return b, nil
}

// checkBatch checks the header and the checksum.
func checkBatch(b Batch, p Policy) *Refusal {
	if !p.FromCoordinator && b.BaseOffset() != 0 {
		return refuse(kafka.InvalidRecord, "The baseOffset of the record batch in the append to %v should be 0, but it is %d",
			p.Partition, b.BaseOffset())
	}
	if p.MaxBytes > 0 && len(b) > p.MaxBytes {
		return refuse(kafka.MessageTooLarge, "The record batch size in the append to %v is %d bytes which exceeds the "+
			"maximum configured value of %d).", p.Partition, len(b), p.MaxBytes)
	}
	if !b.ValidCRC() {
		return refuse(kafka.CorruptMessage, "Record is corrupt (stored crc = %d) in topic partition %v.", b.CRC(), p.Partition)
	}
	if !p.FromCoordinator {
		if r := checkClientBatch(b, p); r != nil {
			return r
		}
	}
	if !b.Codec().known() {
		return refuse(kafka.UnsupportedCompressionType, "Unknown compression type id: %d", int8(b.Codec()))
	}
	return nil
}

// checkClientBatch checks what only the broker itself may do.
func checkClientBatch(b Batch, p Policy) *Refusal {
	span := int64(b.LastOffsetDelta()) + 1
	count := int64(b.Count())
	switch {
	case span <= 0:
		return refuse(kafka.InvalidRecord, "Batch has an invalid offset range: [%d, %d] in topic partition %v",
			b.BaseOffset(), b.LastOffset(), p.Partition)
	case count <= 0:
		return refuse(kafka.InvalidRecord, "Invalid reported count for record batch: %d in topic partition %v", count, p.Partition)
	case span != count:
		return refuse(kafka.InvalidRecord, "Inconsistent batch offset range [%d, %d] and count of records %d in topic partition %v",
			b.BaseOffset(), b.LastOffset(), count, p.Partition)
	case b.Control():
		return refuse(kafka.InvalidRecord, "Clients are not allowed to write control records in topic partition %v", p.Partition)
	case b.ProducerID() > kafka.NoProducer && b.BaseSequence() < 0:
		return refuse(kafka.InvalidRecord, "Invalid sequence number %d in record batch with producerId %d in topic partition %v",
			b.BaseSequence(), b.ProducerID(), p.Partition)
	}
	return nil
}

// checkSizes holds the bounds of what will be appended.
func checkSizes(b Batch, p Policy, rewritten bool) *Refusal {
	if rewritten && p.MaxBytes > 0 && len(b) > p.MaxBytes {
		return refuse(kafka.MessageTooLarge, "Message batch size is %d bytes in append to partition %v which exceeds the "+
			"maximum configured size of %d.", len(b), p.Partition, p.MaxBytes)
	}
	if p.SegmentBytes > 0 && len(b) > p.SegmentBytes {
		return refuse(kafka.RecordListTooLarge, "Message batch size is %d bytes in append to partition %v, which exceeds the "+
			"maximum configured segment size of %d.", len(b), p.Partition, p.SegmentBytes)
	}
	return nil
}

// checkRecords checks the records and returns the batch as it is to be appended.
func (v *Validator) checkRecords(b Batch, p Policy, now int64) (Batch, *Refusal) {
	target := p.TargetCodec
	if target == CodecProducer || b.Control() {
		target = b.Codec()
	}
	if b.Codec() != CodecNone && target == b.Codec() && headerSuffices(b, p, now) {
		stampTime(b, p, b.MaxTimestamp(), now)
		return b, nil
	}
	payload, err := v.Decompressor.unfold(b.Codec(), b.payload())
	if err != nil {
		return nil, refuse(kafka.CorruptMessage, "%v in topic partition %v", err, p.Partition)
	}
	f := walk(payload, b.Count(), b.BaseTimestamp())
	if !f.whole || f.nullKey && p.KeyRequired || b.LogAppendTime() || f.offTime(p, now) {
		if r := v.refuseRecords(b, p, now); r != nil {
			return nil, r
		}
		if !f.whole {
			panic(fmt.Sprintf("record: walk and iterator disagree about %v", b))
		}
	}
	if !f.dense && !p.FromCoordinator || target != b.Codec() {
		return v.rewrite(b, p, target, now)
	}
	stampTime(b, p, f.highOrNone(), now)
	return b, nil
}

// headerSuffices tells whether no rule of p asks for a look at single records.
func headerSuffices(b Batch, p Policy, now int64) bool {
	if p.KeyRequired || b.LogAppendTime() {
		return false
	}
	return p.LogAppendTime || p.BeforeMax == math.MaxInt64 && !offTime(b.MaxTimestamp(), p, now)
}

// offTime tells whether a record lies outside the time that p allows.
func (f *facts) offTime(p Policy, now int64) bool {
	return !p.LogAppendTime && f.timed() && (offTime(f.low, p, now) || offTime(f.high, p, now))
}

func (f *facts) highOrNone() int64 {
	if !f.timed() {
		return NoTimestamp
	}
	return f.high
}

// offTime compares differences, as Kafka does: sums with the largest bounds overflow.
func offTime(ts int64, p Policy, now int64) bool {
	return ts != NoTimestamp && (now-ts > p.BeforeMax || ts-now > p.AfterMax)
}

func stampTime(b Batch, p Policy, high, now int64) {
	if p.LogAppendTime {
		high = now
	}
	b.SetMaxTimestamp(high, p.LogAppendTime)
}

// refuseRecords walks again and says what is wrong with which record; nil if nothing is.
func (v *Validator) refuseRecords(b Batch, p Policy, now int64) *Refusal {
	var errs []RecordError
	total, timestamps := 0, false
	it := b.Records(&v.Decompressor)
	var r Record
	for i := int32(0); it.Next(&r); i++ {
		message, byTime := recordFault(&r, b, p, now)
		if message == "" {
			continue
		}
		total++
		timestamps = timestamps || byTime
		if len(errs) < maxRecordErrors {
			errs = append(errs, RecordError{i, message})
		}
	}
	if err := it.Err(); err != nil {
		return refuse(kafka.InvalidRecord, "%v", err)
	}
	if total == 0 {
		return nil
	}
	return refuseRecords(errs, total, timestamps)
}

// recordFault is what is wrong with a record, and whether it is its time.
//
// A client's batch that says LogAppendTime is refused always; Kafka lets it pass
// where the topic has CreateTime, and then stores other times than it checked.
func recordFault(r *Record, b Batch, p Policy, now int64) (message string, byTime bool) {
	switch {
	case p.KeyRequired && r.Key == nil:
		return fmt.Sprintf("Compacted topic cannot accept message without key in topic partition %v", p.Partition), false
	case b.LogAppendTime() && !p.FromCoordinator:
		return fmt.Sprintf("Invalid timestamp type in message DefaultRecord(offset=%d, timestamp=%d, key=%d bytes, value=%d bytes). "+
			"Producer should not set timestamp type to LogAppendTime.", r.Offset, r.Timestamp, len(r.Key), len(r.Value)), true
	case !p.LogAppendTime && offTime(r.Timestamp, p, now):
		return fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
			r.Timestamp, r.Offset, now-p.BeforeMax, now+p.AfterMax), true
	}
	return "", false
}

// rewrite builds the batch anew, with the codec and with offsets without a gap.
func (v *Validator) rewrite(b Batch, p Policy, codec Codec, now int64) (Batch, *Refusal) {
	if cap(v.builder.records) > keepBuffer {
		v.builder.records = nil
	}
	w := &v.builder
	w.Reset()
	w.Codec, w.Level = codec, p.Level
	w.BaseOffset, w.LeaderEpoch = b.BaseOffset(), b.LeaderEpoch()
	w.Producer = &Producer{b.ProducerID(), b.ProducerEpoch(), b.BaseSequence()}
	w.Transactional, w.Control = b.Transactional(), b.Control()
	w.LogAppendTime, w.AppendTime = p.LogAppendTime, now
	it := b.Records(&v.Decompressor)
	var r Record
	for it.Next(&r) {
		w.Add(r)
	}
	if err := it.Err(); err != nil {
		return nil, refuse(kafka.InvalidRecord, "%v", err)
	}
	v.out = w.AppendTo(v.out[:0])
	return Batch(v.out), nil
}
