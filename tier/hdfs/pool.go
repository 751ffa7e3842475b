package hdfs

import (
	"fmt"
	"slices"
	"sync"
	"time"

	library "github.com/colinmarc/hdfs/v2"
)

// maxIdle bounds the clients kept for the next writers: each renews its leases once
// a second.
const maxIdle = 2

// A client is a library client and the dialler of its connections.
type client struct {
	*library.Client
	dialler *dialler
}

// cut ends whatever the client is doing and the client with it. Its Close waits for
// calls under way, which end by the cut.
func (c *client) cut() {
	c.dialler.cut()
	c.Client.Close()
}

// A pool keeps library clients: one that all readers share, and one for each writer
// while it writes.
type pool struct {
	o  Options
	mu struct {
		sync.Mutex
		reading *client
		idle    []*client
		closed  bool
	}
}

func newPool(o Options) *pool { return &pool{o: o} }

// connect makes a client whose DataNodes may be silent that long. Each address is
// listed twice: the library puts an address that failed aside for five seconds, the
// second entry takes its place at once.
func (p *pool) connect(silence time.Duration) (*client, error) {
	dialler := newDialler(p.o.Connect)
	c, err := library.NewClient(library.ClientOptions{
		Addresses: slices.Concat(p.o.NameNodes, p.o.NameNodes), User: p.o.User,
		UseDatanodeHostname: p.o.UseDatanodeHostname,
		NamenodeDialFunc:    dialler.to(p.o.Call), DatanodeDialFunc: dialler.to(silence),
	})
	if err != nil {
		return nil, err
	}
	// the library fills these in without a lock when they are first needed
	if _, err := c.ServerDefaults(); err != nil {
		dialler.cut()
		c.Close()
		return nil, err
	}
	return &client{c, dialler}, nil
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
		c.cut()
		return nil, errCut
	}
	if other != nil { // another reader was first
		c.cut()
		return other, nil
	}
	return c, nil
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
		c.cut()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	all := p.mu.idle
	if p.mu.reading != nil {
		all = append(all, p.mu.reading)
	}
	p.mu.idle, p.mu.reading, p.mu.closed = nil, nil, true
	p.mu.Unlock()
	for _, c := range all {
		c.cut()
	}
}
