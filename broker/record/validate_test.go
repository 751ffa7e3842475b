package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"varve/broker/kafka"
)

// produced is a policy as of a produce request of version 13 by a client.
func produced(change func(*Policy)) Policy {
	p := DefaultPolicy(bench)
	p.ProduceVersion = 13
	if change != nil {
		change(&p)
	}
	return p
}

// altered is a batch with a change to its bytes and a checksum that fits.
func altered(b Batch, change func(b Batch)) Batch {
	b = bytes.Clone(b)
	change(b)
	binary.BigEndian.PutUint32(b[17:], b.sum())
	return b
}

func put32(at int, v int32) func(Batch) {
	return func(b Batch) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
}

func TestValidateRefusesInKafkasWords(t *testing.T) {
	good := build(CodecNone, some[0], some[0])
	old := build(CodecNone, some[0], Record{Timestamp: now - 5000, Value: []byte("x")}, Record{Timestamp: now + 4000000})
	compact := func(p *Policy) { p.KeyRequired = true }
	brokenCRC := bytes.Clone(good)
	brokenCRC[len(brokenCRC)-1] ^= 1
	magic1 := bytes.Clone(good)
	magic1[16] = 1

	for _, c := range []struct {
		name    string
		batch   []byte
		policy  Policy
		code    kafka.Code
		message string
		records int
	}{
		{"no batch", nil, produced(nil), kafka.InvalidRecord, "must have at least one record batch per partition", 0},
		{"torn", good[:70], produced(nil), kafka.InvalidRecord, "must have at least one record batch per partition", 0},
		{"old magic", magic1, produced(nil), kafka.InvalidRecord, "only allowed to contain record batches with magic version 2", 0},
		{"new magic", altered(good, func(b Batch) { b[16] = 3 }), produced(nil), kafka.CorruptMessage, "Invalid magic found in record: 3", 0},
		{"length below a header", altered(good, put32(8, 20)), produced(nil), kafka.CorruptMessage, "length 20 is below the least, 49", 0},
		{"two batches", append(bytes.Clone(good), good...), produced(nil), kafka.InvalidRecord, "exactly one record batch per partition", 0},
		{"zstd of old", build(CodecZstd, some[0]), produced(func(p *Policy) { p.ProduceVersion = 6 }), kafka.UnsupportedCompressionType,
			"Produce requests with version 6 are not allowed to use ZStandard compression", 0},
		{"base offset", altered(good, func(b Batch) { b.Stamp(5, 0) }), produced(nil), kafka.InvalidRecord,
			"The baseOffset of the record batch in the append to orders-3 should be 0, but it is 5", 0},
		{"too large", good, produced(func(p *Policy) { p.MaxBytes = len(good) - 1 }), kafka.MessageTooLarge,
			fmt.Sprintf("The record batch size in the append to orders-3 is %d bytes which exceeds the maximum configured value of %d).", len(good), len(good)-1), 0},
		{"checksum", brokenCRC, produced(nil), kafka.CorruptMessage, "in topic partition orders-3.", 0},
		{"beyond a segment", good, produced(func(p *Policy) { p.SegmentBytes = 10 }), kafka.RecordListTooLarge, "maximum configured segment size of 10.", 0},
		{"offset range", altered(good, put32(23, -1)), produced(nil), kafka.InvalidRecord, "Batch has an invalid offset range: [0, -1] in topic partition orders-3", 0},
		{"count", altered(good, put32(57, 0)), produced(nil), kafka.InvalidRecord, "Invalid reported count for record batch: 0", 0},
		{"range and count", altered(good, put32(57, 3)), produced(nil), kafka.InvalidRecord, "Inconsistent batch offset range [0, 1] and count of records 3", 0},
		{"control", altered(good, func(b Batch) { b[22] |= controlBit }), produced(nil), kafka.InvalidRecord, "Clients are not allowed to write control records", 0},
		{"no sequence", altered(good, put32(53, -1)), produced(nil), kafka.InvalidRecord, "Invalid sequence number -1 in record batch with producerId 42", 0},
		{"codec 7", altered(good, func(b Batch) { b[22] |= 7 }), produced(nil), kafka.UnsupportedCompressionType, "Unknown compression type id: 7", 0},
		{"null keys", old, produced(compact), kafka.InvalidRecord, "One or more records have been rejected due to 2 record errors in total, and only showing the " +
			"first three errors at most: [RecordError(batchIndex=1, message='Compacted topic cannot accept message without key in topic partition orders-3'), ", 2},
		{"null key, folded", build(CodecLZ4, some[0], some[1]), produced(compact), kafka.InvalidRecord, "due to 1 record errors", 1},
		{"too late", old, produced(nil), kafka.InvalidTimestamp, "One or more records have been rejected due to invalid timestamp", 1},
		{"too late, folded", build(CodecSnappy, some[0], Record{Timestamp: now + 4000000}), produced(nil), kafka.InvalidTimestamp, "due to invalid timestamp", 1},
		{"too old", old, produced(func(p *Policy) { p.BeforeMax = 1000; p.AfterMax = math.MaxInt64 }), kafka.InvalidTimestamp, "due to invalid timestamp", 1},
		{"client sets append time", altered(good, func(b Batch) { b[22] |= appendTimeBit }), produced(nil), kafka.InvalidTimestamp, "due to invalid timestamp", 2},
		{"bytes left over", altered(append(bytes.Clone(good), 0), put32(8, int32(len(good)+1-12))), produced(nil), kafka.InvalidRecord,
			"Incorrect declared batch size, records still remaining in file", 0},
		{"record beyond the end", altered(good, func(b Batch) { b[HeaderSize] = 100 }), produced(nil), kafka.InvalidRecord,
			"Invalid record size: expected 50 bytes in record payload, but instead the buffer has only", 0},
		{"record too long for its fields", altered(good, func(b Batch) { b[HeaderSize] += 2 }), produced(nil), kafka.InvalidRecord,
			"Invalid record size: expected to read 9 bytes in record payload, but instead read 8", 0},
		{"payload is no gzip", altered(good, func(b Batch) { b[22] |= byte(CodecGzip) }), produced(compact), kafka.CorruptMessage, "unfolding", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v Validator
			_, r := v.Validate(c.batch, c.policy, now)
			if r == nil {
				t.Fatal("let pass")
			}
			if r.Code != c.code || !strings.Contains(r.Message, c.message) || len(r.Records) != c.records {
				t.Errorf("refused with %v and %d record errors, want %v: …%s… and %d", r, len(r.Records), c.code, c.message, c.records)
			}
		})
	}
}

