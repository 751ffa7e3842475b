package api

import "github.com/twmb/franz-go/pkg/kmsg"

// JoinGroup, key 11.
//
//	v1  RebalanceTimeoutMillis; before, the session timeout is meant
//	v4  a new dynamic member gets its id first: MEMBER_ID_REQUIRED (KIP-394)
//	v5  InstanceID: static members (KIP-345)
//	v7  ProtocolType in the response
//	v9  SkipAssignment for a static leader that comes again (KIP-814)
//
// Errors: those of group's. The answer comes when the join phase ends: minutes, maybe,
// for which the connection is parked and holds nothing else.
func (b *Broker) joinGroup(x *call, req *kmsg.JoinGroupRequest) kmsg.Response {
	return b.askGroup(x, req.Group, req)
}
