package group

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// notAsked is AuthorizedOperations where the request did not ask for it; who may do
// what is the caller's to fill in.
const notAsked = math.MinInt32

// DescribeGroups, key 15; v4 tells instance ids, v6 says GROUP_ID_NOT_FOUND.
//
// A group that is not known is Dead, before v6 without an error.
func (m *Machine) describe(q *kmsg.DescribeGroupsRequest) kmsg.Response {
	response := q.ResponseKind().(*kmsg.DescribeGroupsResponse)
	for _, name := range q.Groups {
		response.Groups = append(response.Groups, m.describeOne(name, q.Version))
	}
	return response
}

func (m *Machine) describeOne(name string, version int16) kmsg.DescribeGroupsResponseGroup {
	d := kmsg.NewDescribeGroupsResponseGroup()
	d.Group, d.AuthorizedOperations = name, notAsked
	g := m.groups[name]
	if g == nil {
		d.State = "Dead"
		if version >= 6 {
			message := fmt.Sprintf("Group %s not found.", name)
			d.ErrorCode, d.ErrorMessage = int16(kafka.GroupIDNotFound), &message
		}
		return d
	}
	d.State, d.ProtocolType = g.state.String(), g.protocolType
	if g.state == stable {
		d.Protocol = g.protocol
	}
	for _, id := range g.order {
		p := g.members[id]
		one := kmsg.NewDescribeGroupsResponseGroupMember()
		one.MemberID, one.InstanceID = p.id, p.instanceID()
		one.ClientID, one.ClientHost = p.clientID, p.host
		if g.state == stable {
			one.ProtocolMetadata, one.MemberAssignment = p.metadata(g.protocol), p.assignment
		}
		d.Members = append(d.Members, one)
	}
	return d
}

// ListGroups, key 16; v4 filters by state, v5 by type.
func (m *Machine) list(q *kmsg.ListGroupsRequest) kmsg.Response {
	response := q.ResponseKind().(*kmsg.ListGroupsResponse)
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[name]
		if !passes(q.StatesFilter, g.state.String()) || !passes(q.TypesFilter, "classic") {
			continue
		}
		one := kmsg.NewListGroupsResponseGroup()
		one.Group, one.ProtocolType = name, g.protocolType
		one.GroupState, one.GroupType = g.state.String(), "classic"
		response.Groups = append(response.Groups, one)
	}
	return response
}

func passes(filter []string, s string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, s) })
}

// DeleteGroups, key 42.
//
// Errors per group: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
func (m *Machine) deleteGroups(q *kmsg.DeleteGroupsRequest) kmsg.Response {
	response := q.ResponseKind().(*kmsg.DeleteGroupsResponse)
	for _, name := range q.Groups {
		one := kmsg.NewDeleteGroupsResponseGroup()
		one.Group = name
		switch g := m.groups[name]; {
		case g == nil:
			one.ErrorCode = int16(kafka.GroupIDNotFound)
		case g.state != empty:
			one.ErrorCode = int16(kafka.NonEmptyGroup)
		default:
			m.dropGroup(g)
		}
		response.Groups = append(response.Groups, one)
	}
	return response
}
