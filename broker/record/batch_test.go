package record

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// some are records with every shape of field.
var some = []Record{
	{Timestamp: now, Key: []byte("k"), Value: []byte("v")},
	{Timestamp: now - 7, Key: nil, Value: nil},
	{Timestamp: now + 1<<40, Key: []byte{}, Value: bytes.Repeat([]byte("long "), 4000)},
	{Timestamp: now, Key: bytes.Repeat([]byte("key"), 50), Value: []byte{}, Headers: []Header{{[]byte("h"), nil}, {[]byte{}, []byte("x")}}},
}

func build(codec Codec, records ...Record) Batch {
	w := Builder{Codec: codec, Producer: &Producer{ID: 42, Epoch: 3, Sequence: 7}}
	for _, r := range records {
		w.Add(r)
	}
	return w.AppendTo(nil)
}

// list copies a batch's records out.
func list(t *testing.T, b Batch) []Record {
	t.Helper()
	var d Decompressor
	var out []Record
	it := b.Records(&d)
	var r Record
	for it.Next(&r) {
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		r.Headers = append([]Header(nil), r.Headers...)
		for i, h := range r.Headers {
			r.Headers[i] = Header{bytes.Clone(h.Key), bytes.Clone(h.Value)}
		}
		out = append(out, r)
	}
	if err := it.Err(); err != nil {
		t.Fatalf("walking %v: %v", b, err)
	}
	return out
}

func TestBuiltBatchReadsBack(t *testing.T) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		t.Run(codec.String(), func(t *testing.T) {
			b, rest, err := Parse(append(build(codec, some...), "rest"...))
			if err != nil || string(rest) != "rest" {
				t.Fatalf("Parse: rest %q, %v", rest, err)
			}
			if !b.ValidCRC() || b.Codec() != codec || b.Count() != 4 || b.LastOffset() != 3 || b.NextOffset() != 4 {
				t.Fatalf("header: %v, crc %t", b, b.ValidCRC())
			}
			if b.BaseTimestamp() != now || b.MaxTimestamp() != now+1<<40 || b.LastSequence() != 10 {
				t.Fatalf("base %d max %d last sequence %d", b.BaseTimestamp(), b.MaxTimestamp(), b.LastSequence())
			}
			got := list(t, b)
			for i := range some {
				want := some[i]
				want.Offset = kafka.Offset(i)
				if len(want.Headers) == 0 {
					got[i].Headers = nil
				}
				if !reflect.DeepEqual(got[i], want) {
					t.Errorf("record %d = %+v, want %+v", i, got[i], want)
				}
			}
		})
	}
}

func TestBuilderWritesWhatKmsgReads(t *testing.T) {
	b := build(CodecNone, some...)
	b.Stamp(1234567890123, 17)
	var k kmsg.RecordBatch
	if err := k.ReadFrom(b); err != nil {
		t.Fatal(err)
	}
	if k.FirstOffset != 1234567890123 || k.PartitionLeaderEpoch != 17 || k.NumRecords != 4 || k.ProducerID != 42 ||
		k.ProducerEpoch != 3 || k.FirstSequence != 7 || k.FirstTimestamp != now || k.MaxTimestamp != now+1<<40 {
		t.Fatalf("kmsg reads %+v", k)
	}
	if !bytes.Equal(k.AppendTo(nil), b) {
		t.Fatal("kmsg writes another batch than it read")
	}
	rest := k.Records
	for i, want := range some {
		var r kmsg.Record
		n, w := varint(rest)
		if err := r.ReadFrom(rest[:w+int(n)]); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		rest = rest[w+int(n):]
		if !bytes.Equal(r.Key, want.Key) || !bytes.Equal(r.Value, want.Value) || len(r.Headers) != len(want.Headers) ||
			(r.Key == nil) != (want.Key == nil) || now+r.TimestampDelta64 != want.Timestamp {
			t.Errorf("record %d: kmsg reads %+v", i, r)
		}
	}
}

func TestParseTellsTornFromCorrupt(t *testing.T) {
	whole := build(CodecNone, some...)
	for n := range len(whole) {
		if _, _, err := Parse(whole[:n]); !errors.Is(err, ErrShort) {
			t.Fatalf("cut at %d of %d: %v, want ErrShort", n, len(whole), err)
		}
	}
	var corrupt *CorruptError
	for _, length := range []int32{-1, 0, 48} {
		b := bytes.Clone(whole)
		b[8], b[9], b[10], b[11] = byte(length>>24), byte(length>>16), byte(length>>8), byte(length)
		if _, _, err := Parse(b); !errors.As(err, &corrupt) {
			t.Errorf("length %d: %v, want *CorruptError", length, err)
		}
	}
	whole[16] = 1
	if _, _, err := Parse(whole); !errors.As(err, &corrupt) {
		t.Errorf("magic 1: %v, want *CorruptError", err)
	}
}

