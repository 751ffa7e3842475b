package coordinator

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/group"
	"varve/broker/kafka"
)

// waits are the requests of a shard that have no answer yet. They have a lock of their
// own, which nothing is called under: answers come while the shard's is held.
type waits struct {
	mu struct {
		sync.Mutex
		last    group.RequestID
		open    map[group.RequestID]wait
		dropped refusals
	}
}

// A wait is a request and whom to answer.
type wait struct {
	body kmsg.Request
	done func(kmsg.Response)
}

// refusals are waits that are to be refused once no lock is held.
type refusals []refusal

type refusal struct {
	wait
	code kafka.Code
}

func (rs refusals) refuse() {
	for _, r := range rs {
		r.done(group.Refuse(r.body, r.code))
	}
}

// add gives a request a name that no other request of the shard ever has.
func (ws *waits) add(w wait) group.RequestID {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.mu.last++
	ws.mu.open[ws.mu.last] = w
	return ws.mu.last
}

// take removes a wait; ok is false where it was answered or dropped before.
func (ws *waits) take(id group.RequestID) (w wait, ok bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w, ok = ws.mu.open[id]
	delete(ws.mu.open, id)
	return w, ok
}

func (ws *waits) answer(replies []group.Reply) {
	for _, r := range replies {
		if w, ok := ws.take(r.ID); ok {
			w.done(r.Response)
		}
	}
}

func (ws *waits) refuse(replies []group.Reply, code kafka.Code) {
	for _, r := range replies {
		if w, ok := ws.take(r.ID); ok {
			w.done(group.Refuse(w.body, code))
		}
	}
}

// drop marks everything that waits as to be refused.
func (ws *waits) drop(code kafka.Code) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.mu.open {
		ws.mu.dropped = append(ws.mu.dropped, refusal{w, code})
	}
	clear(ws.mu.open)
}

func (ws *waits) takeDropped() refusals {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	d := ws.mu.dropped
	ws.mu.dropped = nil
	return d
}
