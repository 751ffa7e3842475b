package oracle

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicCases are the stories of versions, metadata, topics and configs.
func topicCases() []Case {
	return []Case{
		{"api versions", apiVersions},
		{"frames that are no requests", badFrames},
		{"metadata", metadata},
		{"create topics", createTopics},
		{"delete topics", deleteTopics},
		{"create partitions", createPartitions},
		{"describe configs", describeConfigs},
		{"alter configs", alterConfigs},
		{"describe the cluster", describeCluster},
	}
}

func apiVersions(x *Exchange) {
	ask := func(v int16, name, version string) {
		x.Ask(fmt.Sprintf("as %q %q", name, version), same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrApiVersionsRequest())
			req.ClientSoftwareName, req.ClientSoftwareVersion = name, version
			return req
		}))
	}
	for v := int16(0); v <= 4; v++ {
		ask(v, "oracle", "1.0")
	}
	for _, bad := range []string{"", " ", "-a", "a-", "a_b", "a b", "ä"} {
		ask(3, bad, "1.0")
		ask(3, "oracle", bad)
	}
}

func badFrames(x *Exchange) {
	request := func(key, version int16, rest ...byte) []byte {
		return append([]byte{byte(key >> 8), byte(key), byte(version >> 8), byte(version), 0, 0, 0, 7, 0, 1, 'c'}, rest...)
	}
	x.Frame("nothing", nil)
	x.Frame("one byte", []byte{0})
	x.Frame("half a header", []byte{0, 3, 0, 1, 0, 0})
	x.Frame("key 999", request(999, 0))
	x.Frame("key -1", request(-1, 0))
	x.Frame("metadata version 99", request(3, 99))
	x.Frame("metadata version -1", request(3, -1))
	x.Frame("produce version 0", request(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0))
	x.Frame("fetch version 3", request(1, 3))
	x.Frame("metadata with a negative array", request(3, 1, 0xff, 0xff, 0xff, 0xf0))
	x.Frame("metadata with a huge array", request(3, 1, 0x7f, 0xff, 0xff, 0xff))
	x.Frame("metadata cut short", request(3, 1, 0, 0, 0, 2, 0, 1, 'a'))
	x.Frame("a client id that runs out of the frame", []byte{0, 3, 0, 1, 0, 0, 0, 7, 0x7f, 0xff, 'c'})
}

func metadata(x *Exchange) {
	x.Topic("known", 2)
	x.Each(3, func(v int16) {
		x.Ask("a topic", same(func() kmsg.Request { return metadataOf(v, "known") }))
		x.Ask("the same topic twice", same(func() kmsg.Request { return metadataOf(v, "known", "known") }))
		if v > 0 {
			x.Ask("no topics", same(func() kmsg.Request { return metadataOf(v) }))
		}
		x.Ask("not there, not to be made", same(func() kmsg.Request {
			req := metadataOf(v, "not-there")
			req.AllowAutoTopicCreation = false
			return req
		}))
		if v >= 4 {
			for _, name := range []string{"", ".", "..", "a/b", "ä", strings.Repeat("x", 250)} {
				x.Ask(fmt.Sprintf("the name %.10q", name), same(func() kmsg.Request {
					req := metadataOf(v, name)
					req.AllowAutoTopicCreation = false
					return req
				}))
			}
		}
		if v >= 8 {
			x.Ask("with authorized operations", same(func() kmsg.Request {
				req := metadataOf(v, "known")
				req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = true, v <= 10
				return req
			}))
		}
		if v >= 10 {
			byID := func(step string, id func(s *Side) [16]byte, name *string) {
				x.Ask(step, func(s *Side) kmsg.Request {
					req := metadataOf(v)
					t := kmsg.NewMetadataRequestTopic()
					t.TopicID, t.Topic = id(s), name
					req.Topics = append(req.Topics, t)
					return req
				})
			}
			byID("by id", func(s *Side) [16]byte { return topicID(s, "known") }, nil)
			byID("by an id that is not there", func(*Side) [16]byte { return [16]byte{1, 2, 3} }, nil)
			byID("by id and name", func(s *Side) [16]byte { return topicID(s, "known") }, kmsg.StringPtr("known"))
			byID("by neither", func(*Side) [16]byte { return [16]byte{} }, nil)
		}
	})
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
		ask("assigned", name, 4, false, []int32{1})
		ask("assigned too many", name, 5, false, []int32{1}, []int32{1})
		ask("assigned to a broker that is not there", name, 5, false, []int32{7})
	})
}

