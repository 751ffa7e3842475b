package conn

import (
	"math"
	"time"
)

// A connection's state is one word: events that happened to it and have not been
// looked at, and the mode in which its goroutine waits. Whoever raises an event
// that the mode waits for ends the wait; a goroutine begins a wait only where no
// such event is there. So none is lost, and a wait may end for nothing.
const (
	evWake   uint32 = 1 << iota // Waker.Wake
	evSlot                      // a pending answer is complete
	evDue                       // a deadline has passed
	evStop                      // the server drains
	evBudget                    // there is room for requests again

	modeRead // in a read of the socket
	modePark // in Park or Block
	modeMute // reading nothing: throttled, or too much is pending

	modes  = modeRead | modePark | modeMute
	events = evWake | evSlot | evDue | evStop | evBudget
)

// never is a deadline that does not come.
const never = time.Duration(math.MaxInt64)

// past is a read deadline that ends a read at once.
var past = time.Unix(1, 0)

// A Waker ends the connection's Park. It may be kept as long as one likes, and
// called from everywhere: it takes no lock, and does nothing where the connection
// is not parked or has ended.
type Waker struct{ c *Conn }

// Waker is the connection's, always the same.
func (c *Conn) Waker() *Waker { return &c.waker }

// Wake ends the present Park, or the next one at once.
func (w *Waker) Wake() { w.c.signal(evWake) }

// signal raises an event and ends the wait that it ends.
func (c *Conn) signal(ev uint32) {
	if c.state.Load()&ev != 0 {
		return // whoever raised it first has seen to the wait
	}
	old := c.state.Or(ev)
	switch {
	case old&ev != 0:
	case old&modePark != 0, old&modeMute != 0 && ev != evWake:
		select {
		case c.park <- struct{}{}:
		default:
		}
	case old&modeRead != 0 && ev != evWake:
		c.nc.SetReadDeadline(past)
	}
}

// begin enters a mode, unless an event is there that the mode waits for.
func (c *Conn) begin(mode uint32) bool {
	ends := events
	if mode != modePark {
		ends &^= evWake
	}
	for {
		old := c.state.Load()
		if old&ends != 0 {
			return false
		}
		if c.state.CompareAndSwap(old, old|mode) {
			return true
		}
	}
}

// leave ends a mode.
func (c *Conn) leave() { c.state.And(^modes) }

// take looks at the events of a mask: they are the caller's to act on.
func (c *Conn) take(mask uint32) uint32 {
	ev := c.state.And(^mask) & mask
	if ev&evStop != 0 {
		c.stopping = true
	}
	return ev
}

// Park waits until Wake is called or the time has come, and tells whether it was
// woken; it may be for nothing: look again. Requests behind this one wait, answers
// before it are sent. Nothing may have been begun in Out. Where the server stops
// or the connection is lost Park returns false at once.
func (c *Conn) Park(until time.Time) bool {
	limit := until.Sub(c.srv.start)
	for {
		ev := c.take(events)
		switch {
		case ev&evWake != 0:
			return true
		case c.stopping, c.doom.Load() != nil, c.out.err != nil, c.srv.now() >= limit:
			return false
		}
		c.sleep(modePark, limit)
	}
}

// sleep sends what is ready and waits for an event of the mode, at most until
// limit. It may return early.
func (c *Conn) sleep(mode uint32, limit time.Duration) {
	if c.out.begun {
		panic("conn: waiting in the middle of an answer")
	}
	c.take(evSlot | evDue)
	if c.flush() != nil {
		limit = 0 // the connection is lost: flush keeps the error
	}
	limit = min(limit, c.out.firstDeadline())
	if limit <= c.srv.now() {
		return
	}
	c.setDue(limit)
	if c.begin(mode) {
		<-c.park
		c.leave()
	}
}

// setDue has the wheel wake the connection at t, or not at all.
func (c *Conn) setDue(t time.Duration) {
	if t == never {
		c.due.Store(0)
		return
	}
	c.due.Store(int64(t))
	c.srv.wheel.ensure(c, t)
}
