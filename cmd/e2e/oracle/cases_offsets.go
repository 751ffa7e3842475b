package oracle

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// offsetCases are the stories of asking where records are.
func offsetCases() []Case {
	return []Case{
		{"list offsets", offsetsOf},
		{"offsets for leader epochs", epochsOf},
	}
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
		x.Ask("isolation level 2", same(func() kmsg.Request {
			req := listOffsets(v, "offsets", 0, -1)
			req.IsolationLevel = 2
			return req
		}))
		x.Ask("several", same(func() kmsg.Request {
			req := listOffsets(v, "offsets", 1, -1)
			req.Topics = append(req.Topics, listOffsets(v, "nooffsets", 0, -2).Topics...)
			for _, q := range []struct {
				partition int32
				ts        int64
			}{{0, -2}, {7, -1}} {
				p := kmsg.NewListOffsetsRequestTopicPartition()
				p.Partition, p.Timestamp = q.partition, q.ts
				req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
			}
			return req
		}))
		x.Ask("one partition twice", same(func() kmsg.Request {
			req := listOffsets(v, "offsets", 0, -1)
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, req.Topics[0].Partitions[0])
			return req
		}))
		for _, replica := range []int32{-2, -3, 1, 5} {
			x.Ask(fmt.Sprintf("as replica %d", replica), same(func() kmsg.Request {
				req := listOffsets(v, "offsets", 0, -1)
				req.ReplicaID = replica
				return req
			}))
		}
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
		for _, replica := range []int32{-2, 1, 5} {
			x.Ask(fmt.Sprintf("as replica %d", replica), same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrOffsetForLeaderEpochRequest())
				req.ReplicaID = replica
				t := kmsg.NewOffsetForLeaderEpochRequestTopic()
				t.Topic = "epochs"
				p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
				p.LeaderEpoch = 0
				t.Partitions = append(t.Partitions, p)
				req.Topics = append(req.Topics, t)
				return req
			}))
		}
		ask("an older current epoch", "epochs", 0, -2, 0)
		ask("a newer current epoch", "epochs", 0, 4, 0)
		ask("a partition that is not there", "epochs", 3, -1, 0)
		ask("a topic that is not there", "noepochs", 0, -1, 0)
	})
}
