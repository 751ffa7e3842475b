package conn

import (
	"errors"
	"fmt"
	"time"
)

// What a connection is in, for the look that is taken each second at how long
// nothing has moved.
const (
	phaseServing uint32 = iota // a request is served or waits: its own deadline counts
	phaseIdle                  // nothing is asked
	phasePartial               // a frame has begun
	phaseWriting               // an answer is on its way
)

var noDeadline time.Time

// A doom is why a connection is closed from outside its goroutine.
type doom struct {
	kind string // of closed connections, for the log
	err  error
	loud bool
}

func (c *Conn) enter(phase uint32) {
	c.phase.Store(phase)
	c.noteProgress()
}

// noteProgress costs no look at the clock: the sweep keeps one.
func (c *Conn) noteProgress() { c.progress.Store(c.srv.coarse.Load()) }

func (c *Conn) readPhase() uint32 {
	switch {
	case c.out.slots > 0:
		return phaseServing
	case len(c.in.pending()) > 0:
		return phasePartial
	default:
		return phaseIdle
	}
}

// sweep ends the connections in which nothing has moved for too long.
func (s *Server) sweep() {
	now := s.now()
	s.coarse.Store(int64(now))
	s.sweeping = s.connections(s.sweeping[:0])
	for _, c := range s.sweeping {
		still := now - time.Duration(c.progress.Load())
		switch phase := c.phase.Load(); {
		case phase == phaseIdle && still > s.cfg.IdleTime:
			c.condemn(&doom{"idle", fmt.Errorf("nothing was asked for %v", s.cfg.IdleTime), false})
		case phase == phasePartial && still > s.cfg.FrameStall:
			c.condemn(&doom{"a request stopped in its middle", fmt.Errorf("no byte of it came for %v", s.cfg.FrameStall), true})
		case phase == phaseWriting && still > s.cfg.WriteStall:
			c.condemn(&doom{"an answer was not read", fmt.Errorf("no byte of it left for %v", s.cfg.WriteStall), true})
		case phase == phaseServing && still > s.cfg.PeerCheck:
			c.lookForPeer(now)
		}
	}
	clear(s.sweeping)
	s.refusals.Summarize(time.Now())
}

// lookForPeer ends a request that waits for data or for others when its client has gone:
// nothing is read while it waits, and it may wait for as long as the client has said.
func (c *Conn) lookForPeer(now time.Duration) {
	if now-c.looked < c.srv.cfg.PeerCheck || c.raw == nil {
		return
	}
	c.looked = now
	if c.peerGone() {
		c.condemn(&doom{"gone", errors.New("the client left before it was answered"), false})
		c.signal(evWake)
	}
}

// condemn closes the connection under its goroutine, which then finds the reason.
func (c *Conn) condemn(d *doom) {
	if c.doom.CompareAndSwap(nil, d) {
		c.nc.Close()
	}
}