func TestStampLeavesTheChecksumAlone(t *testing.T) {
	b := build(CodecNone, some...)
	sum := b.CRC()
	b.Stamp(1<<40, 9)
	if b.CRC() != sum || !b.ValidCRC() || b.BaseOffset() != 1<<40 || b.LeaderEpoch() != 9 {
		t.Fatalf("after Stamp: %v, crc %t", b, b.ValidCRC())
	}
	b.SetMaxTimestamp(5, true)
	if b.CRC() == sum || !b.ValidCRC() || b.MaxTimestamp() != 5 || !b.LogAppendTime() {
		t.Fatalf("after SetMaxTimestamp: max %d, append time %t, crc %t", b.MaxTimestamp(), b.LogAppendTime(), b.ValidCRC())
	}
	if r := list(t, b); r[1].Timestamp != 5 {
		t.Errorf("with log append time a record has %d, want 5", r[1].Timestamp)
	}
}

func TestEveryFlippedBitBreaksTheChecksum(t *testing.T) {
	b := build(CodecNone, some[0], some[1])
	for i := 17; i < len(b); i++ {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if b.ValidCRC() {
				t.Fatalf("bit %d of byte %d flipped: checksum still holds", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
}

func TestSequencesGoRound(t *testing.T) {
	for _, c := range []struct{ s, n, want int32 }{
		{0, 0, 0}, {1<<31 - 1, 0, 1<<31 - 1}, {1<<31 - 1, 1, 0}, {1<<31 - 3, 5, 2},
	} {
		if got := AddSequence(c.s, c.n); got != c.want {
			t.Errorf("AddSequence(%d, %d) = %d, want %d", c.s, c.n, got, c.want)
		}
	}
}

func TestBombIsNotUnfolded(t *testing.T) {
	zeros := Record{Timestamp: now, Value: make([]byte, 64<<20)}
	for codec := CodecGzip; codec <= CodecZstd; codec++ {
		b := build(codec, zeros)
		d := Decompressor{Max: 1 << 20}
		var r Record
		it := b.Records(&d)
		if it.Next(&r) || !errors.Is(it.Err(), ErrTooBig) {
			t.Errorf("%v: %d bytes that unfold to 64 MiB: %v, want ErrTooBig", codec, len(b), it.Err())
		}
		if cap(d.buf) > 4<<20 {
			t.Errorf("%v: %d bytes allocated under a bound of 1 MiB", codec, cap(d.buf))
		}
	}
}

func TestMarkerReadsBack(t *testing.T) {
	for _, commit := range []bool{false, true} {
		m := EndTxnMarker{Commit: commit, CoordinatorEpoch: 77}
		b := Batch(AppendEndTxn(nil, Producer{ID: 9, Epoch: 2}, m, now))
		if !b.Control() || !b.Transactional() || b.BaseSequence() != -1 || b.ProducerEpoch() != 2 || !b.ValidCRC() {
			t.Fatalf("marker's batch: %v", b)
		}
		got, ok, err := b.EndTxn()
		if err != nil || !ok || got != m {
			t.Errorf("EndTxn = %+v, %t, %v; want %+v", got, ok, err, m)
		}
	}
}

func TestLevelsReadBack(t *testing.T) {
	for _, c := range []struct {
		codec  Codec
		levels []int
	}{{CodecGzip, []int{1, 6, 9}}, {CodecLZ4, []int{1, 9, 17}}, {CodecZstd, []int{1, 3, 22}}} {
		w := Builder{Codec: c.codec}
		for _, level := range c.levels {
			w.Reset()
			w.Level = level
			w.Add(some[2])
			if got := list(t, w.AppendTo(nil)); !bytes.Equal(got[0].Value, some[2].Value) {
				t.Errorf("%v at level %d: value of %d bytes, want %d", c.codec, level, len(got[0].Value), len(some[2].Value))
			}
		}
	}
}

func TestCodecNames(t *testing.T) {
	for c := CodecProducer; c <= CodecZstd; c++ {
		if got, err := ParseCodec(c.String()); err != nil || got != c {
			t.Errorf("ParseCodec(%q) = %v, %v", c.String(), got, err)
		}
	}
	if _, err := ParseCodec("brotli"); err == nil {
		t.Error("brotli is taken for a codec")
	}
}

func ExampleBuilder() {
	w := Builder{Codec: CodecZstd, BaseOffset: 42}
	w.Add(Record{Timestamp: 1000, Key: []byte("k"), Value: []byte("hello")})
	b, _, _ := Parse(w.AppendTo(nil))

	it := b.Records(nil)
	for r := (Record{}); it.Next(&r); {
		fmt.Printf("%d at %d: %s=%s\n", r.Offset, r.Timestamp, r.Key, r.Value)
	}
	// Output: 42 at 1000: k=hello
}
