package oracle

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicCases are the stories of making, growing and deleting topics.
func topicCases() []Case {
	return []Case{
		{"create topics", createTopics},
		{"delete topics", deleteTopics},
		{"create partitions", createPartitions},
	}
}

func createTopics(x *Exchange) {
	x.Each(19, func(v int16) {
		n := 0
		ask := func(step string, change func(req *kmsg.CreateTopicsRequest)) {
			n++
			x.Ask(step, same(func() kmsg.Request {
				req := createTopic(v, fmt.Sprintf("made-%d-%d", v, n), 2)
				change(req)
				return req
			}))
		}
		ask("two partitions", func(*kmsg.CreateTopicsRequest) {})
		ask("the same name again", func(r *kmsg.CreateTopicsRequest) { r.Topics[0].Topic = fmt.Sprintf("made-%d-1", v) })
		ask("validate only", func(r *kmsg.CreateTopicsRequest) { r.ValidateOnly = true })
		ask("with configs", func(r *kmsg.CreateTopicsRequest) {
			r.Topics[0].Configs = configs("retention.ms", "1000", "segment.bytes", "1048576")
		})
		ask("defaults", func(r *kmsg.CreateTopicsRequest) { r.Topics[0].NumPartitions, r.Topics[0].ReplicationFactor = -1, -1 })
		ask("two topics of one name", func(r *kmsg.CreateTopicsRequest) { r.Topics = append(r.Topics, r.Topics[0]) })
		ask("no topics", func(r *kmsg.CreateTopicsRequest) { r.Topics = nil })
		for _, p := range []int32{0, -2} {
			ask(fmt.Sprintf("%d partitions", p), func(r *kmsg.CreateTopicsRequest) { r.Topics[0].NumPartitions = p })
		}
		for _, f := range []int16{0, 2, -2} {
			ask(fmt.Sprintf("replication factor %d", f), func(r *kmsg.CreateTopicsRequest) { r.Topics[0].ReplicationFactor = f })
		}
		for _, name := range []string{"", ".", "..", "a/b", "a b", "ä", strings.Repeat("x", 250)} {
			ask(fmt.Sprintf("the name %.10q", name), func(r *kmsg.CreateTopicsRequest) { r.Topics[0].Topic = name })
		}
		ask("a name that collides", func(r *kmsg.CreateTopicsRequest) { r.Topics[0].Topic = fmt.Sprintf("col.lide%d", v) })
		ask("and its other spelling", func(r *kmsg.CreateTopicsRequest) { r.Topics[0].Topic = fmt.Sprintf("col_lide%d", v) })
		for _, c := range [][2]string{{"no.such.config", "1"}, {"retention.ms", "soon"}, {"retention.ms", "-5"}, {"cleanup.policy", "burn"},
			{"segment.bytes", "1"}, {"min.insync.replicas", "0"}, {"compression.type", "brotli"}, {"max.message.bytes", "-1"},
			{"message.timestamp.type", "Yesterday"}, {"unclean.leader.election.enable", "maybe"}, {"flush.ms", "x"}, {"min.cleanable.dirty.ratio", "2"}} {
			ask("config "+c[0]+"="+c[1], func(r *kmsg.CreateTopicsRequest) { r.Topics[0].Configs = configs(c[0], c[1]) })
		}
		ask("a config without value", func(r *kmsg.CreateTopicsRequest) {
			r.Topics[0].Configs = configs("retention.ms", "1")
			r.Topics[0].Configs[0].Value = nil
		})
		ask("of the brokers' own", func(r *kmsg.CreateTopicsRequest) { r.Topics[0].Topic = "__consumer_offsets" })
		ask("good and bad ones", func(r *kmsg.CreateTopicsRequest) {
			r.Topics = append(r.Topics, createTopic(v, "a/b", 1).Topics[0], createTopic(v, fmt.Sprintf("made-%d-beside", v), 1).Topics[0])
		})
		ask("a config twice", func(r *kmsg.CreateTopicsRequest) {
			r.Topics[0].Configs = configs("retention.ms", "1000", "retention.ms", "2000")
		})
		ask("configs that do not fit", func(r *kmsg.CreateTopicsRequest) {
			r.Topics[0].Configs = configs("min.compaction.lag.ms", "1000", "max.compaction.lag.ms", "10")
		})
		assigned := func(step string, counts bool, as ...[]int32) {
			ask(step, func(r *kmsg.CreateTopicsRequest) {
				if !counts {
					r.Topics[0].NumPartitions, r.Topics[0].ReplicationFactor = -1, -1
				}
				for i, replicas := range as {
					a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
					a.Partition, a.Replicas = int32(i), replicas
					r.Topics[0].ReplicaAssignment = append(r.Topics[0].ReplicaAssignment, a)
				}
			})
		}
		assigned("assigned", false, []int32{1}, []int32{1})
		assigned("assigned and counted", true, []int32{1})
		assigned("assigned to a broker that is not there", false, []int32{77})
		assigned("assigned to nobody", false, []int32{})
		assigned("assigned to one broker twice", false, []int32{1, 1})
		ask("assigned with a gap", func(r *kmsg.CreateTopicsRequest) {
			r.Topics[0].NumPartitions, r.Topics[0].ReplicationFactor = -1, -1
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = 3, []int32{1}
			r.Topics[0].ReplicaAssignment = append(r.Topics[0].ReplicaAssignment, a)
		})
	})
}

