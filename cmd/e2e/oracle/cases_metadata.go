package oracle

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadataCases are the stories of what a client asks first.
func metadataCases() []Case {
	return []Case{
		{"metadata", metadata},
		{"describe the cluster", describeCluster},
	}
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
		{
			x.Ask("all of them", same(func() kmsg.Request {
				req := metadataOf(v)
				if req.Topics = nil; v == 0 {
					req.Topics = []kmsg.MetadataRequestTopic{}
				}
				return req
			}))
		}
		x.Ask("there and not there", same(func() kmsg.Request {
			req := metadataOf(v, "not-there", "known", "a/b")
			req.AllowAutoTopicCreation = false
			return req
		}))
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

func describeCluster(x *Exchange) {
	x.Each(60, func(v int16) {
		x.Ask("with authorized operations", same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrDescribeClusterRequest())
			req.EndpointType, req.IncludeClusterAuthorizedOperations = 1, true
			return req
		}))
		x.Ask("with fenced brokers", same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrDescribeClusterRequest())
			req.EndpointType, req.IncludeFencedBrokers = 1, v >= 2
			return req
		}))
		for _, endpoint := range []int8{1, 2, 9} {
			x.Ask(fmt.Sprintf("endpoint type %d", endpoint), same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrDescribeClusterRequest())
				req.EndpointType = endpoint
				return req
			}))
		}
	})
}
