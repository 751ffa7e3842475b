package group

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// SyncGroup, key 14.
//
//	v3  InstanceID
//	v5  ProtocolType and Protocol, which must be the group's
//
// Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
// ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
func (m *Machine) sync(r Request, q *kmsg.SyncGroupRequest) {
	g := m.groups[q.Group]
	if code := checkSync(g, q); code != kafka.None {
		m.reply(r.ID, refusedSync(q.Version, code))
		return
	}
	p := g.members[q.MemberID]
	delete(g.waitFor, p.id)
	if g.state == stable {
		m.touch(g, p)
		m.reply(r.ID, synced(g, p, q.Version))
		return
	}
	m.answerSync(p, kafka.RebalanceInProgress) // asked twice: the later one counts
	p.sync = &waiting{r.ID, q.Version}
	if p.id == g.leader {
		m.assign(g, q)
	}
}

func checkSync(g *group, q *kmsg.SyncGroupRequest) kafka.Code {
	switch {
	case q.Group == "":
		return kafka.InvalidGroupID
	case q.Version >= 5 && (q.ProtocolType == nil || q.Protocol == nil):
		return kafka.InconsistentGroupProtocol
	case g == nil:
		return kafka.UnknownMemberID
	}
	if code := g.check(q.MemberID, q.InstanceID); code != kafka.None {
		return code
	}
	switch {
	case q.Generation != g.generation:
		return kafka.IllegalGeneration
	case q.ProtocolType != nil && *q.ProtocolType != g.protocolType,
		q.Protocol != nil && *q.Protocol != g.protocol:
		return kafka.InconsistentGroupProtocol
	case g.state == empty:
		return kafka.UnknownMemberID
	case g.state == preparing:
		return kafka.RebalanceInProgress
	}
	return kafka.None
}

// assign takes the leader's assignment: into the log, then to whoever waits. Who is
// not in it has nothing.
func (m *Machine) assign(g *group, q *kmsg.SyncGroupRequest) {
	for _, p := range g.members {
		p.assignment = nil
	}
	for _, a := range q.GroupAssignment {
		if p := g.members[a.MemberID]; p != nil {
			p.assignment = bytes.Clone(a.MemberAssignment)
		}
	}
	g.enter(stable, m.now)
	m.write(groupRecord(g))
	for _, id := range g.order {
		p := g.members[id]
		if p.sync == nil {
			continue
		}
		m.reply(p.sync.id, synced(g, p, p.sync.version))
		p.sync = nil
		m.touch(g, p)
	}
}

func syncResponse(version int16) *kmsg.SyncGroupResponse {
	return (&kmsg.SyncGroupRequest{Version: version}).ResponseKind().(*kmsg.SyncGroupResponse)
}

func synced(g *group, p *member, version int16) *kmsg.SyncGroupResponse {
	response := syncResponse(version)
	protocolType, protocol := g.protocolType, g.protocol
	response.ProtocolType, response.Protocol = &protocolType, &protocol
	response.MemberAssignment = p.assignment
	return response
}

func refusedSync(version int16, code kafka.Code) *kmsg.SyncGroupResponse {
	response := syncResponse(version)
	response.ErrorCode = int16(code)
	return response
}

// answerSync refuses the sync that a member waits with, if it does.
func (m *Machine) answerSync(p *member, code kafka.Code) {
	if p.sync != nil {
		m.reply(p.sync.id, refusedSync(p.sync.version, code))
		p.sync = nil
	}
}

// Heartbeat, key 12; v3 adds InstanceID.
//
// Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
// ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
func (m *Machine) heartbeat(q *kmsg.HeartbeatRequest) kmsg.Response {
	response := q.ResponseKind().(*kmsg.HeartbeatResponse)
	response.ErrorCode = int16(m.beat(q))
	return response
}

func (m *Machine) beat(q *kmsg.HeartbeatRequest) kafka.Code {
	g := m.groups[q.Group]
	if q.Group == "" {
		return kafka.InvalidGroupID
	}
	if g == nil {
		return kafka.UnknownMemberID
	}
	if code := g.check(q.MemberID, q.InstanceID); code != kafka.None {
		return code
	}
	if q.Generation != g.generation {
		return kafka.IllegalGeneration
	}
	m.touch(g, g.members[q.MemberID])
	if g.state == preparing {
		return kafka.RebalanceInProgress
	}
	return kafka.None
}

// LeaveGroup, key 13; v3 takes several members, by instance id too.
//
// Errors: INVALID_GROUP_ID; and per member (before v3 for all) UNKNOWN_MEMBER_ID,
// FENCED_INSTANCE_ID.
func (m *Machine) leave(q *kmsg.LeaveGroupRequest) kmsg.Response {
	response := q.ResponseKind().(*kmsg.LeaveGroupResponse)
	g := m.groups[q.Group]
	if q.Group == "" {
		response.ErrorCode = int16(kafka.InvalidGroupID)
		return response
	}
	if g == nil {
		g = newGroup(q.Group) // where nobody is a member
	}
	leaving := q.Members
	if q.Version < 3 {
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = q.MemberID
		leaving = []kmsg.LeaveGroupRequestMember{one}
	}
	left := false
	for _, who := range leaving {
		code := m.leaveOne(g, who)
		left = left || code == kafka.None
		if q.Version < 3 {
			response.ErrorCode = int16(code)
			continue
		}
		one := kmsg.NewLeaveGroupResponseMember()
		one.MemberID, one.InstanceID, one.ErrorCode = who.MemberID, who.InstanceID, int16(code)
		response.Members = append(response.Members, one)
	}
	if left {
		m.afterRemoval(g)
	}
	return response
}

func (m *Machine) leaveOne(g *group, who kmsg.LeaveGroupRequestMember) kafka.Code {
	id := who.MemberID
	if who.InstanceID == nil {
		if _, ok := g.pending[id]; ok {
			delete(g.pending, id)
			return kafka.None
		}
	} else if id == "" { // an operator removes a static member
		id = g.static[*who.InstanceID]
	}
	if code := g.check(id, who.InstanceID); code != kafka.None {
		return code
	}
	m.dropMember(g, g.members[id])
	return kafka.None
}
