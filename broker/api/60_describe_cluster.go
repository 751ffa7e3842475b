package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// DescribeCluster, key 60.
//
//	v1  endpoint type: 1 brokers, 2 controllers
//	v2  fenced brokers
//
// Errors: UNSUPPORTED_ENDPOINT_TYPE for controllers, which clients cannot ask here,
// and for what is neither.
func (b *Broker) describeCluster(x *call, req *kmsg.DescribeClusterRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.ClusterAuthorizedOperations = notAsked
	resp.Brokers = []kmsg.DescribeClusterResponseBroker{}
	resp.EndpointType = req.EndpointType
	if x.h.Version >= 1 && req.EndpointType != 1 {
		e := endpointError(req.EndpointType)
		resp.ErrorCode, resp.ErrorMessage, resp.EndpointType = int16(e.Code), message(e), 1
		resp.ControllerID = -1
		b.refused(x, "", -1, e)
		return resp
	}
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	resp.EndpointType = 1
	resp.ClusterID, resp.ControllerID = b.opt.ClusterID, int32(b.opt.Broker)
	for _, r := range b.opt.Controller.Image().Brokers() {
		if r.Fenced() && !req.IncludeFencedBrokers {
			continue
		}
		one := kmsg.NewDescribeClusterResponseBroker()
		one.NodeID, one.IsFenced = int32(r.ID), r.Fenced()
		if r.Rack != "" {
			one.Rack = kmsg.StringPtr(r.Rack)
		}
		at := b.opt.Advertised[x.c.Listener]
		if r.ID == b.opt.Broker {
			one.Host, one.Port = at.Host, int32(at.Port)
		}
		resp.Brokers = append(resp.Brokers, one)
	}
	return resp
}

func endpointError(kind int8) *kafka.Error {
	if kind == 2 {
		return &kafka.Error{Code: kafka.MismatchedEndpointType, Message: "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"}
	}
	return kafka.Refuse(kafka.UnsupportedEndpointType, "Unsupported endpoint type %d", kind)
}
