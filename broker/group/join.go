package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// JoinGroup, key 11.
//
//	v1  RebalanceTimeoutMillis; before, the session timeout is meant
//	v4  a new dynamic member gets its id first: MEMBER_ID_REQUIRED (KIP-394)
//	v5  InstanceID: static members (KIP-345)
//	v7  ProtocolType in the response, null on errors
//	v9  SkipAssignment for a static leader that comes again (KIP-814)
//
// Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, UNKNOWN_MEMBER_ID,
// FENCED_INSTANCE_ID, MEMBER_ID_REQUIRED, INCONSISTENT_GROUP_PROTOCOL,
// GROUP_MAX_SIZE_REACHED, REBALANCE_IN_PROGRESS.
func (m *Machine) join(r Request, q *kmsg.JoinGroupRequest) {
	session := millis(q.SessionTimeoutMillis)
	switch {
	case q.Group == "":
		m.refuseJoin(r.ID, q, q.MemberID, kafka.InvalidGroupID)
		return
	case session < m.config.MinSession || session > m.config.MaxSession:
		m.refuseJoin(r.ID, q, q.MemberID, kafka.InvalidSessionTimeout)
		return
	}
	g := m.groups[q.Group]
	if g == nil {
		if q.MemberID != "" {
			m.refuseJoin(r.ID, q, q.MemberID, kafka.UnknownMemberID)
			return
		}
		g = newGroup(q.Group)
	}
	switch {
	case !g.accepts(q.MemberID, m.config.MaxSize):
		if p := g.members[q.MemberID]; p != nil {
			m.dropMember(g, p)
		}
		delete(g.pending, q.MemberID)
		m.refuseJoin(r.ID, q, "", kafka.GroupMaxSizeReached)
	case !g.supportsAny(q.ProtocolType, q.Protocols):
		m.refuseJoin(r.ID, q, q.MemberID, kafka.InconsistentGroupProtocol)
	case q.MemberID == "":
		m.keep(g)
		m.joinNew(g, r, q)
	default:
		m.joinAgain(g, r, q)
	}
}

// accepts tells whether the group has room for a member.
func (g *group) accepts(id string, most int) bool {
	p := g.members[id]
	switch g.state {
	case empty:
		return true
	case preparing:
		return p != nil && p.join != nil || g.joining() < most
	}
	return p != nil || len(g.members) < most
}

// keep puts a new group into the map and the log.
func (m *Machine) keep(g *group) {
	if m.groups[g.name] == nil {
		m.groups[g.name] = g
		g.fresh, g.since = true, m.now.UnixMilli()
	}
}

// joinNew lets in one that has no member id yet.
func (m *Machine) joinNew(g *group, r Request, q *kmsg.JoinGroupRequest) {
	if q.InstanceID != nil {
		id := *q.InstanceID + "-" + r.NewID
		if old, ok := g.static[*q.InstanceID]; ok {
			m.replaceStatic(g, g.members[old], id, r, q)
			return
		}
		m.addMember(g, id, r, q)
		return
	}
	id := r.ClientID + "-" + r.NewID
	if q.Version < 4 {
		m.addMember(g, id, r, q)
		return
	}
	m.writeFresh(g)
	until := m.now.Add(millis(q.SessionTimeoutMillis))
	g.pending[id] = until
	m.schedule(timer{at: until, kind: pendingTimer, group: g.name, member: id})
	m.refuseJoin(r.ID, q, id, kafka.MemberIDRequired)
}

// joinAgain takes a join of one that has a member id.
func (m *Machine) joinAgain(g *group, r Request, q *kmsg.JoinGroupRequest) {
	if _, ok := g.pending[q.MemberID]; ok && q.InstanceID == nil {
		m.addMember(g, q.MemberID, r, q)
		return
	}
	if code := g.check(q.MemberID, q.InstanceID); code != kafka.None {
		m.refuseJoin(r.ID, q, q.MemberID, code)
		return
	}
	p := g.members[q.MemberID]
	same := p.matches(q.Protocols)
	switch {
	case g.state == preparing,
		g.state == completing && !same,
		g.state == stable && (!same || g.leader == p.id):
		m.updateMember(g, p, r, q)
		m.rebalanceOrComplete(g)
	case g.state == completing:
		// It has not seen the answer of this generation.
		m.reply(r.ID, m.joined(g, p, q.Version, p.id == g.leader))
	case g.state == stable:
		m.reply(r.ID, m.joined(g, p, q.Version, false))
	default:
		m.refuseJoin(r.ID, q, q.MemberID, kafka.UnknownMemberID)
	}
}

func (m *Machine) addMember(g *group, id string, r Request, q *kmsg.JoinGroupRequest) {
	m.writeFresh(g)
	p := &member{id: id, clientID: r.ClientID, host: r.ClientHost, isNew: true}
	if q.InstanceID != nil {
		p.instance = *q.InstanceID
	}
	if g.state == preparing && g.previous == empty {
		g.newcomers = true
	}
	if len(g.members) == 0 {
		g.protocolType = q.ProtocolType
	}
	g.add(p)
	m.updateMember(g, p, r, q)
	// It has no id to send heartbeats with; one that went away must not stay (KAFKA-9752).
	m.touchFor(g, p, m.config.NewMemberTimeout)
	m.rebalanceOrComplete(g)
}

