package api

import "github.com/twmb/franz-go/pkg/kmsg"

// DeleteGroups, key 42.
//
// Errors per group: those of group's. Each group is deleted where it lives; answers are
// in the order of the request.
func (b *Broker) deleteGroups(x *call, req *kmsg.DeleteGroupsRequest) kmsg.Response {
	var qs []question
	for _, name := range req.Groups {
		one := *req
		one.Groups = []string{name}
		qs = append(qs, question{b.opt.Groups.Shard(name), &one})
	}
	resp := kmsg.NewPtrDeleteGroupsResponse()
	for _, r := range b.ask(x, qs) {
		resp.Groups = append(resp.Groups, r.(*kmsg.DeleteGroupsResponse).Groups...)
	}
	return resp
}
