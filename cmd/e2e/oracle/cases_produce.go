package oracle

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// produceCases are the stories of producing.
func produceCases() []Case {
	return []Case{
		{"produce what is right", produceRight},
		{"produce what is wrong", produceWrong},
		{"produce to a compacted topic", produceCompacted},
		{"produce with idempotence", produceIdempotent},
		{"produce without an answer", produceSilent},
		{"produce what is compressed anew", produceRecompressed},
	}
}

func produceRight(x *Exchange) {
	x.Topic("produced", 2)
	x.Topic("twice", 2)
	x.Each(0, func(v int16) {
		if v < 3 {
			return
		}
		x.Ask("one record", func(s *Side) kmsg.Request { return produce(s, v, "produced", 0, batchSpec{}.bytes()) })
		x.Ask("many records", func(s *Side) kmsg.Request {
			return produce(s, v, "produced", 1, batchSpec{values: strings.Split("a b c d e f", " ")}.bytes())
		})
		x.Ask("two partitions", func(s *Side) kmsg.Request {
			req := produce(s, v, "produced", 0, batchSpec{}.bytes())
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition, p.Records = 1, batchSpec{}.bytes()
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
			return req
		})
		x.Ask("a partition twice", func(s *Side) kmsg.Request {
			req := produce(s, v, "twice", 0, batchSpec{}.bytes())
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, req.Topics[0].Partitions[0])
			return req
		})
		x.Ask("a topic twice", func(s *Side) kmsg.Request {
			req := produce(s, v, "twice", 0, batchSpec{}.bytes())
			req.Topics = append(req.Topics, produce(s, v, "twice", 1, batchSpec{}.bytes()).Topics...)
			return req
		})
		x.Ask("good and bad ones", func(s *Side) kmsg.Request {
			req := produce(s, v, "produced", 0, batchSpec{}.bytes())
			for p, b := range [][]byte{batchSpec{breakCRC: true}.bytes(), batchSpec{}.bytes()} {
				q := kmsg.NewProduceRequestTopicPartition()
				q.Partition, q.Records = int32(1+6*p), b
				req.Topics[0].Partitions = append(req.Topics[0].Partitions, q)
			}
			return req
		})
		x.Ask("acks=1", func(s *Side) kmsg.Request {
			req := produce(s, v, "produced", 0, batchSpec{}.bytes())
			req.Acks = 1
			return req
		})
		x.Ask("gzip", func(s *Side) kmsg.Request {
			return produce(s, v, "produced", 0, batchSpec{attributes: 1, compression: gzipped}.bytes())
		})
		x.Ask("zstd", func(s *Side) kmsg.Request {
			return produce(s, v, "produced", 0, batchSpec{attributes: 4, compression: zstdded}.bytes())
		})
	})
	x.Topic("appendtime", 1, "message.timestamp.type", "LogAppendTime")
	x.Ask("log append time", func(s *Side) kmsg.Request { return produce(s, 9, "appendtime", 0, batchSpec{}.bytes()) })
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func zstdded(b []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(b, nil)
}