func TestARefusalSaysWhetherTheRequestOrTheBatchIsWrong(t *testing.T) {
	good := build(CodecNone, some[0])
	var v Validator
	for _, c := range []struct {
		name    string
		batch   []byte
		request bool
	}{
		{"no batch", nil, true},
		{"two batches", append(bytes.Clone(good), good...), true},
		{"base offset", altered(good, func(b Batch) { b.Stamp(5, 0) }), false},
		{"late", build(CodecNone, Record{Timestamp: now + 4000000}), false},
	} {
		if _, r := v.Validate(c.batch, produced(nil), now); r == nil || r.Request != c.request {
			t.Errorf("%s: %+v, want of the request: %t", c.name, r, c.request)
		}
	}
}

func TestValidateNamesTheRecord(t *testing.T) {
	b := build(CodecNone, some[0], Record{Timestamp: now + 3600001})
	var v Validator
	_, r := v.Validate(b, produced(nil), now)
	want := RecordError{1, fmt.Sprintf("Timestamp %d of message with offset 1 is out of range. The timestamp should be within [%d, %d]",
		now+3600001, now-math.MaxInt64, now+3600000)}
	if r == nil || len(r.Records) != 1 || r.Records[0] != want {
		t.Errorf("refused with %+v, want %+v", r, want)
	}
}

func TestRefusalListsABoundedNumberOfRecords(t *testing.T) {
	w := Builder{}
	for range maxRecordErrors + 5 {
		w.Add(Record{Timestamp: now})
	}
	var v Validator
	_, r := v.Validate(w.AppendTo(nil), produced(func(p *Policy) { p.KeyRequired = true }), now)
	if r == nil || len(r.Records) != maxRecordErrors || !strings.Contains(r.Message, "due to 1005 record errors") {
		t.Errorf("%d record errors, %v", len(r.Records), r)
	}
}

