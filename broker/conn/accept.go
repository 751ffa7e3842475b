package conn

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// accept begins a connection's life.
func (s *Server) accept(name string, nc net.Conn) {
	c := s.newConn(name, nc)
	if why := s.enrol(c); why != "" {
		s.refused.Add(1)
		s.refusals.Add(time.Now(), slog.LevelWarn, "refusing a connection", append(c.LogAttrs(), slog.String("error", why))...)
		nc.Close()
		return
	}
	go func() {
		defer s.wg.Done()
		defer s.strike(c)
		c.run()
	}()
}

func (s *Server) newConn(name string, nc net.Conn) *Conn {
	c := &Conn{ID: s.ids.Add(1), Listener: name, srv: s, nc: nc, park: make(chan struct{}, 1), remote: nc.RemoteAddr().String()}
	c.waker.c, c.node.c, c.out.c = c, c, c
	c.in.hint = classFirst
	c.noteProgress()
	if a, err := netip.ParseAddrPort(c.remote); err == nil {
		c.Remote = a.Addr().Unmap()
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			c.tcp, c.raw = tcp, raw
			c.in.readFn = c.readOnce
			c.initSender()
		}
		if s.cfg.SendBuffer > 0 {
			tcp.SetWriteBuffer(s.cfg.SendBuffer)
		}
		if s.cfg.ReceiveBuffer > 0 {
			tcp.SetReadBuffer(s.cfg.ReceiveBuffer)
		}
	}
	return c
}

// enrol counts a connection in, or says why not.
func (s *Server) enrol(c *Conn) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopping {
		return "the broker stops"
	}
	if c.Remote.IsValid() {
		most, ok := s.cfg.PerIP[c.Remote.String()]
		if !ok {
			most = s.cfg.MaxPerIP
		}
		if s.mu.perIP[c.Remote] >= most {
			return fmt.Sprintf("%v has max.connections.per.ip, %d, already", c.Remote, most)
		}
		s.mu.perIP[c.Remote]++
	}
	s.mu.conns[c] = struct{}{}
	s.wg.Add(1)
	return ""
}

// strike counts a connection out.
func (s *Server) strike(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, c)
	if c.Remote.IsValid() {
		if s.mu.perIP[c.Remote]--; s.mu.perIP[c.Remote] == 0 {
			delete(s.mu.perIP, c.Remote)
		}
	}
	s.mu.room.Broadcast()
}
