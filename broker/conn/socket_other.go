//go:build !linux

package conn

// A sender is empty where runs pass through memory.
type sender struct{}

func (c *Conn) initSender()       {}
func (c *Conn) canSendfile() bool { return false }

func (c *Conn) sendMore(b []byte) error { return c.write(b) }

func (c *Conn) sendfile(uintptr, int64, int) error { panic("conn: no sendfile here") }
