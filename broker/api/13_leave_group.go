package api

import "github.com/twmb/franz-go/pkg/kmsg"

// LeaveGroup, key 13.
//
//	v3  several members, also by InstanceID
//	v5  a reason
//
// Errors: those of group's; v3 on also for each member.
func (b *Broker) leaveGroup(x *call, req *kmsg.LeaveGroupRequest) kmsg.Response {
	return b.askGroup(x, req.Group, req)
}
