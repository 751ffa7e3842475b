// Package namenode is a client of the NameNode's RPC protocol for control calls:
// what the HDFS library lacks or does unsafely. Requests and answers are protobuf
// by field number (Hadoop's ClientNamenodeProtocol.proto), so nothing clashes with
// the library's registered types.
//
//	preamble  "hrpc" 9 0 0
//	frame     length:4 | varint length, RpcRequestHeader | varint length, … | …
//	context   header(call -3), IpcConnectionContext{user, protocol}
//	request   header(call n, client id, retry), RequestHeader{method}, the request
//	response  RpcResponseHeader{call n, status, exception, message}, the response
//
// A Client keeps one connection to the NameNode that is active and pipelines calls
// on it. A call that meets a standby, a lost connection or silence goes to the next
// NameNode with the same client id and call id: the NameNode's retry cache answers a
// repeated rename, create or delete as it answered the first, the other NameNode's
// too after a failover (it is in the edits). So most unknown outcomes settle here
// (protocols.md T1); what does not is tier.ErrUnsettled.
//
// All decisions that matter are read from the active NameNode (protocols.md §3-11).
package namenode

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"varve/tier"
)

// Options say how to reach the NameNodes. Zero values are the defaults named.
type Options struct {
	Addrs []string // host:port of every NameNode of the nameservice
	User  string   // the user in whose name calls are made

	Timeout  time.Duration // of one attempt; 0 = 10 s
	Patience time.Duration // of one call over all its attempts; 0 = 30 s
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Client makes calls to one HDFS; safe for concurrent use.
type Client struct {
	o    Options
	id   []byte       // 16 random bytes: with the call id the key of the retry cache
	call atomic.Int32 // last call id

	mu struct {
		sync.Mutex
		at     int   // index of the address in use or tried next
		conn   *conn // nil: none
		dial   *dial // the one dial under way
		closed bool
	}
}

// A dial is one attempt to connect that all callers wait for.
type dial struct {
	addr string
	done chan struct{}
	conn *conn
	err  error
}

// New makes a client; it connects with the first call.
func New(o Options) *Client {
	if len(o.Addrs) == 0 {
		panic("namenode: no address")
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	c := &Client{o: o, id: make([]byte, 16)}
	rand.Read(c.id)
	return c
}

// Close ends the connection; calls under way fail.
func (c *Client) Close() error {
	c.mu.Lock()
	k := c.mu.conn
	c.mu.conn, c.mu.closed = nil, true
	c.mu.Unlock()
	if k != nil {
		k.end(net.ErrClosed)
	}
	return nil
}

// A request is one call: its method, its message and whether it changes anything.
type request struct {
	method  string
	body    message
	changes bool
}

// do makes one call, with as many attempts as patience and ctx allow, all under one
// call id.
func (c *Client) do(ctx context.Context, r request) (fields, error) {
	state := &attempts{request: r, id: c.call.Add(1) & 0x7fffffff}
	if err := ctx.Err(); err != nil {
		return nil, state.fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Patience)
	defer cancel()
	for pause := 50 * time.Millisecond; ; state.retry++ {
		body, err := c.attempt(ctx, state)
		if err == nil {
			return body, nil
		}
		var remote *RemoteError
		if errors.As(err, &remote) && !remote.elsewhere() {
			return nil, state.fail(err)
		}
		if errors.Is(err, net.ErrClosed) && c.closed() || ctx.Err() != nil {
			return nil, state.fail(err)
		}
		if state.retry%len(c.o.Addrs) != len(c.o.Addrs)-1 {
			continue // the others first
		}
		if !sleep(ctx, pause) {
			return nil, state.fail(err)
		}
		pause = min(2*pause, time.Second)
	}
}

// attempts is what is known of one call so far.
type attempts struct {
	request
	id    int32
	retry int
	addr  string
	lost  bool // an attempt was sent and has no answer
}

// attempt tries the NameNode that is next and decides which is the one after it.
func (c *Client) attempt(ctx context.Context, a *attempts) (fields, error) {
	k, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	a.addr = k.addr
	once, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	body, sent, err := k.call(once, a.id, a.retry, a.method, a.body)
	var remote *RemoteError
	switch {
	case err == nil:
		return parse(body)
	case errors.As(err, &remote):
		if remote.elsewhere() {
			c.leave(k, true)
			k.retire()
		}
	case ctx.Err() != nil && k.silence() < c.o.Timeout:
		a.lost = a.lost || sent // the caller gave up: no fault of the connection
	default:
		a.lost = a.lost || sent
		// an old connection that broke is made anew to the same NameNode first; one
		// that never answered, or fell silent, sends us on
		c.leave(k, !k.proven() || errors.Is(err, context.DeadlineExceeded))
		k.end(err)
	}
	return nil, err
}

// fail makes the call's error. A change that may have happened is unsettled unless
// the NameNode has now refused it for good.
func (a *attempts) fail(err error) error {
	e := &Error{Method: a.method, Addr: a.addr, Lost: a.lost, Err: err}
	var remote *RemoteError
	if errors.As(err, &remote) {
		e.Kind = Kind(remote.Class, remote.Message)
	} else {
		e.Kind = tier.ErrUnavailable
	}
	if e.Kind == tier.ErrUnavailable && a.changes && a.lost {
		e.Kind = tier.ErrUnsettled
	}
	return e
}

// connect returns the connection in use or waits for a new one.
func (c *Client) connect(ctx context.Context) (*conn, error) {
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return nil, net.ErrClosed
	}
	if k := c.mu.conn; k != nil {
		if k.err() == nil {
			c.mu.Unlock()
			return k, nil
		}
		c.mu.conn = nil
	}
	d := c.mu.dial
	if d == nil {
		d = &dial{addr: c.o.Addrs[c.mu.at], done: make(chan struct{})}
		c.mu.dial = d
		go c.dial(d)
	}
	c.mu.Unlock()
	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, fmt.Errorf("connecting to %s: %w", d.addr, ctx.Err())
	}
}

// dial connects for all who wait; a failure sends the next one to the next address.
func (c *Client) dial(d *dial) {
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Timeout)
	defer cancel()
	nc, err := c.o.Dial(ctx, "tcp", d.addr)
	if err == nil {
		d.conn = newConn(nc, d.addr, c.o.User, c.id, c.o.Timeout)
	} else {
		d.err = fmt.Errorf("connecting to %s: %w", d.addr, err)
	}
	c.mu.Lock()
	c.mu.dial = nil
	switch {
	case d.err != nil:
		c.mu.at = (c.mu.at + 1) % len(c.o.Addrs)
	case c.mu.closed:
		d.conn.end(net.ErrClosed)
	default:
		c.mu.conn = d.conn
	}
	c.mu.Unlock()
	close(d.done)
}

// leave stops using a connection; on moves to the next address. Who comes second
// with the same connection changes nothing.
func (c *Client) leave(k *conn, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.conn != k {
		return
	}
	c.mu.conn = nil
	if on {
		c.mu.at = (c.mu.at + 1) % len(c.o.Addrs)
	}
}

func (c *Client) closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.closed
}

// sleep waits d; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
