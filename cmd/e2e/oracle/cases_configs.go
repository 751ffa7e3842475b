package oracle

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// configCases are the stories of configs.
func configCases() []Case {
	return []Case{
		{"describe configs", describeConfigs},
		{"alter configs", alterConfigs},
	}
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
		ask("another broker", kmsg.ConfigResourceTypeBroker, "77", false, "num.partitions")
		ask("all brokers", kmsg.ConfigResourceTypeBroker, "", false, "num.partitions")
		x.Ask("two resources", same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrDescribeConfigsRequest())
			for _, name := range []string{"undescribed", "described"} {
				r := kmsg.NewDescribeConfigsRequestResource()
				r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, name, []string{"segment.bytes", "cleanup.policy"}
				req.Resources = append(req.Resources, r)
			}
			return req
		}))
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
		ask("an illegal topic", "un/altered", false, op{"retention.ms", 0, p("1000")})
		ask("append what is there", "altered", false, op{"cleanup.policy", 2, p("delete")})
		ask("append what is nonsense", "altered", false, op{"cleanup.policy", 2, p("burn")})
		ask("subtract what is not there", "altered", false, op{"cleanup.policy", 3, p("compact")})
		ask("subtract all", "altered", false, op{"cleanup.policy", 3, p("delete")})
		ask("a good one and a bad one", "altered", false, op{"retention.bytes", 0, p("77")}, op{"retention.ms", 0, p("soon")})
		ask("the least", "altered", false, op{"max.message.bytes", 0, p("0")}, op{"segment.ms", 0, p("1")})
		x.Ask("two resources", same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrIncrementalAlterConfigsRequest())
			for _, name := range []string{"unaltered", "altered"} {
				r := kmsg.NewIncrementalAlterConfigsRequestResource()
				r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
				c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
				c.Name, c.Value = "flush.messages", p("5")
				r.Configs = append(r.Configs, c)
				req.Resources = append(req.Resources, r)
			}
			return req
		}))
		x.Ask("one resource twice", same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrIncrementalAlterConfigsRequest())
			r := kmsg.NewIncrementalAlterConfigsRequestResource()
			r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, "altered"
			req.Resources = append(req.Resources, r, r)
			return req
		}))
		x.Ask("a kind that is not there", same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrIncrementalAlterConfigsRequest())
			r := kmsg.NewIncrementalAlterConfigsRequestResource()
			r.ResourceType, r.ResourceName = 99, "altered"
			req.Resources = append(req.Resources, r)
			return req
		}))
		x.Ask("what stands", same(func() kmsg.Request {
			req := at(4, kmsg.NewPtrDescribeConfigsRequest())
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, "altered"
			r.ConfigNames = []string{"retention.ms", "cleanup.policy", "retention.bytes", "max.message.bytes", "segment.ms", "flush.messages"}
			req.Resources = append(req.Resources, r)
			return req
		}))
	})
}
