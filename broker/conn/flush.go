package conn

import (
	"fmt"
	"io"

	"varve/broker/vfs"
)

// copyChunk is how much of a run passes through memory at a time where there is no
// sendfile, in bytes.
const copyChunk = 256 << 10

// flush sends the answers that are ready, in order, up to the first that waits.
// The error is kept in Out: the connection is over.
func (c *Conn) flush() error {
	o := &c.out
	if o.err != nil || len(o.B) == 0 {
		return o.err
	}
	if o.slots > 0 {
		o.err = c.flushReady()
		return o.err
	}
	o.err = c.sendAll(len(o.queue), len(o.B))
	return o.err
}

// flushReady finishes the slots that are done and sends up to the first that is
// not.
func (c *Conn) flushReady() error {
	o := &c.out
	now := c.srv.now()
	for i, end := 0, 0; i < len(o.queue); i++ {
		p := &o.queue[i]
		if p.slot != nil {
			if !p.slot.finish(o.B[end:p.end], now) {
				return c.sendAll(i, end)
			}
			p.slot = nil
			o.slots--
		}
		end = p.end
	}
	return c.sendAll(len(o.queue), len(o.B))
}

// sendAll sends the first pieces of the queue, and of B what comes before end.
func (c *Conn) sendAll(pieces, end int) error {
	if end == 0 {
		return nil
	}
	o := &c.out
	c.enter(phaseWriting)
	defer c.enter(phaseServing)
	from, runs := 0, 0
	for i := range pieces {
		p := &o.queue[i]
		if p.run.N == 0 {
			continue
		}
		runs += p.run.N
		if err := c.sendRun(o.B[from:p.end], &p.run); err != nil {
			return err
		}
		from = p.end
	}
	if from < end {
		if err := c.write(o.B[from:end]); err != nil {
			return err
		}
	}
	c.srv.sent.Add(uint64(end + runs))
	o.sent(pieces, end)
	return nil
}

// sendRun sends the bytes before a run and the run, and releases it.
func (c *Conn) sendRun(before []byte, r *vfs.Run) error {
	defer r.Release()
	if r.File == nil {
		if err := c.sendMore(before); err != nil {
			return err
		}
		return c.write(r.Bytes[:r.N])
	}
	if fd, ok := r.File.Fd(); ok && c.canSendfile() {
		if err := c.sendMore(before); err != nil {
			return err
		}
		if err := c.sendfile(fd, r.Pos, r.N); err != nil {
			return fmt.Errorf("sending %d bytes at %d of %s: %w", r.N, r.Pos, r.File.Name(), err)
		}
		return nil
	}
	return c.copyRun(before, r)
}

// write is for long stretches: it notes progress every now and then.
func (c *Conn) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), copyChunk)
		if _, err := c.nc.Write(b[:n]); err != nil {
			return err
		}
		c.noteProgress()
		b = b[n:]
	}
	return nil
}

// copyRun sends a run through memory, the bytes before it in the same write.
func (c *Conn) copyRun(before []byte, r *vfs.Run) error {
	if len(before) >= copyChunk {
		if err := c.write(before); err != nil {
			return err
		}
		before = nil
	}
	buf := getBuffer(copyChunk)
	defer putBuffer(buf)
	have := copy(*buf, before)
	for pos, left := r.Pos, r.N; left > 0; {
		n := min(left, len(*buf)-have)
		if got, err := r.File.ReadAt((*buf)[have:have+n], pos); got < n {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("sending %d bytes at %d of %s: %w", r.N, r.Pos, r.File.Name(), err)
		}
		if _, err := c.nc.Write((*buf)[:have+n]); err != nil {
			return err
		}
		c.noteProgress()
		pos, left, have = pos+int64(n), left-n, 0
	}
	return nil
}
