package conn

import (
	"context"
	"sync"
	"time"
)

const (
	tick       = 5 * time.Millisecond
	wheelSlots = 512
)

// A wheel wakes connections when they are due. A connection stays in it where it
// is after its wait has ended otherwise: when its tick comes, Conn.due says that
// nothing is due, or how much later. So most waits neither enter nor leave it.
type wheel struct {
	now   func() time.Duration
	nudge chan struct{} // the first tick has moved forward
	fired []*Conn       // scratch of the runner

	mu struct {
		sync.Mutex
		slots [wheelSlots]node // list heads
		last  int64            // tick up to which slots were looked at
		first int64            // no connection is due before this tick
		size  int
	}
}

// A node is a connection's place in the wheel.
type node struct {
	next, prev *node
	c          *Conn
	tick       int64 // 0 where it is in no list
}

func newWheel(now func() time.Duration) *wheel {
	w := &wheel{now: now, nudge: make(chan struct{}, 1)}
	for i := range w.mu.slots {
		h := &w.mu.slots[i]
		h.next, h.prev = h, h
	}
	return w
}

// ensure has the connection looked at by t at the latest.
func (w *wheel) ensure(c *Conn, t time.Duration) {
	w.mu.Lock()
	moved := w.add(&c.node, tickOf(t))
	w.mu.Unlock()
	if moved {
		select {
		case w.nudge <- struct{}{}:
		default:
		}
	}
}

// tickOf rounds up: no deadline is early.
func tickOf(t time.Duration) int64 { return max(1, int64((t+tick-1)/tick)) }

// add is called with the lock. It tells whether the runner must wake earlier.
func (w *wheel) add(n *node, at int64) bool {
	at = max(at, w.mu.last+1)
	if n.tick != 0 && n.tick <= at {
		return false
	}
	w.unlink(n)
	head := &w.mu.slots[at%wheelSlots]
	n.tick, n.next, n.prev = at, head, head.prev
	n.prev.next, head.prev = n, n
	w.mu.size++
	if w.mu.size > 1 && at >= w.mu.first {
		return false
	}
	w.mu.first = at
	return true
}

func (w *wheel) unlink(n *node) {
	if n.tick == 0 {
		return
	}
	n.prev.next, n.next.prev = n.next, n.prev
	n.next, n.prev, n.tick = nil, nil, 0
	w.mu.size--
}

// remove forgets a connection that ends.
func (w *wheel) remove(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlink(&c.node)
}

// run wakes connections until the context ends. It sleeps while nothing is due.
func (w *wheel) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.nudge:
		}
		timer.Reset(w.turn(w.now()))
	}
}

// turn wakes what is due and returns how long nothing more is.
func (w *wheel) turn(now time.Duration) time.Duration {
	w.mu.Lock()
	to := int64(now / tick)
	for at := max(w.mu.last+1, to-wheelSlots+1); at <= to; at++ {
		w.collect(&w.mu.slots[at%wheelSlots], to, now)
	}
	w.mu.last = max(w.mu.last, to)
	wait := time.Hour
	if w.mu.size > 0 {
		w.mu.first = w.next()
		wait = time.Duration(w.mu.first)*tick - now
	}
	w.mu.Unlock()

	for i, c := range w.fired {
		c.signal(evDue)
		w.fired[i] = nil
	}
	w.fired = w.fired[:0]
	return wait
}

// collect takes from a list what has come to its tick.
func (w *wheel) collect(head *node, to int64, now time.Duration) {
	for n := head.next; n != head; {
		next := n.next
		if n.tick <= to {
			w.unlink(n)
			switch due := time.Duration(n.c.due.Load()); {
			case due == 0:
			case due > now:
				w.mu.last = max(w.mu.last, to) // it must not come into this turn again
				w.add(n, tickOf(due))
			default:
				w.fired = append(w.fired, n.c)
			}
		}
		n = next
	}
}

// next is the first tick from which on a list is not empty; what is in it may be
// due only a turn of the wheel later.
func (w *wheel) next() int64 {
	for at := w.mu.last + 1; ; at++ {
		if head := &w.mu.slots[at%wheelSlots]; head.next != head || at > w.mu.last+wheelSlots {
			return at
		}
	}
}
