package group

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// A state is where a group stands; the arrows are in the package comment.
type state uint8

const (
	empty state = iota
	preparing
	completing
	stable
)

var stateNames = [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}

func (s state) String() string { return stateNames[s] }

// mayFollow is the only place that knows the arrows.
func (s state) mayFollow(from state) bool {
	switch s {
	case empty:
		return from == preparing
	case preparing:
		return from == empty || from == completing || from == stable
	case completing:
		return from == preparing
	case stable:
		return from == completing
	}
	return false
}

const consumerType = "consumer"

// A group is one consumer group, or the offsets of consumers that only commit.
type group struct {
	name         string
	state        state
	previous     state
	since        int64 // when the state came, ms; -1 unknown
	generation   int32
	protocolType string // "" where nobody ever joined
	protocol     string // chosen; "" none
	leader       string // member id; "" none

	members map[string]*member
	order   []string             // member ids, as they came
	static  map[string]string    // instance id → member id
	pending map[string]time.Time // ids handed out and not used yet → until when
	waitFor map[string]bool      // members that have not synced in this generation

	fresh        bool // not in the log yet
	newcomers    bool // somebody came during the initial delay
	remaining    time.Duration
	joinDeadline time.Time
	syncDeadline time.Time

	offsets map[place]offset
}

// A member is one consumer of a group.
type member struct {
	id, instance     string // instance "" for a dynamic one
	clientID, host   string
	sessionTimeout   time.Duration
	rebalanceTimeout time.Duration
	protocols        []kmsg.JoinGroupRequestProtocol
	assignment       []byte
	isNew            bool // has not got an answer to its first join

	join *waiting // its join request, unanswered
	sync *waiting

	deadline time.Time // of its session
	timer    time.Time // of the timer that is set, at or before the deadline
	timed    bool
}

// A waiting is a request whose answer depends on others, in its version.
type waiting struct {
	id      RequestID
	version int16
}

func (p *member) awaits() bool { return p.join != nil || p.sync != nil }

func (p *member) instanceID() *string {
	if p.instance == "" {
		return nil
	}
	return &p.instance
}

// metadata is what the member said for a protocol.
func (p *member) metadata(protocol string) []byte {
	for _, q := range p.protocols {
		if q.Name == protocol {
			return q.Metadata
		}
	}
	return nil
}

func (p *member) supports(protocol string) bool {
	return slices.ContainsFunc(p.protocols, func(q kmsg.JoinGroupRequestProtocol) bool { return q.Name == protocol })
}

// matches tells whether the member says the same as before.
func (p *member) matches(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(p.protocols, protocols, func(a, b kmsg.JoinGroupRequestProtocol) bool {
		return a.Name == b.Name && string(a.Metadata) == string(b.Metadata)
	})
}

func newGroup(name string) *group {
	return &group{
		name:    name,
		since:   -1,
		members: map[string]*member{},
		static:  map[string]string{},
		pending: map[string]time.Time{},
		waitFor: map[string]bool{},
		offsets: map[place]offset{},
	}
}

func (g *group) enter(s state, now time.Time) {
	if !s.mayFollow(g.state) {
		panic(fmt.Sprintf("group %s: %v cannot follow %v", g.name, s, g.state))
	}
	g.previous, g.state, g.since = g.state, s, now.UnixMilli()
}

func (g *group) add(p *member) {
	if len(g.members) == 0 {
		g.leader = p.id
	}
	g.members[p.id] = p
	g.order = append(g.order, p.id)
	if p.instance != "" {
		g.static[p.instance] = p.id
	}
	delete(g.pending, p.id)
}

func (g *group) remove(p *member) {
	delete(g.members, p.id)
	delete(g.waitFor, p.id)
	g.order = slices.DeleteFunc(g.order, func(id string) bool { return id == p.id })
	if p.instance != "" && g.static[p.instance] == p.id {
		delete(g.static, p.instance)
	}
	if g.leader == p.id {
		g.leader = ""
		if len(g.order) > 0 {
			g.leader = g.order[0]
		}
	}
}

// check tells what is wrong with who a request says it is.
func (g *group) check(id string, instance *string) kafka.Code {
	if instance != nil {
		switch known, ok := g.static[*instance]; {
		case !ok:
			return kafka.UnknownMemberID
		case known != id:
			return kafka.FencedInstanceID
		}
	}
	if g.members[id] == nil {
		return kafka.UnknownMemberID
	}
	return kafka.None
}

func (g *group) joining() int {
	n := 0
	for _, p := range g.members {
		if p.join != nil {
			n++
		}
	}
	return n
}

// rebalanceTimeout is the longest that any member asks for.
func (g *group) rebalanceTimeout() time.Duration {
	var d time.Duration
	for _, p := range g.members {
		d = max(d, p.rebalanceTimeout)
	}
	return d
}

// common tells whether every member supports the protocol.
func (g *group) common(protocol string) bool {
	for _, p := range g.members {
		if !p.supports(protocol) {
			return false
		}
	}
	return true
}

// supportsAny tells whether one that comes with these protocols fits in.
func (g *group) supportsAny(protocolType string, protocols []kmsg.JoinGroupRequestProtocol) bool {
	if g.state == empty {
		return protocolType != "" && len(protocols) > 0
	}
	return g.protocolType == protocolType &&
		slices.ContainsFunc(protocols, func(q kmsg.JoinGroupRequestProtocol) bool { return g.common(q.Name) })
}

// vote chooses the protocol: of those that all support, the one that most members
// have first among them; equal votes go to the earlier in the first member's list.
func (g *group) vote() string {
	votes := map[string]int{}
	for _, p := range g.members {
		for _, q := range p.protocols {
			if g.common(q.Name) {
				votes[q.Name]++
				break
			}
		}
	}
	best := ""
	for _, q := range g.members[g.order[0]].protocols {
		if votes[q.Name] > votes[best] {
			best = q.Name
		}
	}
	return best
}

// subscribes tells whether the group reads a topic, and so may not lose its
// offsets; known is false where members say nothing that can be read.
func (g *group) subscribes(topic string) (yes, known bool) {
	if g.protocolType != consumerType || g.protocol == "" {
		return g.protocolType == consumerType && len(g.members) > 0, false
	}
	for _, p := range g.members {
		var said kmsg.ConsumerMemberMetadata
		if err := said.ReadFrom(p.metadata(g.protocol)); err != nil {
			return true, false
		}
		yes = yes || slices.Contains(said.Topics, topic)
	}
	return yes, true
}