func describeConfigs(x *Exchange) {
	x.Topic("described", 1, "retention.ms", "86400000", "max.message.bytes", "2000")
	x.Each(32, func(v int16) {
		ask := func(step string, kind kmsg.ConfigResourceType, name string, synonyms bool, keys ...string) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrDescribeConfigsRequest())
				req.IncludeSynonyms = synonyms
				r := kmsg.NewDescribeConfigsRequestResource()
				r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, keys
				req.Resources = append(req.Resources, r)
				return req
			}))
		}
		ask("a topic", kmsg.ConfigResourceTypeTopic, "described", false)
		ask("a topic with synonyms", kmsg.ConfigResourceTypeTopic, "described", true)
		ask("one key", kmsg.ConfigResourceTypeTopic, "described", true, "retention.ms")
		ask("a key that is not there", kmsg.ConfigResourceTypeTopic, "described", false, "no.such.key")
		ask("a topic that is not there", kmsg.ConfigResourceTypeTopic, "undescribed", false)
		ask("an illegal topic", kmsg.ConfigResourceTypeTopic, "un/described", false)
		ask("a broker's key", kmsg.ConfigResourceTypeBroker, "1", true, "log.retention.ms", "num.partitions")
		ask("a broker that is no number", kmsg.ConfigResourceTypeBroker, "one", false)
		ask("a kind that is not there", kmsg.ConfigResourceType(99), "x", false)
	})
}

func alterConfigs(x *Exchange) {
	x.Topic("altered", 1)
	x.Each(44, func(v int16) {
		type op struct {
			key   string
			op    kmsg.IncrementalAlterConfigOp
			value *string
		}
		p := kmsg.StringPtr
		ask := func(step, topic string, validate bool, ops ...op) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrIncrementalAlterConfigsRequest())
				req.ValidateOnly = validate
				r := kmsg.NewIncrementalAlterConfigsRequestResource()
				r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
				for _, o := range ops {
					c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
					c.Name, c.Op, c.Value = o.key, o.op, o.value
					r.Configs = append(r.Configs, c)
				}
				req.Resources = append(req.Resources, r)
				return req
			}))
		}
		ask("set", "altered", false, op{"retention.ms", 0, p("5000")})
		ask("set, validate only", "altered", true, op{"retention.ms", 0, p("6000")})
		ask("set nonsense", "altered", false, op{"retention.ms", 0, p("soon")})
		ask("set nothing", "altered", false, op{"retention.ms", 0, nil})
		ask("a key that is not there", "altered", false, op{"no.such.key", 0, p("1")})
		ask("delete", "altered", false, op{"retention.ms", 1, nil})
		ask("delete what is not set", "altered", false, op{"retention.bytes", 1, nil})
		ask("append to a list", "altered", false, op{"cleanup.policy", 2, p("compact")})
		ask("subtract from a list", "altered", false, op{"cleanup.policy", 3, p("compact")})
		ask("append to a number", "altered", false, op{"retention.ms", 2, p("1")})
		ask("operation 9", "altered", false, op{"retention.ms", 9, p("1")})
		ask("a key twice", "altered", false, op{"retention.ms", 0, p("1000")}, op{"retention.ms", 1, nil})
		ask("no changes", "altered", false)
		ask("a topic that is not there", "unaltered", false, op{"retention.ms", 0, p("1000")})
		x.Ask("what stands", same(func() kmsg.Request {
			req := at(4, kmsg.NewPtrDescribeConfigsRequest())
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, "altered"
			r.ConfigNames = []string{"retention.ms", "cleanup.policy"}
			req.Resources = append(req.Resources, r)
			return req
		}))
	})
}

func describeCluster(x *Exchange) {
	x.Each(60, func(v int16) {
		for _, endpoint := range []int8{1, 2, 9} {
			x.Ask(fmt.Sprintf("endpoint type %d", endpoint), same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrDescribeClusterRequest())
				req.EndpointType = endpoint
				return req
			}))
		}
	})
}
