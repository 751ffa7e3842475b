package conn

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"varve/broker/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A tape is a connection that plays bytes in pieces and takes every answer.
type tape struct {
	in    []byte
	piece int
}

func (c *tape) Read(b []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), max(c.piece, 1))], c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *tape) Write(b []byte) (int, error)      { return len(b), nil }
func (c *tape) Close() error                     { return nil }
func (c *tape) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "tape"} }
func (c *tape) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "tape"} }
func (c *tape) SetDeadline(time.Time) error      { return nil }
func (c *tape) SetReadDeadline(time.Time) error  { return nil }
func (c *tape) SetWriteDeadline(time.Time) error { return nil }

// polite decodes everything and answers everything.
type polite struct{ produce wire.ProduceRequest }

func (p *polite) Serve(_ *Conn, h wire.Header, body []byte, out *Out) error {
	if body == nil {
		out.Respond(h, wire.ApiVersionsResponse(h.Version, wire.APIs, wire.Features{}))
		return nil
	}
	if h.Key == wire.Produce {
		if err := p.produce.Decode(body, h.Version); err != nil {
			return err
		}
		out.Respond(h, kmsg.NewPtrProduceResponse())
		return nil
	}
	r, err := wire.Decode(h, body)
	if err != nil {
		return err
	}
	out.Respond(h, r.ResponseKind())
	return nil
}

func (p *polite) Closed(*Conn) {}

// FuzzConnection plays any bytes to a connection: it must end without a panic.
func FuzzConnection(f *testing.F) {
	format := kmsg.NewRequestFormatter()
	var all []byte
	for _, a := range wire.APIs {
		r := kmsg.RequestForKey(a.Key)
		r.SetVersion(a.Max)
		all = format.AppendRequest(all, r, 1)
		f.Add(format.AppendRequest(nil, r, 1), 3)
	}
	f.Add(all, 1000)
	s := NewServer(Config{Log: slog.New(slog.DiscardHandler), MaxRequestBytes: 1 << 20}, &polite{})
	f.Cleanup(s.cancel)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		c := s.newConn("PLAINTEXT", &tape{b, piece})
		err := c.loop()
		if p := (*panicError)(nil); errors.As(err, &p) {
			t.Fatalf("%v\n%s", p, p.stack)
		}
		c.end(err)
	})
}