func configs(kv ...string) []kmsg.CreateTopicsRequestTopicConfig {
	return createTopic(7, "", 1, kv...).Topics[0].Configs
}

func deleteTopics(x *Exchange) {
	x.Each(20, func(v int16) {
		name := fmt.Sprintf("doomed-%d", v)
		x.Topic(name, 1)
		x.Topic(name+"-by-id", 1)
		byName := func(step string, names ...string) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrDeleteTopicsRequest())
				req.TimeoutMillis = 10_000
				req.TopicNames = names
				for _, n := range names {
					t := kmsg.NewDeleteTopicsRequestTopic()
					t.Topic = kmsg.StringPtr(n)
					req.Topics = append(req.Topics, t)
				}
				return req
			}))
		}
		byName("a topic", name)
		byName("once more", name)
		byName("none")
		byName("not there", "never-was")
		byName("a name twice", name+"-by-id", name+"-by-id")
		byName("an illegal name", "a/b")
		x.Topic(name+"-beside", 1)
		byName("one that is there and one that is not", "never-was", name+"-beside")
		if v >= 6 {
			byID := func(step string, id func(s *Side) [16]byte, name *string) {
				x.Ask(step, func(s *Side) kmsg.Request {
					req := at(v, kmsg.NewPtrDeleteTopicsRequest())
					req.TimeoutMillis = 10_000
					t := kmsg.NewDeleteTopicsRequestTopic()
					t.TopicID, t.Topic = id(s), name
					req.Topics = append(req.Topics, t)
					return req
				})
			}
			byID("by an id that is not there", func(*Side) [16]byte { return [16]byte{9} }, nil)
			byID("by id and name", func(s *Side) [16]byte { return topicID(s, name+"-by-id") }, kmsg.StringPtr(name+"-by-id"))
			byID("by neither", func(*Side) [16]byte { return [16]byte{} }, nil)
			byID("by id", func(s *Side) [16]byte { return topicID(s, name+"-by-id") }, nil)
		}
	})
}

func createPartitions(x *Exchange) {
	x.Each(37, func(v int16) {
		name := fmt.Sprintf("growing-%d", v)
		x.Topic(name, 2)
		ask := func(step, topic string, count int32, validate bool, assignment ...[]int32) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrCreatePartitionsRequest())
				req.TimeoutMillis, req.ValidateOnly = 10_000, validate
				t := kmsg.NewCreatePartitionsRequestTopic()
				t.Topic, t.Count = topic, count
				for _, r := range assignment {
					a := kmsg.NewCreatePartitionsRequestTopicAssignment()
					a.Replicas = r
					t.Assignment = append(t.Assignment, a)
				}
				req.Topics = append(req.Topics, t)
				return req
			}))
		}
		ask("validate only", name, 3, true)
		ask("to three", name, 3, false)
		ask("to three again", name, 3, false)
		ask("to one", name, 1, false)
		ask("to none", name, 0, false)
		ask("to -1", name, -1, false)
		ask("a topic that is not there", "not-growing", 3, false)
		x.Ask("a topic twice", same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrCreatePartitionsRequest())
			req.TimeoutMillis = 10_000
			t := kmsg.NewCreatePartitionsRequestTopic()
			t.Topic, t.Count = name, 9
			req.Topics = append(req.Topics, t, t)
			return req
		}))
		ask("an illegal topic", "a/b", 3, false)
		ask("assigned", name, 4, false, []int32{1})
		ask("assigned too many", name, 5, false, []int32{1}, []int32{1})
		ask("assigned to a broker that is not there", name, 5, false, []int32{7})
	})
}
