package conn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"varve/broker/kafka"
	"varve/broker/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A script is a handler whose requests say what they want: a Heartbeat's group is
// a command, a Produce is pended with one hold for each partition.
type script struct {
	mu struct {
		sync.Mutex
		served []string
		slots  []held
		closed int
	}
	wakers chan *Waker // of parked requests
	block  chan struct{}
}

type held struct {
	slot  *Slot
	token uint64
}

func newScript() *script {
	return &script{wakers: make(chan *Waker, 100), block: make(chan struct{})}
}

func (s *script) Serve(c *Conn, h wire.Header, body []byte, out *Out) error {
	if h.Key == wire.Produce {
		return s.produce(h, body, out)
	}
	r, err := wire.Decode(h, body)
	if err != nil {
		return err
	}
	hb, ok := r.(*kmsg.HeartbeatRequest)
	if !ok {
		out.Respond(h, r.ResponseKind())
		return nil
	}
	s.note(hb.Group)
	resp := hb.ResponseKind().(*kmsg.HeartbeatResponse)
	switch hb.Group {
	case "panic":
		panic("a fault of ours")
	case "fail":
		return errors.New("cannot be served")
	case "silence":
		out.Silence()
		return nil
	case "park":
		s.wakers <- c.Waker()
		if !c.Park(time.Now().Add(time.Duration(hb.Generation) * time.Millisecond)) {
			resp.ErrorCode = int16(kafka.RequestTimedOut)
		}
	case "block":
		c.Block(func(context.Context) { <-s.block })
	case "throttle":
		c.Throttle(time.Second)
	}
	out.Respond(h, resp)
	return nil
}

func (s *script) produce(h wire.Header, body []byte, out *Out) error {
	var r wire.ProduceRequest
	if err := r.Decode(body, h.Version); err != nil {
		return err
	}
	defer s.note("produce")
	v := wire.ProduceResponse(h.Version)
	out.Begin(h)
	slot := out.Pend(time.Now().Add(r.Timeout))
	out.B = v.Begin(out.B, len(r.Topics))
	for _, t := range r.Topics {
		out.B = v.Topic(out.B, t.Name, t.ID, len(t.Partitions))
		for _, p := range t.Partitions {
			s.hold(held{slot, slot.Hold(len(out.B))})
			out.B = v.Partition(out.B, &wire.ProduceResult{Partition: p.Partition, Base: 7, AppendTime: -1})
		}
		out.B = v.EndTopic(out.B)
	}
	out.B = v.End(out.B, 0, nil)
	out.End()
	return nil
}

func (s *script) Closed(*Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed++
}

func (s *script) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.served = append(s.mu.served, strings.Clone(what))
}

func (s *script) hold(h held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.slots = append(s.mu.slots, h)
}

func (s *script) held(i int) held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.slots[i]
}

func (s *script) servedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.served)
}

// A pipes is a listener over net.Pipe.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// A logBuffer is where tests read the log.
type logBuffer struct {
	mu struct {
		sync.Mutex
		bytes.Buffer
	}
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.String()
}

// A rig is a server over pipes with a scripted handler.
type rig struct {
	*Server
	t      *testing.T
	script *script
	pipes  *pipes
	log    *logBuffer
}

func newRig(t *testing.T, cfg Config) *rig {
	r := &rig{t: t, script: newScript(), pipes: newPipes(), log: &logBuffer{}}
	cfg.Log = slog.New(slog.NewTextHandler(r.log, nil))
	r.Server = NewServer(cfg, r.script)
	go r.Serve("PLAINTEXT", r.pipes)
	return r
}

// bubble runs f with a rig in a bubble, and drains it after.
func bubble(t *testing.T, cfg Config, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cfg)
		f(r)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.Shutdown(ctx)
		if n := r.Stats().Connections; n != 0 {
			t.Errorf("%d connections after the end", n)
		}
	})
}

// A client speaks to the server by hand.
type client struct {
	net.Conn
	t *testing.T
	n int32
}

func (r *rig) dial() *client { return &client{Conn: r.pipes.dial(), t: r.t} }

// request is the frame of a request with the next correlation id.
func (c *client) request(r kmsg.Request) []byte {
	c.n++
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("tester")).AppendRequest(nil, r, c.n)
}

func heartbeat(group string, generation int32) kmsg.Request {
	r := kmsg.NewPtrHeartbeatRequest()
	r.Group, r.Generation = group, generation
	return r
}

func produce(timeout time.Duration, partitions ...int32) kmsg.Request {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = 9, -1, int32(timeout/time.Millisecond)
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "orders"
	for _, p := range partitions {
		t.Partitions = append(t.Partitions, kmsg.ProduceRequestTopicPartition{Partition: p, Records: make([]byte, 100)})
	}
	r.Topics = append(r.Topics, t)
	return r
}

func (c *client) send(rs ...kmsg.Request) {
	c.t.Helper()
	var b []byte
	for _, r := range rs {
		b = append(b, c.request(r)...)
	}
	if _, err := c.Write(b); err != nil {
		c.t.Error(err)
	}
}

// answer reads the next answer and holds it to its correlation id.
func (c *client) answer(correlation int32) []byte {
	c.t.Helper()
	var prefix [8]byte
	if _, err := io.ReadFull(c, prefix[:]); err != nil {
		c.t.Fatalf("answer %d: %v", correlation, err)
	}
	body := make([]byte, binary.BigEndian.Uint32(prefix[:])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		c.t.Fatal(err)
	}
	if got := int32(binary.BigEndian.Uint32(prefix[4:])); got != correlation {
		c.t.Fatalf("answer to %d, want %d", got, correlation)
	}
	return body
}

// produced reads an answer to produce and wants the codes.
func (c *client) produced(correlation int32, codes ...kafka.Code) {
	c.t.Helper()
	r := kmsg.NewPtrProduceResponse()
	r.Version = 9
	if err := r.ReadFrom(c.answer(correlation)[1:]); err != nil {
		c.t.Fatal(err)
	}
	for i, p := range r.Topics[0].Partitions {
		if kafka.Code(p.ErrorCode) != codes[i] {
			c.t.Errorf("partition %d: %v, want %v", p.Partition, kafka.Code(p.ErrorCode), codes[i])
		}
	}
}

// silent fails where an answer comes within a second.
func (c *client) silent() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Second))
	defer c.SetReadDeadline(time.Time{})
	var b [1]byte
	if n, err := c.Read(b[:]); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("%d bytes, error %v, want silence", n, err)
	}
}

// ended wants the server to have closed the connection.
func (c *client) ended() {
	c.t.Helper()
	if n, err := io.Copy(io.Discard, c); n > 0 || err != nil {
		c.t.Errorf("%d bytes, error %v, want the end", n, err)
	}
}
