package api

import "github.com/twmb/franz-go/pkg/kmsg"

// SyncGroup, key 14.
//
//	v3  InstanceID
//	v5  ProtocolType and Protocol, which must be the group's
//
// Errors: those of group's. A member's answer waits for its leader's assignment, and
// that for the log.
func (b *Broker) syncGroup(x *call, req *kmsg.SyncGroupRequest) kmsg.Response {
	return b.askGroup(x, req.Group, req)
}
