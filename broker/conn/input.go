package conn

import (
	"errors"
	"io"
	"os"
	"syscall"

	"varve/broker/wire"
)

// largeFrame is the size from which on a frame is read by itself, in bytes.
const largeFrame = 32 << 10

// An input is what a connection has read and not served: buf[r:w]. The buffer is
// there only while there is something in it.
type input struct {
	buf    *[]byte
	r, w   int
	prefix [wire.PrefixSize]byte // read before there is a buffer, where there is no RawConn

	want   int // size of the frame that has begun, prefix included; 0 where unknown
	proven int // largest frame that came whole: so much is believed at once
	paid   int64

	hint  int // class of the next buffer
	lulls int // buffers in a row that were mostly empty
	peak  int // most that was in the present buffer

	readFn func(fd uintptr) bool // reads once, for RawConn.Read; allocated once
	n      int                   // its results
	err    error
	broke  bool // the budget has no room
}

// pending is what is read and not served.
func (in *input) pending() []byte {
	if in.buf == nil {
		return nil
	}
	return (*in.buf)[in.r:in.w]
}

// served moves past a frame.
func (in *input) served(n int) {
	in.r += n
	in.want, in.proven = 0, max(in.proven, n)
}

// room makes place for more bytes at the end of the buffer: it takes one, moves
// what is left to its front, or changes to a larger one. A frame larger than 256
// KiB and than any before it gets room as its bytes come, twice as much each time.
// false says that the budget has no room now.
func (c *Conn) room() bool {
	in := &c.in
	if in.buf == nil {
		in.take(&c.srv.budget)
	}
	if in.r > 0 {
		in.w = copy(*in.buf, (*in.buf)[in.r:in.w])
		in.r = 0
	}
	size := len(*in.buf)
	if in.want <= size {
		return true
	}
	if !c.pay() {
		return false
	}
	next := in.want
	if trust := max(in.proven, classes[classMost]); next > trust {
		next = min(next, max(2*size, classes[classMost]))
	}
	if in.w < size && next < in.want && size >= classes[classMost] {
		return true // fill this one first
	}
	larger := getBuffer(next)
	in.w = copy(*larger, (*in.buf)[:in.w])
	putBuffer(in.buf)
	in.buf = larger
	in.hint = max(in.hint, min(classFor(in.want), classMost))
	return true
}

// space is where the next bytes go. Behind a large frame only the size of the next
// one is read, or most of that would be moved to the front afterwards.
func (in *input) space() []byte {
	b := (*in.buf)[in.w:]
	if in.want > largeFrame {
		b = b[:min(len(b), in.want+wire.PrefixSize-in.w)]
	}
	return b
}

// pay counts the frame that is wanted in the budget. What has been admitted may
// grow.
func (c *Conn) pay() bool {
	in, want := &c.in, int64(c.in.want)
	switch {
	case want <= int64(classes[classFree]) || want <= in.paid:
		return true
	case in.paid > 0:
		c.srv.budget.add(want - in.paid)
	case !c.srv.budget.take(want, c):
		return false
	}
	in.paid = want
	return true
}

// take gets a buffer of the hinted class, or of one that is not counted where the
// budget does not admit it.
func (in *input) take(b *budget) {
	size := classes[in.hint]
	if in.hint > classFree {
		if b.try(int64(size)) {
			in.paid = int64(size)
		} else {
			size = classes[classFree]
		}
	}
	in.buf, in.r, in.w, in.peak = getBuffer(size), 0, 0, 0
}

// release gives the buffer back where nothing is in it.
func (c *Conn) release() {
	in := &c.in
	if in.buf == nil || in.r < in.w {
		return
	}
	in.adapt()
	putBuffer(in.buf)
	c.srv.budget.add(-in.paid)
	in.buf, in.r, in.w, in.paid = nil, 0, 0, 0
}

// adapt chooses the next buffer's class by how full this one was.
func (in *input) adapt() {
	switch size := classes[in.hint]; {
	case in.peak >= size && in.hint < classMost:
		in.hint++
		in.lulls = 0
	case in.hint > classFirst && in.peak < size/8:
		if in.lulls++; in.lulls == 16 {
			in.hint--
			in.lulls = 0
		}
	default:
		in.lulls = 0
	}
}

// fill waits for bytes and reads what there is, or returns without where an event
// has ended the wait.
func (c *Conn) fill() error {
	c.setDue(c.out.firstDeadline())
	if !c.begin(modeRead) {
		return nil
	}
	c.enter(c.readPhase())
	n, err := c.read()
	c.leave()
	c.enter(phaseServing)
	if c.in.broke {
		c.in.broke = false
		c.sleep(modeMute, never)
		return nil
	}
	c.in.w += n
	c.srv.received.Add(uint64(n))
	c.in.peak = max(c.in.peak, c.in.w)
	switch {
	case n > 0:
		return nil
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.nc.SetReadDeadline(noDeadline)
		return nil
	default:
		return err
	}
}

// read reads once. It takes the buffer only when there is something to read.
func (c *Conn) read() (int, error) {
	if c.raw != nil {
		return c.readRaw()
	}
	in := &c.in
	c.release()
	if in.buf == nil { // the size field, without a buffer
		n, err := c.nc.Read(in.prefix[:])
		if n > 0 {
			in.take(&c.srv.budget)
			copy(*in.buf, in.prefix[:n])
		}
		return n, err
	}
	if !c.room() {
		in.broke = true
		return 0, nil
	}
	return c.nc.Read(in.space())
}

func (c *Conn) readRaw() (int, error) {
	in := &c.in
	in.n, in.err = 0, nil
	if err := c.raw.Read(in.readFn); err != nil {
		c.release()
		return 0, err
	}
	if in.n == 0 && in.err == nil && !in.broke {
		return 0, io.EOF
	}
	return in.n, in.err
}

// readOnce is readFn: false asks to be called again when the socket is readable.
func (c *Conn) readOnce(fd uintptr) bool {
	in := &c.in
	if !c.room() {
		in.broke = true
		return true
	}
	for {
		in.n, in.err = syscall.Read(int(fd), in.space())
		if in.err != syscall.EINTR {
			break
		}
	}
	in.n = max(in.n, 0)
	if in.err == syscall.EAGAIN {
		c.release()
		in.err = nil
		return false
	}
	return true
}
