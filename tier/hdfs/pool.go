package hdfs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	library "github.com/colinmarc/hdfs/v2"
)

// maxIdle bounds the clients kept for the next writers: each renews its leases once
// a second.
const maxIdle = 2

// A client is a library client and the diallers of its connections.
type client struct {
	*library.Client
	names, data *dialler // to NameNodes, to DataNodes
}

// cut ends whatever the client is doing; no call of it works any more.
func (c *client) cut() {
	c.names.cut()
	c.data.cut()
}

// end cuts the client and stops its lease renewal. The library's Close waits for
// calls under way, which end by the cut.
func (c *client) end() {
	c.cut()
	c.Client.Close()
}

// A pool keeps library clients: one that all readers share, and one for each writer
// while it writes.
type pool struct {
	o    Options
	life context.Context // ends with the pool
	end  context.CancelFunc
	mu   struct {
		sync.Mutex
		reading *client
		idle    []*client
		closed  bool
	}
}

func newPool(o Options) *pool {
	p := &pool{o: o}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// connect makes a client whose DataNodes may be silent that long. Each address is
// listed twice: the library puts an address that failed aside for five seconds, the
// second entry takes its place at once.
func (p *pool) connect(silence time.Duration) (*client, error) {
	names, data := newDialler(p.o.Connect), newDialler(p.o.Connect)
	c, err := library.NewClient(library.ClientOptions{
		Addresses: slices.Concat(p.o.NameNodes, p.o.NameNodes), User: p.o.User,
		UseDatanodeHostname: p.o.UseDatanodeHostname,
		NamenodeDialFunc:    names.to(p.o.Call), DatanodeDialFunc: data.to(silence),
	})
	if err != nil {
		return nil, err
	}
	// the library fills these in without a lock when they are first needed
	if _, err := c.ServerDefaults(); err != nil {
		names.cut()
		c.Close()
		return nil, err
	}
	return &client{c, names, data}, nil
}

// forReading returns the client that all readers share.
func (p *pool) forReading() (*client, error) {
	p.mu.Lock()
	c, closed := p.mu.reading, p.mu.closed
	p.mu.Unlock()
	if closed {
		return nil, errCut
	}
	if c != nil {
		return c, nil
	}
	c, err := p.connect(p.o.Read)
	if err != nil {
		return nil, fmt.Errorf("connecting to read: %w", err)
	}
	p.mu.Lock()
	other, closed := p.mu.reading, p.mu.closed
	if other == nil && !closed {
		p.mu.reading = c
	}
	p.mu.Unlock()
	if closed {
		c.end()
		return nil, errCut
	}
	if other != nil { // another reader was first
		c.end()
		return other, nil
	}
	return c, nil
}

// replace ends the shared client after a failure; the next reader makes a new one.
// Streams under way keep their DataNode connections until they end by themselves.
func (p *pool) replace(c *client) {
	p.mu.Lock()
	mine := p.mu.reading == c
	if mine {
		p.mu.reading = nil
	}
	p.mu.Unlock()
	if mine {
		c.names.cut()
		c.Client.Close()
	}
}

// take gives a writer a client of its own, a new one where none is idle.
func (p *pool) take() (*client, error) {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil, errCut
	}
	if n := len(p.mu.idle); n > 0 {
		c := p.mu.idle[n-1]
		p.mu.idle = p.mu.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.connect(p.o.Write)
	if err != nil {
		return nil, fmt.Errorf("connecting to write: %w", err)
	}
	return c, nil
}

// give takes a client back whose file is closed.
func (p *pool) give(c *client) {
	p.mu.Lock()
	keep := !p.mu.closed && len(p.mu.idle) < maxIdle
	if keep {
		p.mu.idle = append(p.mu.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.end()
	}
}

func (p *pool) close() {
	p.end()
	p.mu.Lock()
	all := p.mu.idle
	if p.mu.reading != nil {
		all = append(all, p.mu.reading)
	}
	p.mu.idle, p.mu.reading, p.mu.closed = nil, nil, true
	p.mu.Unlock()
	for _, c := range all {
		c.end()
	}
}
