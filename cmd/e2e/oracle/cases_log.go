package oracle

import (
	"fmt"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kmsg"

	"bytes"
)

// logCases are the stories of producing, fetching and asking for offsets.
func logCases() []Case {
	return []Case{
		{"produce what is right", produceRight},
		{"produce what is wrong", produceWrong},
		{"produce to a compacted topic", produceCompacted},
		{"produce with idempotence", produceIdempotent},
		{"fetch records", fetchRecords},
		{"fetch what is not there", fetchWrong},
		{"fetch in a session", fetchSession},
		{"list offsets", offsetsOf},
		{"offsets for leader epochs", epochsOf},
	}
}

func produceRight(x *Exchange) {
	x.Topic("produced", 2)
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
	wrong := []struct {
		what    string
		records func() []byte
	}{
		{"empty records", func() []byte { return []byte{} }},
		{"a torn batch", func() []byte { b := batchSpec{}.bytes(); return b[:len(b)-3] }},
		{"half a header", func() []byte { return batchSpec{}.bytes()[:30] }},
		{"a broken checksum", func() []byte { return batchSpec{breakCRC: true}.bytes() }},
		{"magic 1", func() []byte { return batchSpec{magic: 1}.bytes() }},
		{"magic 3", func() []byte { return batchSpec{magic: 3}.bytes() }},
		{"two batches", func() []byte { return append(batchSpec{}.bytes(), batchSpec{}.bytes()...) }},
		{"a batch and rubbish", func() []byte { return append(batchSpec{}.bytes(), 1, 2, 3) }},
		{"a base offset of 7", func() []byte { return batchSpec{base: 7}.bytes() }},
		{"a control batch", func() []byte { return batchSpec{attributes: 1 << 5, pid: 9}.bytes() }},
		{"too large", func() []byte { return batchSpec{values: []string{strings.Repeat("x", 3000)}}.bytes() }},
		{"a count of 5 for one record", func() []byte { return batchSpec{count: 5}.bytes() }},
		{"a count of 5 and a delta of 4 for one record", func() []byte { return batchSpec{count: 5, lastOffset: 4}.bytes() }},
		{"a last offset delta of 9", func() []byte { return batchSpec{lastOffset: 9}.bytes() }},
		{"a time far ahead", func() []byte { return batchSpec{timestamp: stamp + 1000*3600*24*30}.bytes() }},
		{"log append time from a client", func() []byte { return batchSpec{attributes: 1 << 3}.bytes() }},
		{"codec 7", func() []byte { return batchSpec{attributes: 7}.bytes() }},
		{"gzip that is not gzip", func() []byte { return batchSpec{attributes: 1}.bytes() }},
		{"a producer id without sequence", func() []byte { return batchSpec{pid: 5, seq: -1}.bytes() }},
	}
	x.Each(0, func(v int16) {
		if v < 3 {
			return
		}
		for _, w := range wrong {
			x.Ask(w.what, func(s *Side) kmsg.Request { return produce(s, v, "refused", 0, w.records()) })
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
	x.Ask("null records", func(s *Side) kmsg.Request { return produce(s, 9, "refused", 0, nil) })
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
	producerID := func(v int16) *kmsg.InitProducerIDRequest {
		req := at(v, kmsg.NewPtrInitProducerIDRequest())
		req.TransactionTimeoutMillis = 60_000
		req.ProducerID, req.ProducerEpoch = -1, -1
		return req
	}
	x.Eventually("a first producer id", same(func() kmsg.Request { return producerID(4) }), func(resp kmsg.Response) bool {
		return resp.(*kmsg.InitProducerIDResponse).ErrorCode == 0
	})
	x.Each(22, func(v int16) {
		x.Ask("a producer id", same(func() kmsg.Request { return producerID(v) }))
	})
}

func fetchRecords(x *Exchange) {
	x.Topic("fetched", 1)
	for i := range 5 {
		x.Ask("produce", func(s *Side) kmsg.Request {
			return produce(s, 9, "fetched", 0, batchSpec{values: []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}}.bytes())
		})
	}
	x.Each(1, func(v int16) {
		for _, offset := range []int64{0, 1, 4, 9, 10, 11, -1, 1 << 40} {
			x.Ask(fmt.Sprintf("from %d", offset), func(s *Side) kmsg.Request { return fetch(s, v, "fetched", 0, offset) })
		}
		x.Ask("one byte of each", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetched", 0, 3)
			req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 1, 1
			return req
		})
		x.Ask("zero bytes", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetched", 0, 0)
			req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 0, 0
			return req
		})
		x.Ask("a batch and a half", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetched", 0, 0)
			req.Topics[0].Partitions[0].PartitionMaxBytes = 130
			return req
		})
		x.Ask("read committed", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetched", 0, 0)
			req.IsolationLevel = 1
			return req
		})
		x.Ask("isolation level 2", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetched", 0, 10)
			req.IsolationLevel = 2
			return req
		})
		for _, epoch := range []int32{0, 5, -2} {
			x.Ask(fmt.Sprintf("current leader epoch %d", epoch), func(s *Side) kmsg.Request {
				req := fetch(s, v, "fetched", 0, 0)
				req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
				return req
			})
		}
		x.Ask("last fetched epoch 0", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetched", 0, 8)
			req.Topics[0].Partitions[0].LastFetchedEpoch = 0
			return req
		})
		x.Ask("last fetched epoch 7", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetched", 0, 8)
			req.Topics[0].Partitions[0].LastFetchedEpoch = 7
			return req
		})
	})
}

