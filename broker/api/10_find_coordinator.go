package api

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// FindCoordinator, key 10.
//
//	v1  kinds: 0 group, 1 transaction; error message
//	v4  several keys at once
//	v6  kind 2, share groups
//
// Errors: INVALID_GROUP_ID for an empty group, INVALID_REQUEST for a kind that is not
// served, COORDINATOR_NOT_AVAILABLE while the offsets topic cannot be made.
func (b *Broker) findCoordinator(x *call, req *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if x.h.Version < 4 {
		one := b.coordinatorOf(x, req.CoordinatorType, req.CoordinatorKey)
		resp.ErrorCode, resp.ErrorMessage = one.ErrorCode, one.ErrorMessage
		resp.NodeID, resp.Host, resp.Port = one.NodeID, one.Host, one.Port
		return resp
	}
	resp.Coordinators = []kmsg.FindCoordinatorResponseCoordinator{}
	for _, key := range req.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, b.coordinatorOf(x, req.CoordinatorType, key))
	}
	return resp
}

func (b *Broker) coordinatorOf(x *call, kind int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	one := kmsg.NewFindCoordinatorResponseCoordinator()
	one.Key, one.NodeID, one.Port = key, -1, -1
	e := b.checkCoordinator(x, kind, key)
	if e != nil {
		one.ErrorCode, one.ErrorMessage = int16(e.Code), message(e)
		b.refused(x, "", -1, e)
		return one
	}
	if one.ErrorMessage = kmsg.StringPtr("NONE"); x.h.Version >= 4 {
		one.ErrorMessage = kmsg.StringPtr("")
	}
	at := b.opt.Advertised[x.c.Listener]
	one.NodeID, one.Host, one.Port = int32(b.opt.Broker), at.Host, int32(at.Port)
	return one
}

func (b *Broker) checkCoordinator(x *call, kind int8, key string) (e *kafka.Error) {
	switch kind {
	case 0:
		x.c.Block(func(ctx context.Context) { e = b.opt.Groups.Ready(ctx, key) })
		return e
	case 1:
		return &kafka.Error{Code: kafka.InvalidRequest, Message: "transactions are not served by this version; leave transactional.id unset"}
	default:
		return &kafka.Error{Code: kafka.InvalidRequest, Message: fmt.Sprintf("coordinators of kind %d are not served", kind)}
	}
}