func TestGoodBatchPassesInPlace(t *testing.T) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		b := build(codec, some[0], some[1], some[3])
		before := bytes.Clone(b)
		var v Validator
		got, r := v.Validate(append(b, 1, 2, 3), produced(nil), now)
		if r != nil || !bytes.Equal(got, before) {
			t.Errorf("%v: changed or refused: %v", codec, r)
		}
	}
}

func TestMaxTimestampIsMadeTrue(t *testing.T) {
	b := altered(build(CodecNone, some[0], some[1]), func(b Batch) { binary.BigEndian.PutUint64(b[35:], 3) })
	var v Validator
	got, r := v.Validate(b, produced(nil), now)
	if r != nil || got.MaxTimestamp() != now || !got.ValidCRC() {
		t.Errorf("%v, max timestamp %d, crc %t; want %d", r, got.MaxTimestamp(), got.ValidCRC(), now)
	}
}

func TestAppendTimeIsStampedWithoutUnfolding(t *testing.T) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		var v Validator
		got, r := v.Validate(build(codec, some[0], some[2]), produced(func(p *Policy) { p.LogAppendTime = true }), now+77)
		if r != nil || !got.LogAppendTime() || got.MaxTimestamp() != now+77 || !got.ValidCRC() {
			t.Fatalf("%v: %v, max timestamp %d", codec, r, got.MaxTimestamp())
		}
		if codec != CodecNone && v.Decompressor.buf != nil {
			t.Errorf("%v: unfolded", codec)
		}
		if rs := list(t, got); rs[1].Timestamp != now+77 {
			t.Errorf("%v: record has %d", codec, rs[1].Timestamp)
		}
	}
}

func TestTopicsCodecIsApplied(t *testing.T) {
	for from := CodecNone; from <= CodecZstd; from++ {
		for to := CodecNone; to <= CodecZstd; to++ {
			b := build(from, some[0], some[1], some[3])
			want := list(t, b)
			var v Validator
			got, r := v.Validate(b, produced(func(p *Policy) { p.TargetCodec = to }), now)
			if r != nil || got.Codec() != to || !got.ValidCRC() || got.ProducerID() != 42 || got.BaseSequence() != 7 {
				t.Fatalf("%v to %v: %v, %v", from, to, got, r)
			}
			if fmt.Sprint(list(t, got)) != fmt.Sprint(want) {
				t.Errorf("%v to %v: other records", from, to)
			}
		}
	}
}

func TestRewrittenBatchIsMeasuredAgain(t *testing.T) {
	b := build(CodecGzip, some[2])
	var v Validator
	_, r := v.Validate(b, produced(func(p *Policy) { p.TargetCodec = CodecNone; p.MaxBytes = 10000; p.AfterMax = 1 << 41 }), now)
	if r == nil || r.Code != kafka.MessageTooLarge || !strings.Contains(r.Message, "Message batch size is") {
		t.Errorf("%v, want MESSAGE_TOO_LARGE", r)
	}
}

func TestOffsetsWithGapsAreMadeDense(t *testing.T) {
	b := build(CodecNone, some[0], some[0])
	second := HeaderSize + 1 + int(b[HeaderSize]>>1)
	b = altered(b, func(b Batch) { b[second+3] = 2 * 7 }) // its offset delta
	var v Validator
	got, r := v.Validate(b, produced(nil), now)
	if r != nil {
		t.Fatal(r)
	}
	if rs := list(t, got); len(rs) != 2 || rs[1].Offset != 1 {
		t.Errorf("records %+v, want offsets 0 and 1", rs)
	}
}

func TestBrokersOwnBatchesPass(t *testing.T) {
	b := Batch(AppendEndTxn(nil, Producer{ID: 9, Epoch: 2}, EndTxnMarker{}, now))
	b.Stamp(1000, 3)
	var v Validator
	p := produced(func(p *Policy) { p.FromCoordinator = true; p.KeyRequired = true; p.TargetCodec = CodecZstd })
	if got, r := v.Validate(b, p, now); r != nil || got.Codec() != CodecNone {
		t.Errorf("%v, %v", got, r)
	}
}

func TestPlainPathDoesNotAllocate(t *testing.T) {
	b := filled(100, CodecNone)
	p := produced(nil)
	var v Validator
	if n := testing.AllocsPerRun(100, func() { v.Validate(b, p, now) }); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}
