package api

import "github.com/twmb/franz-go/pkg/kmsg"

// DescribeGroups, key 15.
//
//	v3  authorized operations, when asked for
//	v4  InstanceID of members
//	v6  error message; GROUP_ID_NOT_FOUND instead of a group that is Dead
//
// Errors per group: those of group's. Each group is asked for where it lives; answers
// are in the order of the request.
func (b *Broker) describeGroups(x *call, req *kmsg.DescribeGroupsRequest) kmsg.Response {
	var qs []question
	for _, name := range req.Groups {
		one := *req
		one.Groups = []string{name}
		qs = append(qs, question{b.opt.Groups.Shard(name), &one})
	}
	resp := kmsg.NewPtrDescribeGroupsResponse()
	for _, r := range b.ask(x, qs) {
		resp.Groups = append(resp.Groups, r.(*kmsg.DescribeGroupsResponse).Groups...)
	}
	for i := range resp.Groups {
		if req.IncludeAuthorizedOperations && resp.Groups[i].ErrorCode == 0 {
			resp.Groups[i].AuthorizedOperations = groupOperations
		}
	}
	return resp
}
