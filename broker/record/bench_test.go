package record

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	kp "github.com/klauspost/crc32"

	"varve/broker/kafka"
)

// filled builds a batch of about 16 KiB of records with values of size bytes.
func filled(size int, codec Codec) Batch {
	rng := rand.New(rand.NewPCG(1, 2))
	w := Builder{Codec: codec, Producer: &Producer{ID: 1000, Epoch: 0, Sequence: 0}}
	value := make([]byte, size)
	for i := range value {
		value[i] = byte('a' + rng.IntN(26))
	}
	for i := 0; w.Size()+size+10 < 16<<10; i++ {
		w.Add(Record{Timestamp: now + int64(i/10), Value: value})
	}
	return w.AppendTo(nil)
}

const now = int64(1_700_000_000_000)

var bench = kafka.TopicPartition{Topic: "orders", Partition: 3}

// How much does checking a produced batch cost above its checksum?
func BenchmarkValidate(b *testing.B) {
	for _, size := range []int{100, 1024} {
		batch := filled(size, CodecNone)
		p := DefaultPolicy(bench)
		p.ProduceVersion = 13
		b.Run(fmt.Sprintf("plain/%dB", size), func(b *testing.B) {
			var v Validator
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				if _, r := v.Validate(batch, p, now); r != nil {
					b.Fatal(r)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batch.Count()), "ns/record")
		})
		b.Run(fmt.Sprintf("crc/%dB", size), func(b *testing.B) {
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				if !batch.ValidCRC() {
					b.Fatal("checksum")
				}
			}
		})
		b.Run(fmt.Sprintf("walk/%dB", size), func(b *testing.B) {
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				if f := walk(batch.payload(), batch.Count(), batch.BaseTimestamp()); !f.whole {
					b.Fatal("walk")
				}
			}
		})
	}
	for codec := CodecGzip; codec <= CodecZstd; codec++ {
		batch := filled(100, codec)
		p := DefaultPolicy(bench)
		p.ProduceVersion, p.KeyRequired = 13, false
		p.BeforeMax = 1 << 40 // asks for a look at every record
		b.Run("unfold/"+codec.String(), func(b *testing.B) {
			var v Validator
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				if _, r := v.Validate(batch, p, now); r != nil {
					b.Fatal(r)
				}
			}
		})
	}
}

// Is the standard library's CRC32C still as fast as klauspost's?
func BenchmarkCRC(b *testing.B) {
	data := filled(1024, CodecNone)
	table := kp.MakeTable(kp.Castagnoli)
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			crc32.Checksum(data, castagnoli)
		}
	})
	b.Run("klauspost", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			kp.Checksum(data, table)
		}
	})
}

// What does walking records for a reader cost?
func BenchmarkRecords(b *testing.B) {
	batch := filled(100, CodecNone)
	b.ReportAllocs()
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		it := batch.Records(nil)
		var r Record
		n := int32(0)
		for it.Next(&r) {
			n++
		}
		if n != batch.Count() {
			b.Fatal(it.Err())
		}
	}
}

// What does building a batch cost, per codec?
func BenchmarkBuilder(b *testing.B) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		b.Run(codec.String(), func(b *testing.B) {
			w := Builder{Codec: codec}
			value := make([]byte, 100)
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				w.Reset()
				for i := range 150 {
					w.Add(Record{Timestamp: now + int64(i), Value: value})
				}
				dst = w.AppendTo(dst[:0])
			}
		})
	}
}
