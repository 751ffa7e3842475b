package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A Config bounds what connections may take. The zero value is the default.
type Config struct {
	MaxRequestBytes int            // socket.request.max.bytes; 0 is 100 MiB
	QueuedBytes     int64          // queued.max.request.bytes; 0 is no bound
	MaxConnections  int            // max.connections: more wait to be accepted; 0 is no bound
	MaxPerIP        int            // max.connections.per.ip: more are closed; 0 is no bound
	PerIP           map[string]int // max.connections.per.ip.overrides, by address
	IdleTime        time.Duration  // connections.max.idle.ms; 0 is 10 min
	FrameStall      time.Duration  // a request that stops in its middle is given up; 0 is 30 s
	WriteStall      time.Duration  // an answer that is not read is given up; 0 is 2 min
	PeerCheck       time.Duration  // how often the client of a waiting request is looked for; 0 is 5 s
	SendBuffer      int            // socket.send.buffer.bytes; 0 is the system's
	ReceiveBuffer   int            // socket.receive.buffer.bytes; 0 is the system's
	Log             *slog.Logger   // nil is slog.Default
}

func (cfg Config) withDefaults() Config {
	cfg.MaxRequestBytes = orDefault(cfg.MaxRequestBytes, 100<<20)
	cfg.MaxConnections = orDefault(cfg.MaxConnections, math.MaxInt)
	cfg.MaxPerIP = orDefault(cfg.MaxPerIP, math.MaxInt)
	cfg.IdleTime = orDefault(cfg.IdleTime, 10*time.Minute)
	cfg.FrameStall = orDefault(cfg.FrameStall, 30*time.Second)
	cfg.WriteStall = orDefault(cfg.WriteStall, 2*time.Minute)
	cfg.PeerCheck = orDefault(cfg.PeerCheck, 5*time.Second)
	cfg.Log = orDefault(cfg.Log, slog.Default())
	return cfg
}

// A Server accepts connections on any number of listeners and serves them with one
// Handler.
type Server struct {
	cfg      Config
	handler  Handler
	refusals Refusals
	wheel    *wheel
	budget   budget

	start  time.Time
	coarse atomic.Int64  // now() of the last sweep
	ids    atomic.Uint64 // connections so far

	refused, received, sent atomic.Uint64 // for Stats

	sweeping []*Conn // scratch of the sweep

	ctx    context.Context // ends when draining is given up
	cancel context.CancelFunc
	wg     sync.WaitGroup // connections

	mu struct {
		sync.Mutex
		room      sync.Cond // a connection has ended, or the server stops
		listeners []net.Listener
		conns     map[*Conn]struct{}
		perIP     map[netip.Addr]int
		stopping  bool
	}
}

var ctxNone = context.Background()

// NewServer is a server without listeners. Shutdown ends it.
func NewServer(cfg Config, h Handler) *Server {
	s := &Server{cfg: cfg.withDefaults(), handler: h, start: time.Now()}
	s.refusals.Log = s.cfg.Log
	s.budget.max = s.cfg.QueuedBytes
	s.wheel = newWheel(s.now)
	s.ctx, s.cancel = context.WithCancel(ctxNone)
	s.mu.room.L = &s.mu
	s.mu.conns, s.mu.perIP = map[*Conn]struct{}{}, map[netip.Addr]int{}
	go s.wheel.run(s.ctx)
	go s.watch()
	return s
}

// now is monotonic, since the server's start.
func (s *Server) now() time.Duration { return time.Since(s.start) }

// Refusals is where handlers log what they refuse.
func (s *Server) Refusals() *Refusals { return &s.refusals }

// Stats are the server's counts since its start.
type Stats struct {
	Connections    int    // now
	Accepted       uint64 // refused ones included
	Refused        uint64 // for max.connections.per.ip
	Received, Sent uint64 // bytes
}

// Stats may be called from everywhere.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.mu.conns)
	s.mu.Unlock()
	return Stats{n, s.ids.Load(), s.refused.Load(), s.received.Load(), s.sent.Load()}
}

// watch sweeps once a second.
func (s *Server) watch() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
			s.sweep()
		}
	}
}

// connections appends all connections to a slice.
func (s *Server) connections(all []*Conn) []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.mu.conns {
		all = append(all, c)
	}
	return all
}

// Serve accepts connections by a listener until Shutdown, whose end it reports as
// nil. name is the listener's in the configuration.
func (s *Server) Serve(name string, l net.Listener) error {
	if !s.adopt(l) {
		l.Close()
		return nil
	}
	for pause := time.Duration(0); s.waitForRoom(); {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.accept(name, nc)
		case s.ended():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accepting on %s %s: %w", name, l.Addr(), err)
		default: // out of descriptors, most likely
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.refusals.Add(time.Now(), slog.LevelError, "accepting a connection", slog.String("listener", name), slog.Any("error", err))
			s.pause(pause)
		}
	}
	return nil
}

func (s *Server) adopt(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.listeners = append(s.mu.listeners, l)
	return !s.mu.stopping
}

// waitForRoom waits until one connection more is allowed; false where the server
// stops.
func (s *Server) waitForRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.mu.conns) >= s.cfg.MaxConnections && !s.mu.stopping {
		s.mu.room.Wait()
	}
	return !s.mu.stopping
}

func (s *Server) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.stopping
}

func (s *Server) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// Shutdown closes the listeners, lets each connection answer what it has begun to
// serve, and closes it. When ctx ends first, connections are cut and its error is
// returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.mu.stopping = true
	listeners := s.mu.listeners
	s.mu.listeners = nil
	s.mu.room.Broadcast()
	s.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	for _, c := range s.connections(nil) {
		c.signal(evStop)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.wg.Wait()
	}()
	defer s.cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	for _, c := range s.connections(nil) {
		c.condemn(&doom{"cut", ctx.Err(), false})
		c.signal(evStop)
	}
	<-done
	return fmt.Errorf("draining connections: %w", ctx.Err())
}
