package api

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/conf"
	"varve/ha/controller"
)

// Configs are what the broker's configuration makes of a topic's own, and of itself.
type Configs interface {
	TopicEntries(own map[string]string) []conf.Entry
	BrokerEntries() []conf.Entry
}

// DescribeConfigs, key 32.
//
//	v1  sources and synonyms
//	v3  types and documentation
//
// Errors per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION,
// INVALID_REQUEST for a broker that is not this one or a kind that is not there.
func (b *Broker) describeConfigs(x *call, req *kmsg.DescribeConfigsRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeConfigsResponse()
	for _, r := range req.Resources {
		rr := kmsg.NewDescribeConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = r.ResourceType, r.ResourceName
		entries, e := b.entries(r)
		rr.ErrorMessage = kmsg.StringPtr("") // never null, as Kafka's
		if e != nil {
			rr.ErrorCode, rr.ErrorMessage = int16(e.Code), &e.Message
			rr.Configs = []kmsg.DescribeConfigsResponseResourceConfig{}
			b.refused(x, r.ResourceName, -1, e)
		}
		for _, en := range entries {
			if r.ConfigNames == nil || slices.Contains(r.ConfigNames, en.Name) {
				rr.Configs = append(rr.Configs, configEntry(x, req, en))
			}
		}
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}

func (b *Broker) entries(r kmsg.DescribeConfigsRequestResource) ([]conf.Entry, *kafka.Error) {
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if e := controller.CheckTopicName(r.ResourceName); e != nil {
			return nil, e
		}
		t, ok := b.opt.Controller.Image().Topic(r.ResourceName)
		if !ok {
			return nil, &kafka.Error{Code: kafka.UnknownTopicOrPartition}
		}
		return b.opt.Configs.TopicEntries(t.Configs()), nil
	case kmsg.ConfigResourceTypeBroker:
		if r.ResourceName == "" {
			return nil, nil // cluster-wide defaults: none can be set yet
		}
		id, err := strconv.ParseInt(r.ResourceName, 10, 32)
		if err != nil {
			return nil, kafka.Refuse(kafka.InvalidRequest, "Broker id must be an integer, but it is: %s", r.ResourceName)
		}
		if kafka.BrokerID(id) != b.opt.Broker {
			return nil, kafka.Refuse(kafka.InvalidRequest, "Unexpected broker id, expected %d or empty string, but received %s", b.opt.Broker, r.ResourceName)
		}
		return b.opt.Configs.BrokerEntries(), nil
	}
	return nil, kafka.Refuse(kafka.InvalidRequest, "Unsupported resource type: %s", resourceKind(r.ResourceType))
}

func resourceKind(t kmsg.ConfigResourceType) string {
	switch t {
	case kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger:
		return t.String()
	}
	return fmt.Sprintf("UNKNOWN (%d)", t)
}

func configEntry(x *call, req *kmsg.DescribeConfigsRequest, e conf.Entry) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.Value, c.ReadOnly, c.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
	c.Source, c.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	c.ConfigSynonyms = []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{}
	if req.IncludeSynonyms {
		for _, s := range e.Synonyms {
			cs := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			cs.Name, cs.Value, cs.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
			c.ConfigSynonyms = append(c.ConfigSynonyms, cs)
		}
	}
	if x.h.Version >= 3 && req.IncludeDocumentation {
		c.Documentation = &e.Doc
	}
	return c
}
