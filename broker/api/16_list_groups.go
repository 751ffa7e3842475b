package api

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// ListGroups, key 16.
//
//	v4  filter by state
//	v5  filter by type
//
// Errors: COORDINATOR_LOAD_IN_PROGRESS while one shard here loads: half a list would
// look like a whole one. A shard that has just moved is another broker's to list.
func (b *Broker) listGroups(x *call, req *kmsg.ListGroupsRequest) kmsg.Response {
	var qs []question
	for _, n := range b.opt.Groups.Shards() {
		qs = append(qs, question{n, req})
	}
	resp := kmsg.NewPtrListGroupsResponse()
	for _, r := range b.ask(x, qs) {
		one := r.(*kmsg.ListGroupsResponse)
		switch kafka.Code(one.ErrorCode) {
		case kafka.None:
			resp.Groups = append(resp.Groups, one.Groups...)
		case kafka.NotCoordinator:
		default:
			resp = kmsg.NewPtrListGroupsResponse()
			resp.ErrorCode = one.ErrorCode
			return resp
		}
	}
	slices.SortFunc(resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	return resp
}
