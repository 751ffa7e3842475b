package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/ha/controller"
)

// alterTimeout bounds a change of configs: the request has no time-out of its own.
const alterTimeout = 30 * time.Second

// IncrementalAlterConfigs, key 44 (KIP-339). Topics only: a broker's configs are its
// file's.
//
// Errors per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, INVALID_REQUEST.
func (b *Broker) incrementalAlterConfigs(x *call, req *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	ask := controller.AlterConfigs{ValidateOnly: req.ValidateOnly}
	for _, r := range req.Resources {
		if r.ResourceType == kmsg.ConfigResourceTypeTopic {
			ask.Resources = append(ask.Resources, alterResource(r))
		}
	}
	a, e := do[controller.ConfigsAltered](b, x, alterTimeout, ask)
	done := 0
	for _, r := range req.Resources {
		rr := kmsg.NewIncrementalAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = r.ResourceType, r.ResourceName
		refused := e
		switch {
		case r.ResourceType != kmsg.ConfigResourceTypeTopic:
			refused = unalterable(r.ResourceType)
		case e == nil:
			refused = a.Resources[done].Err
			done++
		}
		rr.ErrorCode, rr.ErrorMessage = code(refused), message(refused)
		resp.Resources = append(resp.Resources, rr)
		b.refused(x, r.ResourceName, -1, refused)
	}
	return resp
}

func unalterable(t kmsg.ConfigResourceType) *kafka.Error {
	switch t {
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeClientMetrics,
		kmsg.ConfigResourceTypeGroupConfig:
		return kafka.Refuse(kafka.InvalidRequest, "Configs of %s cannot be altered while the broker runs: change server.properties and restart it", t)
	}
	return kafka.Refuse(kafka.InvalidRequest, "Unknown resource type %d", t)
}

func alterResource(r kmsg.IncrementalAlterConfigsRequestResource) controller.AlterResource {
	out := controller.AlterResource{Type: metadata.ResourceType(r.ResourceType), Name: r.ResourceName}
	for _, c := range r.Configs {
		out.Ops = append(out.Ops, controller.ConfigOp{Name: c.Name, Kind: controller.OpKind(c.Op), Value: c.Value})
	}
	return out
}
