package oracle

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchCases are the stories of fetching.
func fetchCases() []Case {
	return []Case{
		{"fetch records", fetchRecords},
		{"fetch what is not there", fetchWrong},
		{"fetch in a session", fetchSession},
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
