package api

import "github.com/twmb/franz-go/pkg/kmsg"

// OffsetDelete, key 47.
//
// Errors: those of group's, for the whole and for each partition.
func (b *Broker) offsetDelete(x *call, req *kmsg.OffsetDeleteRequest) kmsg.Response {
	return b.askGroup(x, req.Group, req)
}
