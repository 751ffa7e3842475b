package api

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/conn"
	"varve/broker/coordinator"
	"varve/broker/group"
	"varve/broker/kafka"
	"varve/broker/wire"
)

// Groups are the shards of group coordinators on this broker.
type Groups interface {
	// Ready tells whether the coordinator of a group can be asked here, and makes the
	// offsets topic where there is none yet.
	Ready(ctx context.Context, group string) *kafka.Error
	// Shard is the number of a group's shard; -1 where there is none.
	Shard(group string) int32
	// Shards are those here that may know of groups.
	Shards() []int32
	// Ask hands a request to a shard; done is called once, from any goroutine.
	Ask(shard int32, from coordinator.Client, req kmsg.Request, done func(kmsg.Response))
}

// groups answers the requests that group coordinators serve.
func (b *Broker) groups(x *call) error {
	switch x.h.Key {
	case wire.OffsetCommit:
		return serve(x, b.offsetCommit)
	case wire.OffsetFetch:
		return serve(x, b.offsetFetch)
	case wire.JoinGroup:
		return serve(x, b.joinGroup)
	case wire.Heartbeat:
		return serve(x, b.heartbeat)
	case wire.LeaveGroup:
		return serve(x, b.leaveGroup)
	case wire.SyncGroup:
		return serve(x, b.syncGroup)
	case wire.DescribeGroups:
		return serve(x, b.describeGroups)
	case wire.ListGroups:
		return serve(x, b.listGroups)
	case wire.DeleteGroups:
		return serve(x, b.deleteGroups)
	case wire.OffsetDelete:
		return serve(x, b.offsetDelete)
	}
	panic(fmt.Sprintf("api: %v is no request of groups", x.h))
}

// askGroup has a group's coordinator answer a request.
func (b *Broker) askGroup(x *call, group string, req kmsg.Request) kmsg.Response {
	return b.ask(x, []question{{b.opt.Groups.Shard(group), req}})[0]
}

// A question is a request to one shard.
type question struct {
	shard int32
	req   kmsg.Request
}

// ask asks several shards and returns their answers in the order of the questions. It
// parks the connection until all are there; what is not when the broker stops or the
// connection is lost is NOT_COORDINATOR: the client asks again.
func (b *Broker) ask(x *call, qs []question) []kmsg.Response {
	a := newAnswers(len(qs), x.c.Waker())
	from := coordinator.Client{ID: x.c.ClientID(), Host: javaHost(x.c)}
	for i, q := range qs {
		b.opt.Groups.Ask(q.shard, from, q.req, func(r kmsg.Response) { a.set(i, r) })
	}
	for !a.complete() && x.c.Park(time.Now().Add(parkMax)) {
	}
	got := a.close()
	for i := range got {
		if got[i] == nil {
			got[i] = group.Refuse(qs[i].req, kafka.NotCoordinator)
		}
	}
	return got
}

// parkMax is longer than any answer takes: a rebalance timeout has 32 bits of ms.
const parkMax = 30 * 24 * time.Hour

// answers are those to one request, as they come in.
type answers struct {
	waker *conn.Waker

	mu struct {
		sync.Mutex
		got  []kmsg.Response // nil: not there yet; nil as a whole once nobody waits
		left int
	}
}

func newAnswers(n int, w *conn.Waker) *answers {
	a := &answers{waker: w}
	a.mu.got, a.mu.left = make([]kmsg.Response, n), n
	return a
}

func (a *answers) set(i int, r kmsg.Response) {
	a.mu.Lock()
	last := false
	if a.mu.got != nil {
		a.mu.got[i] = r
		a.mu.left--
		last = a.mu.left == 0
	}
	a.mu.Unlock()
	if last {
		a.waker.Wake()
	}
}

func (a *answers) complete() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.left == 0
}

// close takes what is there; what comes later is dropped.
func (a *answers) close() []kmsg.Response {
	a.mu.Lock()
	defer a.mu.Unlock()
	got := a.mu.got
	a.mu.got = nil
	return got
}

// javaHost is a client's address as Java writes it, which is how tools show a member:
// a slash, and IPv6 in eight groups without zeros in front.
func javaHost(c *conn.Conn) string {
	a := c.Remote.Unmap()
	switch {
	case !a.IsValid():
		return "/" + c.RemoteAddr()
	case a.Is4():
		return "/" + a.String()
	}
	return "/" + longIPv6(a)
}

func longIPv6(a netip.Addr) string {
	b := a.As16()
	var s []byte
	for i := 0; i < len(b); i += 2 {
		if i > 0 {
			s = append(s, ':')
		}
		s = fmt.Appendf(s, "%x", uint16(b[i])<<8|uint16(b[i+1]))
	}
	if zone := a.Zone(); zone != "" {
		s = append(append(s, '%'), zone...)
	}
	return string(s)
}
