package oracle

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchCases are the stories of fetching.
func fetchCases() []Case {
	return []Case{
		{"fetch records", fetchRecords},
		{"fetch what is not there", fetchWrong},
		{"fetch in a session", fetchSession},
		{"fetch from several partitions", fetchSeveral},
		{"fetch over the edge of a segment", fetchSegments},
		{"fetch over the edge of the tier", fetchTiered},
	}
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

// fetchSeveral shares the bytes of an answer among partitions and topics.
func fetchSeveral(x *Exchange) {
	x.Topic("several", 3)
	x.Topic("beside", 1)
	for p := range int32(3) {
		for range p + 1 {
			x.Ask("produce", func(s *Side) kmsg.Request {
				return produce(s, 9, "several", p, batchSpec{values: []string{"a", strings.Repeat("b", 200)}}.bytes())
			})
		}
	}
	x.Ask("produce", func(s *Side) kmsg.Request { return produce(s, 9, "beside", 0, batchSpec{}.bytes()) })
	x.Each(1, func(v int16) {
		all := func(s *Side) *kmsg.FetchRequest {
			req := fetch(s, v, "several", 2, 0)
			for _, p := range []int32{0, 1} {
				next := req.Topics[0].Partitions[0]
				next.Partition = p
				req.Topics[0].Partitions = append(req.Topics[0].Partitions, next)
			}
			req.Topics = append(req.Topics, fetch(s, v, "beside", 0, 0).Topics...)
			return req
		}
		ask := func(step string, change func(r *kmsg.FetchRequest)) {
			x.Ask(step, func(s *Side) kmsg.Request {
				req := all(s)
				change(req)
				return req
			})
		}
		ask("everything", func(*kmsg.FetchRequest) {})
		for _, most := range []int32{1, 300, 600, 900} {
			ask(fmt.Sprintf("%d bytes of all", most), func(r *kmsg.FetchRequest) { r.MaxBytes = most })
			ask(fmt.Sprintf("%d bytes of each", most), func(r *kmsg.FetchRequest) {
				for i := range r.Topics[0].Partitions {
					r.Topics[0].Partitions[i].PartitionMaxBytes = most
				}
			})
		}
		ask("one beyond the end", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[1].FetchOffset = 99 })
		ask("one that is not there", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].Partition = 9 })
		ask("more bytes than there are", func(r *kmsg.FetchRequest) { r.MinBytes, r.MaxWaitMillis = 1<<20, 30 })
		ask("a negative limit", func(r *kmsg.FetchRequest) { r.MaxBytes = -1 })
		ask("a negative wait", func(r *kmsg.FetchRequest) { r.MaxWaitMillis, r.MinBytes = -1, 1<<20 })
	})
}

// fetchSegments reads a log of several segments: an answer has records of one only.
func fetchSegments(x *Exchange) {
	x.Topic("segments", 1, "segment.bytes", "1048576")
	large := strings.Repeat("x", 400_000)
	for range 7 {
		x.Ask("produce", func(s *Side) kmsg.Request {
			return produce(s, 9, "segments", 0, batchSpec{values: []string{large, "small"}}.bytes())
		})
	}
	x.Each(1, func(v int16) {
		for offset := range int64(15) {
			x.Ask(fmt.Sprintf("from %d", offset), func(s *Side) kmsg.Request {
				req := fetch(s, v, "segments", 0, offset)
				req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 10<<20, 10<<20
				return req
			})
		}
	})
	for _, ts := range []int64{stamp, stamp + 1, -1, -2, -3, -4} {
		x.Ask("where a time stands", same(func() kmsg.Request { return listOffsets(8, "segments", 0, ts) }))
	}
}

// fetchTiered reads a log of which only the last of four segments is still local.
func fetchTiered(x *Exchange) {
	x.Topic("tiered", 1, "remote.storage.enable", "true", "segment.bytes", "1048576", "local.retention.bytes", "1", "retention.ms", "-1")
	large := strings.Repeat("x", 400_000)
	for i := range int64(7) {
		x.Ask("produce", func(s *Side) kmsg.Request {
			return produce(s, 9, "tiered", 0, batchSpec{values: []string{large, "small"}, timestamp: stamp + i*1000}.bytes())
		})
	}
	x.Eventually("only the last is local", same(func() kmsg.Request { return listOffsets(9, "tiered", 0, -4) }), func(resp kmsg.Response) bool {
		return resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset == 12
	})
	x.Each(1, func(v int16) {
		for _, offset := range []int64{-1, 0, 1, 3, 4, 11, 12, 13, 14, 15} {
			for _, most := range []int32{1, 10 << 20} {
				if most > 1 && v > x.Versions[1].Min && v < x.Versions[1].Max {
					continue // megabytes read alike in all versions
				}
				x.Ask(fmt.Sprintf("%d bytes from %d", most, offset), func(s *Side) kmsg.Request {
					req := fetch(s, v, "tiered", 0, offset)
					if offset < 14 {
						req.MaxWaitMillis = 10_000 // the tier may be slow
					}
					req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 10<<20, most
					return req
				})
			}
		}
		x.Ask("of the first epoch", func(s *Side) kmsg.Request {
			req := fetch(s, v, "tiered", 0, 2)
			req.MaxWaitMillis = 10_000
			req.Topics[0].Partitions[0].CurrentLeaderEpoch, req.Topics[0].Partitions[0].LastFetchedEpoch = 0, 0
			req.Topics[0].Partitions[0].PartitionMaxBytes = 1
			return req
		})
	})
	x.Each(2, func(v int16) {
		for _, ts := range []int64{-1, -2, -3, -4, -5, -6, 0, stamp, stamp + 1, stamp + 3000, stamp + 6000, stamp + 6001} {
			if v < 10 && (ts >= 0 || ts == -3) {
				continue // without a time-out in the request Kafka waits for its tier or does not, by chance
			}
			step := fmt.Sprintf("timestamp %d", ts)
			if ts >= stamp {
				step = fmt.Sprintf("timestamp +%d", ts-stamp)
			}
			x.Ask(step, same(func() kmsg.Request {
				req := listOffsets(v, "tiered", 0, ts)
				req.TimeoutMillis = 10_000
				return req
			}))
		}
	})
}
