package hdfs

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A guard is a connection of the HDFS library that cannot hang and is never used
// after an error. The library sets no time-outs, keeps a broken connection, and
// takes a clean end of stream for the end of a block, dialling the same DataNode for
// ever. Here each read and write has a time limit, an error closes the socket and an
// end of stream is unexpected.
type guard struct {
	net.Conn
	dialler *dialler
	first   time.Duration // limit until the peer has said something
	idle    time.Duration // limit after that
	mu      struct {
		sync.Mutex
		spoken bool
	}
}

func (g *guard) limit() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.spoken {
		return time.Now().Add(g.idle)
	}
	return time.Now().Add(g.first)
}

func (g *guard) Read(b []byte) (int, error) {
	g.Conn.SetReadDeadline(g.limit())
	n, err := g.Conn.Read(b)
	if n > 0 {
		g.mu.Lock()
		g.mu.spoken = true
		g.mu.Unlock()
	}
	if err != nil && n == 0 {
		g.Close()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

func (g *guard) Write(b []byte) (int, error) {
	g.Conn.SetWriteDeadline(g.limit())
	n, err := g.Conn.Write(b)
	if err != nil {
		g.Close()
	}
	return n, err
}

// WriteAll writes the pieces in order, with one call of the system where it can.
func (g *guard) WriteAll(pieces *net.Buffers) error {
	g.Conn.SetWriteDeadline(g.limit())
	_, err := pieces.WriteTo(g.Conn)
	if err != nil {
		g.Close()
	}
	return err
}

// SetDeadline does nothing: the library sets none at all with it, which would take
// ours away.
func (g *guard) SetDeadline(time.Time) error { return nil }

func (g *guard) Close() error {
	g.dialler.forget(g)
	return g.Conn.Close()
}

// errCut is why a dialler dials no more.
var errCut = errors.New("given up")

// A dialler makes the guarded connections of one library client and can cut all of
// them, which ends whatever the client is in the middle of.
type dialler struct {
	connect time.Duration
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)

	mu struct {
		sync.Mutex
		open map[*guard]struct{}
		cut  bool
	}
}

func newDialler(connect time.Duration) *dialler {
	d := &dialler{connect: connect, dial: (&net.Dialer{Timeout: connect}).DialContext}
	d.mu.open = map[*guard]struct{}{}
	return d
}

// to gives a dial function for connections that may be idle that long.
func (d *dialler) to(idle time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if d.isCut() {
			return nil, errCut
		}
		c, err := d.dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		g := &guard{Conn: c, dialler: d, first: min(d.connect, idle), idle: idle}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.mu.cut {
			c.Close()
			return nil, errCut
		}
		d.mu.open[g] = struct{}{}
		return g, nil
	}
}

func (d *dialler) isCut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.cut
}

func (d *dialler) forget(g *guard) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.open, g)
}

// cut closes every connection and lets no new one be made.
func (d *dialler) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.cut = true
	for g := range d.mu.open {
		g.Conn.Close()
	}
	clear(d.mu.open)
}
