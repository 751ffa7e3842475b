package group

import (
	"container/heap"
	"time"
)

// A timerKind says what is due.
type timerKind uint8

const (
	sessionTimer   timerKind = iota // a member's session
	pendingTimer                    // of one that got an id and has not joined with it
	joinTimer                       // the join phase
	syncTimer                       // the sync phase
	retentionTimer                  // look for old offsets, of the whole shard
)

// A timer is due at a time, unless the state it is about has moved on: then it is
// void, or comes again at the state's own deadline. So a heartbeat costs no timer.
type timer struct {
	at     time.Time
	kind   timerKind
	group  string
	member string
}

// timers is a heap, the earliest first.
type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	*t = (*t)[:last]
	return x
}

func (t timers) next() (time.Time, bool) {
	if len(t) == 0 {
		return time.Time{}, false
	}
	return t[0].at, true
}

func (m *Machine) schedule(t timer) { heap.Push(&m.timers, t) }

func (m *Machine) runTimers() {
	for len(m.timers) > 0 && !m.timers[0].at.After(m.now) {
		m.fire(heap.Pop(&m.timers).(timer))
	}
}

func (m *Machine) fire(t timer) {
	if t.kind == retentionTimer {
		m.expireOffsets()
		m.schedule(timer{at: m.now.Add(m.config.RetentionInterval), kind: retentionTimer})
		return
	}
	g := m.groups[t.group]
	if g == nil {
		return
	}
	switch t.kind {
	case sessionTimer:
		m.sessionDue(g, t)
	case pendingTimer:
		if g.pending[t.member].Equal(t.at) {
			delete(g.pending, t.member)
			m.maybeCompleteJoin(g)
		}
	case joinTimer:
		if g.joinDeadline.Equal(t.at) {
			m.joinDue(g)
		}
	case syncTimer:
		if g.syncDeadline.Equal(t.at) {
			m.syncDue(g)
		}
	}
}

// sessionDue removes a member whose session is over. One that waits for an answer of
// ours is alive; it is looked at again when it has got it.
func (m *Machine) sessionDue(g *group, t timer) {
	member := g.members[t.member]
	if member == nil || !member.timed || !member.timer.Equal(t.at) {
		return
	}
	member.timed = false
	if member.awaits() && !member.isNew {
		return
	}
	if member.deadline.After(m.now) {
		m.watch(g, member)
		return
	}
	m.removeMember(g, member)
}

// touch begins a member's session anew.
func (m *Machine) touch(g *group, member *member) {
	m.touchFor(g, member, member.sessionTimeout)
}

func (m *Machine) touchFor(g *group, member *member, d time.Duration) {
	member.deadline = m.now.Add(d)
	m.watch(g, member)
}

// watch sees to it that a timer is due at the member's deadline or before.
func (m *Machine) watch(g *group, member *member) {
	if member.timed && !member.deadline.Before(member.timer) {
		return
	}
	member.timed, member.timer = true, member.deadline
	m.schedule(timer{at: member.deadline, kind: sessionTimer, group: g.name, member: member.id})
}

func (m *Machine) scheduleJoin(g *group, d time.Duration) {
	g.joinDeadline = m.now.Add(d)
	m.schedule(timer{at: g.joinDeadline, kind: joinTimer, group: g.name})
}

func (m *Machine) scheduleSync(g *group) {
	g.syncDeadline = m.now.Add(g.rebalanceTimeout())
	m.schedule(timer{at: g.syncDeadline, kind: syncTimer, group: g.name})
}