func fetchWrong(x *Exchange) {
	x.Topic("fetchwrong", 1)
	x.Each(1, func(v int16) {
		x.Ask("an empty log", func(s *Side) kmsg.Request { return fetch(s, v, "fetchwrong", 0, 0) })
		x.Ask("an empty log from 5", func(s *Side) kmsg.Request { return fetch(s, v, "fetchwrong", 0, 5) })
		x.Ask("a partition that is not there", func(s *Side) kmsg.Request { return fetch(s, v, "fetchwrong", 7, 0) })
		x.Ask("a topic that is not there", func(s *Side) kmsg.Request { return fetch(s, v, "fetchnowhere", 0, 0) })
		x.Ask("nothing", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetchwrong", 0, 0)
			req.Topics = nil
			return req
		})
		x.Ask("the same partition twice", func(s *Side) kmsg.Request {
			req := fetch(s, v, "fetchwrong", 0, 0)
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, req.Topics[0].Partitions[0])
			return req
		})
	})
}

func fetchSession(x *Exchange) {
	x.Topic("session", 3)
	x.Each(1, func(v int16) {
		if v < 7 {
			return
		}
		open := func(s *Side) kmsg.Request {
			req := fetch(s, v, "session", 0, 0)
			req.SessionEpoch = 0
			for p := int32(1); p < 3; p++ {
				next := req.Topics[0].Partitions[0]
				next.Partition = p
				req.Topics[0].Partitions = append(req.Topics[0].Partitions, next)
			}
			return req
		}
		name := fmt.Sprintf("session of v%d", v)
		x.Learn("open", open, func(s *Side, resp kmsg.Response) { s.Learn(name, resp.(*kmsg.FetchResponse).SessionID) })
		next := func(epoch int32, partitions ...int32) func(*Side) kmsg.Request {
			return func(s *Side) kmsg.Request {
				req := fetch(s, v, "session", 0, 0)
				req.SessionID, req.SessionEpoch = Learned[int32](s, name), epoch
				whole := req.Topics[0]
				req.Topics = nil
				for _, p := range partitions {
					t := whole
					t.Partitions = []kmsg.FetchRequestTopicPartition{whole.Partitions[0]}
					t.Partitions[0].Partition = p
					req.Topics = append(req.Topics, t)
				}
				return req
			}
		}
		x.Ask("nothing new", next(1))
		x.Ask("produce", func(s *Side) kmsg.Request { return produce(s, 9, "session", 1, batchSpec{}.bytes()) })
		x.Ask("one partition has data", next(2))
		x.Ask("the same data again", next(3))
		x.Ask("a wrong epoch", next(9))
		x.Ask("forget partition 1", func(s *Side) kmsg.Request {
			req := next(4)(s).(*kmsg.FetchRequest)
			f := kmsg.NewFetchRequestForgottenTopic()
			f.Topic, f.TopicID, f.Partitions = "session", topicID(s, "session"), []int32{1}
			req.ForgottenTopics = append(req.ForgottenTopics, f)
			return req
		})
		x.Ask("and it is forgotten", next(5))
		x.Ask("close", next(-1))
		x.Ask("after the close", next(6))
		x.Ask("a session that never was", func(s *Side) kmsg.Request {
			req := next(1)(s).(*kmsg.FetchRequest)
			req.SessionID = 1
			return req
		})
	})
}

