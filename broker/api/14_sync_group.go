package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/group"
	"varve/broker/kafka"
)

// SyncGroup, key 14.
//
//	v3  InstanceID
//	v5  ProtocolType and Protocol, which must be the group's
//
// Errors: INCONSISTENT_GROUP_PROTOCOL where v5 leaves one of them out, before anything
// else; those of group's. A member's answer waits for its leader's assignment, and
// that for the log.
func (b *Broker) syncGroup(x *call, req *kmsg.SyncGroupRequest) kmsg.Response {
	if x.h.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		return group.Refuse(req, kafka.InconsistentGroupProtocol)
	}
	return b.askGroup(x, req.Group, req)
}
