package group

import (
	"time"

	"varve/broker/kafka"
)

// rebalanceOrComplete begins a rebalance, or goes on with the one at hand.
func (m *Machine) rebalanceOrComplete(g *group) {
	if g.state == preparing {
		m.maybeCompleteJoin(g)
		return
	}
	m.prepare(g)
}

// prepare begins the join phase. The first of a group waits a while for others.
func (m *Machine) prepare(g *group) {
	if g.state == completing {
		for _, id := range g.order {
			p := g.members[id]
			p.assignment = nil
			if p.sync != nil {
				m.answerSync(p, kafka.RebalanceInProgress)
				m.touch(g, p)
			}
		}
	}
	g.syncDeadline = time.Time{}
	clear(g.waitFor)
	first := g.state == empty
	g.enter(preparing, m.now)
	g.newcomers = false
	if first {
		g.remaining = max(g.rebalanceTimeout()-m.config.InitialDelay, 0)
		m.scheduleJoin(g, m.config.InitialDelay)
		if m.config.InitialDelay == 0 {
			m.joinDue(g)
		}
		return
	}
	if g.allJoined() {
		m.completeJoin(g)
		return
	}
	m.scheduleJoin(g, g.rebalanceTimeout())
}

func (g *group) allJoined() bool { return g.joining() == len(g.members) && len(g.pending) == 0 }

// maybeCompleteJoin ends the join phase when nobody is missing. That of a new group
// ends by its delay alone.
func (m *Machine) maybeCompleteJoin(g *group) {
	if g.state == preparing && g.previous != empty && g.allJoined() {
		m.completeJoin(g)
	}
}

// joinDue ends the join phase, or prolongs a new group's while members keep coming.
func (m *Machine) joinDue(g *group) {
	if g.state != preparing {
		return
	}
	if g.previous == empty && g.newcomers && g.remaining > 0 {
		g.newcomers = false
		d := min(m.config.InitialDelay, g.remaining)
		g.remaining = max(g.remaining-m.config.InitialDelay, 0)
		m.scheduleJoin(g, d)
		return
	}
	m.completeJoin(g)
}

// completeJoin ends the join phase: who is missing goes, static members excepted;
// the next generation begins and those who joined hear of it.
func (m *Machine) completeJoin(g *group) {
	g.joinDeadline = time.Time{}
	for _, id := range append([]string(nil), g.order...) {
		if p := g.members[id]; p.join == nil && p.instance == "" {
			g.remove(p)
		}
	}
	if len(g.members) > 0 && !g.electJoined() {
		// Only static members, all away: their sessions decide.
		m.scheduleJoin(g, g.rebalanceTimeout())
		return
	}
	g.generation++
	if len(g.members) == 0 {
		g.protocol, g.leader = "", ""
		g.enter(empty, m.now)
		m.write(groupRecord(g))
		return
	}
	g.protocol = g.vote()
	g.enter(completing, m.now)
	for _, id := range g.order {
		p := g.members[id]
		g.waitFor[id] = true
		if p.join != nil {
			m.reply(p.join.id, m.joined(g, p, p.join.version, id == g.leader))
			p.join, p.isNew = nil, false
		}
		m.touch(g, p)
	}
	m.scheduleSync(g)
}

// electJoined sees to a leader that has joined; false if nobody has.
func (g *group) electJoined() bool {
	if p := g.members[g.leader]; p != nil && p.join != nil {
		return true
	}
	for _, id := range g.order {
		if g.members[id].join != nil {
			g.leader = id
			return true
		}
	}
	return false
}

// syncDue removes the members that did not sync in time.
func (m *Machine) syncDue(g *group) {
	g.syncDeadline = time.Time{}
	if g.state != completing && g.state != stable || len(g.waitFor) == 0 {
		return
	}
	for _, id := range append([]string(nil), g.order...) {
		if g.waitFor[id] {
			m.dropMember(g, g.members[id])
		}
	}
	m.prepare(g)
}

// dropMember takes a member out and answers what it waits for.
func (m *Machine) dropMember(g *group, p *member) {
	m.answerJoin(p, kafka.UnknownMemberID)
	m.answerSync(p, kafka.UnknownMemberID)
	g.remove(p)
}

// removeMember takes a member out and lets the others know.
func (m *Machine) removeMember(g *group, p *member) {
	m.dropMember(g, p)
	m.afterRemoval(g)
}

func (m *Machine) afterRemoval(g *group) {
	switch g.state {
	case stable, completing:
		m.prepare(g)
	case preparing:
		m.maybeCompleteJoin(g)
	}
}