// updateMember takes what a join says and lets the join wait.
func (m *Machine) updateMember(_ *group, p *member, r Request, q *kmsg.JoinGroupRequest) {
	if p.join != nil {
		m.answerJoin(p, kafka.RebalanceInProgress) // asked twice: the later one counts
	}
	p.protocols = cloneProtocols(q.Protocols)
	p.sessionTimeout = millis(q.SessionTimeoutMillis)
	p.rebalanceTimeout = p.sessionTimeout
	if q.Version >= 1 {
		p.rebalanceTimeout = millis(q.RebalanceTimeoutMillis)
	}
	p.join = &waiting{r.ID, q.Version}
}

// replaceStatic gives a static member that comes again without an id a new one. The
// old id is fenced. In Stable nobody else need know, unless the protocol changes; in
// CompletingRebalance the leader may hold the old id, so all join again (KAFKA-9801).
func (m *Machine) replaceStatic(g *group, p *member, id string, r Request, q *kmsg.JoinGroupRequest) {
	oldLeader := g.leader
	m.answerJoin(p, kafka.FencedInstanceID)
	m.answerSync(p, kafka.FencedInstanceID)
	m.rename(g, p, id)
	p.clientID, p.host = r.ClientID, r.ClientHost
	m.updateMember(g, p, r, q)
	m.touch(g, p)
	switch g.state {
	case stable:
		if g.protocol != g.vote() {
			m.prepare(g)
			return
		}
		m.write(groupRecord(g))
		m.answerStatic(g, p, q, oldLeader)
	case completing:
		m.prepare(g)
	default:
		m.maybeCompleteJoin(g)
	}
}

// answerStatic answers a static member that came back to a stable group. From v9 on
// a leader is told that it leads and to let the assignment be; before, it is told
// its old id as leader's, so that it does not assign.
func (m *Machine) answerStatic(g *group, p *member, q *kmsg.JoinGroupRequest, oldLeader string) {
	leads := p.id == g.leader
	response := m.joined(g, p, q.Version, leads && q.Version >= 9)
	if q.Version >= 9 {
		response.SkipAssignment = leads
	} else {
		response.LeaderID = oldLeader
	}
	m.reply(p.join.id, response)
	p.join, p.isNew = nil, false
}

// rename gives a member another id, in its place.
func (m *Machine) rename(g *group, p *member, id string) {
	for i, old := range g.order {
		if old == p.id {
			g.order[i] = id
		}
	}
	if g.leader == p.id {
		g.leader = id
	}
	if g.waitFor[p.id] {
		delete(g.waitFor, p.id)
		g.waitFor[id] = true
	}
	delete(g.members, p.id)
	p.id, p.timed = id, false
	g.members[id] = p
	g.static[p.instance] = id
}

// joined is the answer of the generation at hand; the leader's has all members.
func (m *Machine) joined(g *group, p *member, version int16, all bool) *kmsg.JoinGroupResponse {
	response := joinResponse(version)
	response.Generation = g.generation
	protocolType, protocol := g.protocolType, g.protocol
	response.ProtocolType, response.Protocol = &protocolType, &protocol
	response.LeaderID = g.leader
	response.MemberID = p.id
	if all {
		response.Members = g.memberList()
	}
	return response
}

func (g *group) memberList() []kmsg.JoinGroupResponseMember {
	var list []kmsg.JoinGroupResponseMember
	for _, id := range g.order {
		p := g.members[id]
		one := kmsg.NewJoinGroupResponseMember()
		one.MemberID = p.id
		one.InstanceID = p.instanceID()
		one.ProtocolMetadata = p.metadata(g.protocol)
		list = append(list, one)
	}
	return list
}

func joinResponse(version int16) *kmsg.JoinGroupResponse {
	return (&kmsg.JoinGroupRequest{Version: version}).ResponseKind().(*kmsg.JoinGroupResponse)
}

func (m *Machine) refuseJoin(id RequestID, q *kmsg.JoinGroupRequest, memberID string, code kafka.Code) {
	m.reply(id, refusedJoin(q.Version, memberID, code))
}

func refusedJoin(version int16, memberID string, code kafka.Code) *kmsg.JoinGroupResponse {
	response := joinResponse(version)
	response.ErrorCode = int16(code)
	response.Generation = -1
	response.MemberID = memberID
	if version < 7 {
		response.Protocol = new(string)
	}
	return response
}

// answerJoin refuses the join that a member waits with, if it does.
func (m *Machine) answerJoin(p *member, code kafka.Code) {
	if p.join != nil {
		m.reply(p.join.id, refusedJoin(p.join.version, p.id, code))
		p.join = nil
	}
}

// cloneProtocols copies what a request says, whose bytes lie in a buffer of others.
func cloneProtocols(protocols []kmsg.JoinGroupRequestProtocol) []kmsg.JoinGroupRequestProtocol {
	own := slices.Clone(protocols)
	for i := range own {
		own[i].Metadata = bytes.Clone(own[i].Metadata)
	}
	return own
}

func millis(n int32) time.Duration { return time.Duration(n) * time.Millisecond }