func produceWrong(x *Exchange) {
	x.Topic("refused", 1, "max.message.bytes", "2000")
	x.Topic("parted", 1)
	wrong := []struct {
		what    string
		records func() []byte
		parts   bool // one side takes it: elsewhere, so that what follows can be compared
	}{
		{"empty records", func() []byte { return []byte{} }, false},
		{"a torn batch", func() []byte { b := batchSpec{}.bytes(); return b[:len(b)-3] }, false},
		{"half a header", func() []byte { return batchSpec{}.bytes()[:30] }, false},
		{"a broken checksum", func() []byte { return batchSpec{breakCRC: true}.bytes() }, false},
		{"magic 1", func() []byte { return batchSpec{magic: 1}.bytes() }, false},
		{"magic 3", func() []byte { return batchSpec{magic: 3}.bytes() }, false},
		{"two batches", func() []byte { return append(batchSpec{}.bytes(), batchSpec{}.bytes()...) }, false},
		{"a batch and rubbish", func() []byte { return append(batchSpec{}.bytes(), 1, 2, 3) }, false},
		{"a base offset of 7", func() []byte { return batchSpec{base: 7}.bytes() }, false},
		{"a control batch", func() []byte { return batchSpec{attributes: 1 << 5, pid: 9}.bytes() }, false},
		{"too large", func() []byte { return batchSpec{values: []string{strings.Repeat("x", 3000)}}.bytes() }, false},
		{"a count of 5 for one record", func() []byte { return batchSpec{count: 5}.bytes() }, false},
		{"a count of 5 and a delta of 4 for one record", func() []byte { return batchSpec{count: 5, lastOffset: 4}.bytes() }, false},
		{"a last offset delta of 9", func() []byte { return batchSpec{lastOffset: 9}.bytes() }, false},
		{"a time far ahead", func() []byte { return batchSpec{timestamp: stamp + 1000*3600*24*30}.bytes() }, false},
		{"log append time from a client", func() []byte { return batchSpec{attributes: 1 << 3}.bytes() }, true},
		{"a length below a header", func() []byte { return altered(8, 0, 0, 0, 20) }, false},
		{"a negative length", func() []byte { return altered(8, 0xff, 0xff, 0xff, 0xf0) }, false},
		{"a huge length", func() []byte { return altered(8, 0x7f, 0xff, 0xff, 0xff) }, false},
		{"no records in a batch", func() []byte { return batchSpec{values: []string{}}.bytes() }, false},
		{"a time before 1970", func() []byte { return batchSpec{timestamp: -2}.bytes() }, false},
		{"a delete horizon", func() []byte { return batchSpec{attributes: 1 << 6}.bytes() }, false},
		{"unused attributes", func() []byte { return batchSpec{attributes: 1 << 9}.bytes() }, false},
		{"codec 7", func() []byte { return batchSpec{attributes: 7}.bytes() }, false},
		{"gzip that is not gzip", func() []byte { return batchSpec{attributes: 1}.bytes() }, true},
		{"a producer id without sequence", func() []byte { return batchSpec{pid: 5, seq: -1}.bytes() }, false},
	}
	x.Each(0, func(v int16) {
		if v < 3 {
			return
		}
		for _, w := range wrong {
			topic := "refused"
			if w.parts {
				topic = "parted"
			}
			x.Ask(w.what, func(s *Side) kmsg.Request { return produce(s, v, topic, 0, w.records()) })
		}
		x.Ask("acks=2", func(s *Side) kmsg.Request {
			req := produce(s, v, "refused", 0, batchSpec{}.bytes())
			req.Acks = 2
			return req
		})
		x.Ask("a partition that is not there", func(s *Side) kmsg.Request { return produce(s, v, "refused", 9, batchSpec{}.bytes()) })
		x.Ask("partition -1", func(s *Side) kmsg.Request { return produce(s, v, "refused", -1, batchSpec{}.bytes()) })
		x.Ask("a topic that is not there", func(s *Side) kmsg.Request { return produce(s, v, "nowhere", 0, batchSpec{}.bytes()) })
		x.Ask("an illegal topic", func(s *Side) kmsg.Request { return produce(s, v, "no/where", 0, batchSpec{}.bytes()) })
		x.Ask("no topics", func(s *Side) kmsg.Request {
			req := at(v, kmsg.NewPtrProduceRequest())
			req.Acks = 1
			return req
		})
	})
	x.Kafka.silence = 2 * time.Second // it is known for it
	x.Ask("null records", func(s *Side) kmsg.Request { return produce(s, 9, "refused", 0, nil) })
	x.Kafka.silence = silence
	x.Topic("small", 1, "segment.bytes", "1048576", "min.insync.replicas", "2")
	x.Ask("fewer in sync than asked for", func(s *Side) kmsg.Request { return produce(s, 9, "small", 0, batchSpec{}.bytes()) })
}

func produceCompacted(x *Exchange) {
	x.Topic("compacted", 1, "cleanup.policy", "compact")
	x.Each(0, func(v int16) {
		if v < 3 {
			return
		}
		x.Ask("with keys", func(s *Side) kmsg.Request { return produce(s, v, "compacted", 0, batchSpec{}.bytes()) })
		x.Ask("without keys", func(s *Side) kmsg.Request {
			return produce(s, v, "compacted", 0, batchSpec{noKey: true, values: []string{"a", "b"}}.bytes())
		})
	})
}

