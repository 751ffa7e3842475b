package conn

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"syscall"
	"time"

	"varve/broker/wire"
)

// flushAt is how much may be answered before it is sent, where more requests are
// there to serve, in bytes.
const flushAt = 256 << 10

// run is the life of a connection.
func (c *Conn) run() {
	err := c.loop()
	c.end(err)
}

// loop serves requests until the connection is over; nil is the client's or the
// server's wish. A panic is a fault of ours in one request, and ends one
// connection.
func (c *Conn) loop() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	for {
		if err := c.serveFrames(); err != nil {
			c.flush() // the answers before the fault
			return err
		}
		c.take(events &^ evWake)
		if err := c.flush(); err != nil {
			return err
		}
		switch {
		case c.doom.Load() != nil:
			return nil
		case c.stopping && c.out.slots == 0:
			c.hangUp()
			return nil
		case c.stopping || c.muted() || c.out.full():
			c.sleep(modeMute, max(c.muteUntil, c.whilePending()))
		default:
			if err := c.fill(); err != nil {
				return err
			}
		}
	}
}

// whilePending is never where a pending answer will end the wait, and now
// otherwise.
func (c *Conn) whilePending() time.Duration {
	if c.out.slots > 0 && (c.stopping || c.out.full()) {
		return never
	}
	return 0
}

func (c *Conn) muted() bool {
	if c.muteUntil > 0 && c.srv.now() >= c.muteUntil {
		c.muteUntil = 0
	}
	return c.muteUntil > 0
}

// serveFrames serves the whole frames that have been read.
func (c *Conn) serveFrames() error {
	for !c.stopping && !c.out.full() && !c.muted() {
		b := c.in.pending()
		if len(b) < wire.PrefixSize {
			break
		}
		n, err := wire.FrameSize(b, c.srv.cfg.MaxRequestBytes)
		if err != nil {
			return err
		}
		n += wire.PrefixSize
		if len(b) < n {
			c.in.want = n
			return nil
		}
		c.in.served(n)
		if err := c.serve(b[wire.PrefixSize:n]); err != nil {
			return err
		}
		if len(c.out.B) >= flushAt || c.out.runs > 0 {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if c.out.err != nil {
			return c.out.err
		}
	}
	return nil
}

// serve hands one frame to the handler and holds it to its promise.
func (c *Conn) serve(frame []byte) error {
	h, body, err := wire.ParseHeader(frame)
	if err != nil {
		return err
	}
	c.noteClient(h.ClientID)
	c.out.ended = false
	if err := c.srv.handler.Serve(c, h, body, &c.out); err != nil {
		c.dropBegun()
		return &requestError{h.Key, h.Version, err}
	}
	if !c.out.ended {
		panic("conn: no answer to " + h.String())
	}
	return nil
}

// dropBegun takes back an answer that an error has cut short, so that the answers
// before it can still be sent.
func (c *Conn) dropBegun() {
	o := &c.out
	if !o.begun {
		return
	}
	if o.slot != nil {
		o.slot.abandon()
		o.slot = nil
	}
	for len(o.queue) > 0 && o.lastEnd() > o.start {
		last := &o.queue[len(o.queue)-1]
		last.run.Release()
		o.queue = o.queue[:len(o.queue)-1]
	}
	o.B, o.begun, o.runs = o.B[:o.start], false, 0
}

// hangUp ends the connection so that the answers sent arrive: what the client has
// sent meanwhile is read and thrown away, or the kernel would reset the connection.
func (c *Conn) hangUp() {
	if c.tcp == nil || c.tcp.CloseWrite() != nil {
		return
	}
	c.tcp.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	io.Copy(io.Discard, struct{ io.Reader }{c.tcp})
}

// end gives everything back and logs why.
func (c *Conn) end(err error) {
	c.nc.Close()
	c.setDue(never)
	c.srv.wheel.remove(c)
	c.out.discard()
	c.in.r = c.in.w
	c.release()
	c.tellClosed()
	c.logEnd(err)
}

// tellClosed holds a panic of the handler's to this connection, as loop does.
func (c *Conn) tellClosed() {
	defer func() {
		if p := recover(); p != nil {
			c.logEnd(&panicError{p, debug.Stack()})
		}
	}()
	c.srv.handler.Closed(c)
}

// A requestError is a request that the handler closed the connection for.
type requestError struct {
	key, version int16
	err          error
}

func (e *requestError) Error() string {
	return fmt.Sprintf("%s v%d: %v", wire.Name(e.key), e.version, e.err)
}

func (e *requestError) Unwrap() error { return e.err }

// A panicError is a fault of ours.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// logEnd writes at most one line. A client that goes away is no news.
func (c *Conn) logEnd(err error) {
	d := c.doom.Load()
	if d != nil {
		err = d.err
	}
	attrs := append(c.LogAttrs(), slog.Any("error", err))
	var (
		p   *panicError
		req *requestError
	)
	switch {
	case errors.As(err, &p):
		c.srv.cfg.Log.Error("closing a connection: a fault of the broker's", append(attrs, slog.String("stack", string(p.stack)))...)
	case d != nil && d.loud:
		c.srv.refusals.Add(time.Now(), slog.LevelWarn, "closing a connection: "+d.kind, attrs...)
	case d != nil, err == nil, goneAway(err):
		c.srv.cfg.Log.Debug("connection ended", attrs...)
	case errors.As(err, &req):
		c.srv.refusals.Add(time.Now(), slog.LevelInfo, "closing a connection: "+wire.Name(req.key)+" failed", attrs...)
	default:
		c.srv.refusals.Add(time.Now(), slog.LevelWarn, "closing a connection: not a request that is served", attrs...)
	}
}

// goneAway tells an end that is the client's own.
func goneAway(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
