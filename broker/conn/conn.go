// Package conn is the broker's network: listeners, and connections that carry
// requests in and answers out. It knows frames and headers; what a request means is
// its Handler's.
//
// A connection has one goroutine, and while it is idle nothing else: no buffer, no
// timer. The goroutine waits until the socket is readable, reads into a pooled
// buffer, serves the whole frames in it in place and answers them with one write.
//
//	     readable                 whole frames              all served
//	idle ────────► buffer ──────► Handler.Serve ──────────► write ──► idle
//	                                 │      ▲
//	                                 │ Park │ Wake, deadline
//	                                 ▼      │
//	                               parked: nothing is read
//
// Answers leave in the order of the requests. There are two ways to wait without a
// goroutine of one's own:
//
//   - Park: a fetch without data mutes its connection, in its own goroutine, until
//     its Waker is called or a deadline passes.
//   - Pend: a produce that waits for replicas leaves a Slot in the queue of answers
//     and returns; the requests behind it are served, their answers wait. Whoever
//     calls the last Slot.Done wakes the goroutine out of its read by moving the
//     read deadline into the past.
//
// All deadlines of all connections sit in one timer wheel. One look a second over
// all connections ends those that are idle, that stopped in the middle of a frame,
// or that do not read their answers.
package conn

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"varve/broker/wire"
)

// A Handler serves requests. Its methods run in the connection's goroutine, one at
// a time for each connection.
type Handler interface {
	// Serve answers one request through out: Begin … End, once; or Silence where
	// the request wants no answer. body and what h aliases are good until Serve
	// returns. It waits in Conn.Park and Conn.Block only. An error closes the
	// connection after the answers before it, with one log line.
	Serve(c *Conn, h wire.Header, body []byte, out *Out) error
	// Closed is told once that no Serve of this connection will come any more.
	Closed(c *Conn)
}

// A Conn is one client's connection. Its methods are for its own goroutine, that
// is for Handler.Serve, unless they say otherwise.
type Conn struct {
	ID       uint64
	Listener string     // name of the listener it came by
	Remote   netip.Addr // zero where the network has no such thing
	State    any        // the handler's own

	srv *Server
	nc  net.Conn
	tcp *net.TCPConn    // nil where the connection is none
	raw syscall.RawConn // of tcp
	in  input
	out Out

	remote    string
	clientID  string
	software  string
	muteUntil time.Duration // since the server's start
	stopping  bool          // serve no further request

	waker Waker
	park  chan struct{} // a token ends a wait
	state atomic.Uint32 // events and mode, see wake.go
	due   atomic.Int64  // when the wheel wakes the connection, ns since the server's start; 0 is never
	node  node          // in the wheel

	phase    atomic.Uint32 // see sweep.go
	progress atomic.Int64  // coarse time of the last byte in or out
	doom     atomic.Pointer[doom]
	looked   time.Duration // when the sweep, its owner, last looked for the peer

	send sender
}

// ClientID is the client id of the last request. It may be kept.
func (c *Conn) ClientID() string { return c.clientID }

// RemoteAddr is the client's address and port.
func (c *Conn) RemoteAddr() string { return c.remote }

// Software is the client's library and version, as ApiVersions told it; "" before.
func (c *Conn) Software() string { return c.software }

// SetSoftware keeps what ApiVersions told of the client's library.
func (c *Conn) SetSoftware(name, version string) {
	c.software = strings.Clone(name) + " " + strings.Clone(version)
}

// LogAttrs are the connection's facts for a log line.
func (c *Conn) LogAttrs() []any {
	return []any{
		slog.String("client", c.clientID), slog.String("library", c.software),
		slog.String("address", c.remote), slog.String("listener", c.Listener),
	}
}

// Throttle reads nothing from the connection for d after the present request is
// answered (KIP-219).
func (c *Conn) Throttle(d time.Duration) { c.muteUntil = c.srv.now() + d }

// Stopping tells that the server drains: a request that waits should be answered
// with what there is.
func (c *Conn) Stopping() bool { return c.stopping }

// Block calls f, which may wait, outside the connection's goroutine, and returns
// when it has. Answers that become due meanwhile are sent. For requests that are
// rare: it costs a goroutine. The context ends when the server gives up draining.
func (c *Conn) Block(f func(ctx context.Context)) {
	done := make(chan struct{})
	go func() {
		defer c.waker.Wake()
		defer close(done)
		f(c.srv.ctx)
	}()
	for {
		c.take(events) // before the look: what comes after it ends the sleep
		select {
		case <-done:
			return
		default:
			c.sleep(modePark, never)
		}
	}
}

// noteClient keeps the client id, which aliases the frame, without allocating
// where it has not changed.
func (c *Conn) noteClient(id string) {
	if c.clientID != id {
		c.clientID = strings.Clone(id)
	}
}
