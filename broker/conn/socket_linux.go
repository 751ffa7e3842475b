package conn

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// A sender holds what the callbacks of RawConn.Write work on, so that a write
// allocates nothing.
type sender struct {
	moreFn, fileFn func(fd uintptr) bool

	b    []byte // moreFn: left to send
	file int    // fileFn: from
	pos  int64
	left int
	err  error
}

func (c *Conn) initSender() {
	c.send.moreFn, c.send.fileFn = c.moreOnce, c.fileOnce
}

func (c *Conn) canSendfile() bool { return c.raw != nil }

// sendMore sends bytes that more follow: the kernel joins them to what comes.
func (c *Conn) sendMore(b []byte) error {
	if c.raw == nil {
		return c.write(b)
	}
	s := &c.send
	s.b, s.err = b, nil
	err := c.raw.Write(s.moreFn)
	s.b = nil
	if err == nil {
		err = s.err
	}
	return err
}

func (c *Conn) moreOnce(fd uintptr) bool {
	s := &c.send
	for len(s.b) > 0 {
		n, err := unix.SendmsgN(int(fd), s.b, nil, nil, unix.MSG_MORE)
		switch {
		case err == unix.EAGAIN:
			return false
		case err == unix.EINTR:
		case err != nil:
			s.err = err
			return true
		default:
			s.b = s.b[n:]
		}
	}
	return true
}

// sendfile sends n bytes of a file from pos, without their passing through here,
// and without the file's own position.
func (c *Conn) sendfile(file uintptr, pos int64, n int) error {
	s := &c.send
	s.file, s.pos, s.left, s.err = int(file), pos, n, nil
	if err := c.raw.Write(s.fileFn); err != nil {
		return err
	}
	return s.err
}

func (c *Conn) fileOnce(fd uintptr) bool {
	s := &c.send
	for s.left > 0 {
		n, err := syscall.Sendfile(int(fd), s.file, &s.pos, s.left)
		if n > 0 {
			s.left -= n
			c.noteProgress()
		}
		switch {
		case err == syscall.EAGAIN:
			return false
		case err == syscall.EINTR:
		case err != nil:
			s.err = err
			return true
		case n == 0: // the file ends before the run does
			s.err = io.ErrUnexpectedEOF
			return true
		}
	}
	return true
}

// peerGone tells whether the peer will send no more, whatever it has sent that is not
// read yet.
func (c *Conn) peerGone() (gone bool) {
	c.raw.Control(func(fd uintptr) {
		p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p[:], 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone
}
