package api

import "github.com/twmb/franz-go/pkg/kmsg"

// Heartbeat, key 12; v3 has InstanceID.
//
// Errors: those of group's.
func (b *Broker) heartbeat(x *call, req *kmsg.HeartbeatRequest) kmsg.Response {
	return b.askGroup(x, req.Group, req)
}