func produceIdempotent(x *Exchange) {
	x.Topic("idempotent", 1)
	send := func(step string, epoch int16, seq int32, n int) {
		x.Ask(step, func(s *Side) kmsg.Request {
			return produce(s, 9, "idempotent", 0, batchSpec{pid: 4711, epoch: epoch, seq: seq, values: make([]string, n)}.bytes())
		})
	}
	send("sequence 0", 0, 0, 1)
	send("sequence 0 again", 0, 0, 1)
	send("sequence 1", 0, 1, 3)
	send("sequence 6, a gap", 0, 6, 1)
	for i := range int32(6) {
		send(fmt.Sprintf("sequence %d", 4+i), 0, 4+i, 1)
	}
	send("sequence 5 again, inside the window", 0, 5, 1)
	send("sequence 1 again, before the window", 0, 1, 3)
	send("half of a batch again", 0, 2, 1)
	send("epoch 1 at sequence 5", 1, 5, 1)
	send("epoch 1 at sequence 0", 1, 0, 1)
	send("epoch 0 after epoch 1", 0, 10, 1)
	x.ProducerID()
	x.Each(22, func(v int16) {
		again := func(step string, change func(r *kmsg.InitProducerIDRequest)) {
			x.Ask(step, same(func() kmsg.Request {
				req := initProducerID(v)
				change(req)
				return req
			}))
		}
		again("the empty transactional id", func(r *kmsg.InitProducerIDRequest) { r.TransactionalID = kmsg.StringPtr("") })
		again("no timeout", func(r *kmsg.InitProducerIDRequest) { r.TransactionTimeoutMillis = 0 })
		again("a timeout of a year", func(r *kmsg.InitProducerIDRequest) { r.TransactionTimeoutMillis = 1<<31 - 1 })
		if v >= 3 {
			again("a known producer, by epoch", func(r *kmsg.InitProducerIDRequest) { r.ProducerID, r.ProducerEpoch = 4711, 3 })
			again("an epoch alone", func(r *kmsg.InitProducerIDRequest) { r.ProducerEpoch = 3 })
			again("a producer id alone", func(r *kmsg.InitProducerIDRequest) { r.ProducerID = 4711 })
		}
		again("for transactions", func(r *kmsg.InitProducerIDRequest) { r.TransactionalID = kmsg.StringPtr("payments") })
		x.Ask("a producer id", same(func() kmsg.Request { return initProducerID(v) }))
	})
}

// altered is a valid batch with other bytes at a place before the checksum.
func altered(at int, with ...byte) []byte {
	b := batchSpec{}.bytes()
	copy(b[at:], with)
	return b
}

// produceSilent asks with acks=0: there is no answer, and an error ends the connection.
func produceSilent(x *Exchange) {
	x.Topic("silent", 1, "max.message.bytes", "2000")
	x.Each(0, func(v int16) {
		if v < 3 {
			return
		}
		send := func(step string, partition int32, records []byte) {
			x.Send(step, func(s *Side) kmsg.Request {
				req := produce(s, v, "silent", partition, records)
				req.Acks = 0
				return req
			})
			x.Ask("and then", same(func() kmsg.Request { return listOffsets(4, "silent", 0, -1) }))
		}
		send("a record", 0, batchSpec{}.bytes())
		send("a broken checksum", 0, batchSpec{breakCRC: true}.bytes())
		send("too large", 0, batchSpec{values: []string{strings.Repeat("x", 3000)}}.bytes())
		send("to a partition that is not there", 7, batchSpec{}.bytes())
	})
}

// produceRecompressed is what a topic with a compression of its own makes of batches:
// where records stand is compared, for compressors differ.
func produceRecompressed(x *Exchange) {
	for _, codec := range []string{"gzip", "snappy", "lz4", "zstd", "uncompressed"} {
		topic := "all-" + codec
		x.Topic(topic, 1, "compression.type", codec)
		from := func(name string, spec batchSpec) {
			x.Ask("from "+name, func(s *Side) kmsg.Request { return produce(s, 9, topic, 0, spec.bytes()) })
		}
		two := []string{"a", "b"}
		from("plain", batchSpec{values: two})
		from("gzip", batchSpec{values: two, attributes: 1, compression: gzipped})
		from("zstd", batchSpec{values: two, attributes: 4, compression: zstdded})
		from("a record without a key", batchSpec{noKey: true})
		for _, ts := range []int64{stamp, stamp + 1, -1, -3} {
			x.Ask("where a time stands", same(func() kmsg.Request { return listOffsets(8, topic, 0, ts) }))
		}
		from("rotten", batchSpec{attributes: 1})
		x.Ask("a time beside it", same(func() kmsg.Request { return listOffsets(8, topic, 0, stamp) }))
	}
}
