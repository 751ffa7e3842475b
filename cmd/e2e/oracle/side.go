package oracle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Side is one of the two brokers that are asked the same: a connection, and what
// its answers taught (topic ids, member ids, producer ids), under names that both
// sides share.
type Side struct {
	Name string // "kafka" or "varve"
	Addr string

	conn    net.Conn
	r       *bufio.Reader
	corr    int32
	silence time.Duration
	learned map[string]any
	names   map[string]string // a learned value as text → its shared name
}

// A broker that has not answered within silence leaves the request without answer.
// Nothing that is asked here may take so long, on the busiest machine.
const silence = 20 * time.Second

// NewSide returns a side that has not connected yet.
func NewSide(name, addr string) *Side {
	return &Side{Name: name, Addr: addr, silence: silence, learned: map[string]any{}, names: map[string]string{}}
}

// Learn keeps a value of an answer under a name that both sides use, so that later
// requests can carry it and comparison treats both sides' values as one.
func (s *Side) Learn(name string, v any) {
	s.learned[name] = v
	s.names[fmt.Sprint(v)] = name
}

// Learned returns what Learn kept, or the zero value.
func Learned[T any](s *Side, name string) T {
	v, _ := s.learned[name].(T)
	return v
}

// Close ends the connection; the next call makes another.
func (s *Side) Close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// What a broker does instead of answering.
var (
	errClosed = errors.New("connection closed")
	errSilent = errors.New("no answer")
)

// Call sends req and reads its answer.
func (s *Side) Call(req kmsg.Request) (kmsg.Response, error) {
	return s.CallBody(req.Key(), req.GetVersion(), req.AppendTo(nil))
}

// CallBody sends a body, whatever is in it, and reads its answer.
func (s *Side) CallBody(key, version int16, body []byte) (kmsg.Response, error) {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	b, err := s.Raw(key, version, req.IsFlexible(), body)
	if err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	if key == kmsg.ApiVersions.Int16() && (version < 0 || version > 4) {
		resp.SetVersion(0) // what is answered to a version that is not known (KIP-511)
	}
	if err := resp.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("%s answered %s v%d with what does not decode: %w", s.Name, kmsg.NameForKey(key), version, err)
	}
	return resp, nil
}

// Raw sends a body under a header of key and version, and returns the answer's body.
func (s *Side) Raw(key, version int16, flexible bool, body []byte) ([]byte, error) {
	b, err := s.Frame(s.request(key, version, flexible, body))
	if err != nil {
		return nil, err
	}
	if len(b) < 4 || int32(binary.BigEndian.Uint32(b)) != s.corr {
		return nil, fmt.Errorf("%s answered with another correlation id than %d: % x", s.Name, s.corr, b[:min(len(b), 8)])
	}
	b = b[4:]
	if flexible && key != kmsg.ApiVersions.Int16() {
		if len(b) == 0 || b[0] != 0 {
			return nil, fmt.Errorf("%s: response header of a flexible version has tags: % x", s.Name, b[:min(len(b), 8)])
		}
		b = b[1:]
	}
	return b, nil
}

// request is a frame's content, with the next correlation id.
func (s *Side) request(key, version int16, flexible bool, body []byte) []byte {
	s.corr++
	h := binary.BigEndian.AppendUint16(nil, uint16(key))
	h = binary.BigEndian.AppendUint16(h, uint16(version))
	h = binary.BigEndian.AppendUint32(h, uint32(s.corr))
	h = append(h, 0, 6, 'o', 'r', 'a', 'c', 'l', 'e')
	if flexible {
		h = append(h, 0)
	}
	return append(h, body...)
}

// Frame sends a frame as it is and reads one back; a closed connection is errClosed.
func (s *Side) Frame(frame []byte) ([]byte, error) {
	if err := s.connect(); err != nil {
		return nil, err
	}
	s.conn.SetDeadline(time.Now().Add(s.silence))
	if _, err := s.conn.Write(framed(frame)); err != nil {
		s.Close()
		return nil, errClosed
	}
	return s.read()
}

// Send sends req without waiting for an answer.
func (s *Side) Send(req kmsg.Request) error {
	if err := s.connect(); err != nil {
		return err
	}
	_, err := s.conn.Write(framed(s.request(req.Key(), req.GetVersion(), req.IsFlexible(), req.AppendTo(nil))))
	return err
}

func framed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func (s *Side) read() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(s.r, size[:]); err != nil {
		s.Close()
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			return nil, errSilent
		}
		return nil, errClosed
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(s.r, b); err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: answer cut short: %w", s.Name, err)
	}
	return b, nil
}

func (s *Side) connect() error {
	if s.conn != nil {
		return nil
	}
	c, err := net.DialTimeout("tcp", s.Addr, silence)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", s.Name, err)
	}
	s.conn, s.r = c, bufio.NewReader(c)
	return nil
}