func offsetsOf(x *Exchange) {
	x.Topic("offsets", 2)
	for i := range int64(4) {
		x.Ask("produce", func(s *Side) kmsg.Request {
			return produce(s, 9, "offsets", 0, batchSpec{timestamp: stamp + i*1000, values: []string{"a", "b"}}.bytes())
		})
	}
	x.Each(2, func(v int16) {
		for _, ts := range []int64{-1, -2, -3, -4, -5, -6, -7, 0, stamp, stamp + 1, stamp + 3000, stamp + 3001} {
			step := fmt.Sprintf("timestamp %d", ts)
			if ts >= stamp {
				step = fmt.Sprintf("timestamp +%d", ts-stamp)
			}
			x.Ask(step, same(func() kmsg.Request { return listOffsets(v, "offsets", 0, ts) }))
		}
		x.Ask("an empty partition by time", same(func() kmsg.Request { return listOffsets(v, "offsets", 1, stamp) }))
		x.Ask("an empty partition's latest", same(func() kmsg.Request { return listOffsets(v, "offsets", 1, -1) }))
		x.Ask("an empty partition's maximum", same(func() kmsg.Request { return listOffsets(v, "offsets", 1, -3) }))
		x.Ask("read committed", same(func() kmsg.Request {
			req := listOffsets(v, "offsets", 0, -1)
			req.IsolationLevel = 1
			return req
		}))
		x.Ask("a partition that is not there", same(func() kmsg.Request { return listOffsets(v, "offsets", 5, -1) }))
		x.Ask("a topic that is not there", same(func() kmsg.Request { return listOffsets(v, "nooffsets", 0, -1) }))
		for _, epoch := range []int32{0, 3} {
			x.Ask(fmt.Sprintf("current leader epoch %d", epoch), same(func() kmsg.Request {
				req := listOffsets(v, "offsets", 0, -1)
				req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
				return req
			}))
		}
	})
}

func epochsOf(x *Exchange) {
	x.Topic("epochs", 1)
	x.Ask("produce", func(s *Side) kmsg.Request { return produce(s, 9, "epochs", 0, batchSpec{}.bytes()) })
	x.Each(23, func(v int16) {
		ask := func(step, topic string, partition, current, epoch int32) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrOffsetForLeaderEpochRequest())
				req.ReplicaID = -1
				t := kmsg.NewOffsetForLeaderEpochRequestTopic()
				t.Topic = topic
				p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
				p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = partition, current, epoch
				t.Partitions = append(t.Partitions, p)
				req.Topics = append(req.Topics, t)
				return req
			}))
		}
		for _, epoch := range []int32{-1, 0, 1, 9} {
			ask(fmt.Sprintf("epoch %d", epoch), "epochs", 0, -1, epoch)
		}
		ask("an older current epoch", "epochs", 0, -2, 0)
		ask("a newer current epoch", "epochs", 0, 4, 0)
		ask("a partition that is not there", "epochs", 3, -1, 0)
		ask("a topic that is not there", "noepochs", 0, -1, 0)
	})
}
