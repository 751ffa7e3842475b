//go:build !linux

package conn

import "golang.org/x/sys/unix"

// A sender is empty where runs pass through memory.
type sender struct{}

func (c *Conn) initSender()       {}
func (c *Conn) canSendfile() bool { return false }

func (c *Conn) sendMore(b []byte) error { return c.write(b) }

func (c *Conn) sendfile(uintptr, int64, int) error { panic("conn: no sendfile here") }

// peerGone tells whether the peer has closed the connection; one that only sends no more
// is not seen here.
func (c *Conn) peerGone() (gone bool) {
	c.raw.Control(func(fd uintptr) {
		p := [1]unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(p[:], 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone
}
