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

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		go c.send(heartbeat("a", 0), heartbeat("silence", 0), heartbeat("b", 0))
		c.answer(1)
		c.answer(3)
	})
}

func TestRequestsBehindAPendingProduceAreServedAndAnsweredAfterIt(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(produce(time.Minute, 0), heartbeat("behind", 0))
		c.send(produce(time.Minute, 1))
		c.silent()
		if n := r.script.servedCount(); n != 3 {
			t.Fatalf("%d requests served, want 3", n)
		}
		second := r.script.held(1)
		second.slot.Done(second.token, kafka.None)
		c.silent()
		first := r.script.held(0)
		first.slot.Done(first.token, kafka.None)
		c.produced(1, kafka.None)
		c.answer(2)
		c.produced(3, kafka.None)
	})
}

func TestProduceIsAnsweredWhenItsLastPartitionIsDone(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(produce(time.Minute, 0, 1))
		synctest.Wait()
		a, b := r.script.held(0), r.script.held(1)
		b.slot.Done(b.token, kafka.NotEnoughReplicasAfterAppend)
		b.slot.Done(b.token, kafka.None) // twice is once
		c.silent()
		a.slot.Done(a.token, kafka.None)
		c.produced(1, kafka.None, kafka.NotEnoughReplicasAfterAppend)
	})
}

func TestProduceThatWaitsTooLongIsTimedOutAndItsTokensAreVoid(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		began := time.Now()
		c.send(produce(2*time.Second, 0, 1))
		synctest.Wait()
		a, b := r.script.held(0), r.script.held(1)
		a.slot.Done(a.token, kafka.None)
		c.produced(1, kafka.None, kafka.RequestTimedOut)
		if took := time.Since(began); took < 2*time.Second || took > 2*time.Second+2*tick {
			t.Errorf("timed out after %v", took)
		}
		c.send(produce(time.Minute, 2)) // takes the slot again
		b.slot.Done(b.token, kafka.None)
		c.silent()
		again := r.script.held(2)
		again.slot.Done(again.token, kafka.None)
		c.produced(2, kafka.None)
	})
}

func TestParkEndsWhenWoken(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(heartbeat("park", 60_000))
		w := <-r.script.wakers
		c.silent()
		w.Wake()
		if got := c.answer(1); !bytes.Equal(got, []byte{0, 0}) {
			t.Errorf("answer %x", got)
		}
		w.Wake() // nobody waits: harmless, once
		c.send(heartbeat("after", 0))
		c.answer(2)
	})
}

func TestParkEndsAtItsDeadlineAndNotBefore(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		for i, ms := range []int32{1, 5, 500, 30_000} {
			began := time.Now()
			c.send(heartbeat("park", ms))
			if got := c.answer(int32(i + 1)); !bytes.Equal(got, []byte{0, 7}) {
				t.Errorf("answer %x, want a time-out", got)
			}
			want := time.Duration(ms) * time.Millisecond
			if took := time.Since(began); took < want || took > want+2*tick {
				t.Errorf("parked for %v, want %v", took, want)
			}
		}
	})
}

func TestPendingAnswersLeaveWhileALaterRequestIsParked(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(produce(time.Minute, 0), heartbeat("park", 60_000), heartbeat("behind", 0))
		w := <-r.script.wakers
		c.silent()
		h := r.script.held(0)
		h.slot.Done(h.token, kafka.None)
		c.produced(1, kafka.None)
		c.silent()
		w.Wake()
		c.answer(2)
		c.answer(3)
	})
}

func TestBlockLeavesTheConnectionAnsweringWhatIsDue(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(produce(time.Minute, 0), heartbeat("block", 0))
		synctest.Wait()
		h := r.script.held(0)
		h.slot.Done(h.token, kafka.None)
		c.produced(1, kafka.None)
		c.silent()
		close(r.script.block)
		c.answer(2)
	})
}

func TestThrottledConnectionIsAnsweredAtOnceAndReadLater(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		began := time.Now()
		go c.send(heartbeat("throttle", 0), heartbeat("after", 0))
		c.answer(1)
		if took := time.Since(began); took > 0 {
			t.Errorf("answered after %v", took)
		}
		c.answer(2)
		if took := time.Since(began); took < time.Second {
			t.Errorf("read again after %v", took)
		}
	})
}

func TestAnErrorClosesAfterTheAnswersBeforeIt(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		go c.send(heartbeat("a", 0), heartbeat("fail", 0), heartbeat("never", 0))
		c.answer(1)
		c.ended()
		if n := r.script.servedCount(); n != 2 {
			t.Errorf("%d requests served, want 2", n)
		}
		synctest.Wait()
		if log := r.log.String(); !strings.Contains(log, "cannot be served") || !strings.Contains(log, "client=tester") {
			t.Errorf("log %q", log)
		}
	})
}

func TestAPanicEndsItsConnectionOnly(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		bad, good := r.dial(), r.dial()
		bad.send(heartbeat("panic", 0))
		bad.ended()
		good.send(heartbeat("a", 0))
		good.answer(1)
		synctest.Wait()
		if log := r.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "a fault of ours") || !strings.Contains(log, "Serve") {
			t.Errorf("log %q", log)
		}
	})
}

func TestHostileFramesCloseTheConnectionWithOneLine(t *testing.T) {
	for name, b := range map[string]string{
		"size of 2 GiB":     "\x7f\xff\xff\xff",
		"negative size":     "\xff\xff\xff\xff",
		"size of nothing":   "\x00\x00\x00\x00",
		"TLS":               "\x16\x03\x01\x02\x00",
		"HTTP":              "GET / HTTP/1.1\r\n\r\n",
		"unknown key":       "\x00\x00\x00\x0a\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff",
		"produce version 2": "\x00\x00\x00\x0a\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff",
		"client id cut":     "\x00\x00\x00\x0a\x00\x0c\x00\x00\x00\x00\x00\x01\x00\x09",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(r *rig) {
				c := r.dial()
				go c.Write([]byte(b))
				c.ended()
				synctest.Wait()
				if log := r.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "level=WARN") {
					t.Errorf("log %q", log)
				}
			})
		})
	}
}

func TestRepeatedHostilityIsSummedUp(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for range 50 {
			c := r.dial()
			go c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
			c.ended()
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if log := r.log.String(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "49 times more") {
			t.Errorf("log %q", log)
		}
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	bubble(t, Config{IdleTime: time.Minute}, func(r *rig) {
		c := r.dial()
		c.send(heartbeat("a", 0))
		c.answer(1)
		began := time.Now()
		c.ended()
		if took := time.Since(began); took < time.Minute || took > time.Minute+3*time.Second {
			t.Errorf("closed after %v", took)
		}
		if log := r.log.String(); log != "" {
			t.Errorf("an idle end is news: %q", log)
		}
	})
}

func TestWaitingConnectionsAreNotIdle(t *testing.T) {
	bubble(t, Config{IdleTime: time.Minute}, func(r *rig) {
		parked, pending := r.dial(), r.dial()
		parked.send(heartbeat("park", 180_000))
		pending.send(produce(3*time.Minute, 0))
		parked.answer(1)
		pending.produced(1, kafka.RequestTimedOut)
	})
}

func TestARequestThatStopsInItsMiddleIsGivenUp(t *testing.T) {
	bubble(t, Config{FrameStall: 10 * time.Second}, func(r *rig) {
		c := r.dial()
		f := c.request(heartbeat("a", 0))
		began := time.Now()
		for _, b := range f[:8] { // slow is not stopped
			c.Write([]byte{b})
			time.Sleep(5 * time.Second)
		}
		c.ended()
		if took := time.Since(began); took < 45*time.Second || took > 50*time.Second {
			t.Errorf("closed after %v", took)
		}
		synctest.Wait()
		if log := r.log.String(); !strings.Contains(log, "stopped in its middle") {
			t.Errorf("log %q", log)
		}
	})
}

func TestAnAnswerThatIsNotReadIsGivenUp(t *testing.T) {
	bubble(t, Config{WriteStall: 10 * time.Second}, func(r *rig) {
		c := r.dial()
		c.send(heartbeat("a", 0))
		time.Sleep(15 * time.Second)
		c.ended()
		synctest.Wait()
		if log := r.log.String(); !strings.Contains(log, "was not read") {
			t.Errorf("log %q", log)
		}
	})
}

func TestShutdownAnswersWhatIsParkedAndPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		idle, parked, pending := r.dial(), r.dial(), r.dial()
		parked.send(heartbeat("park", 60_000))
		pending.send(produce(time.Minute, 0))
		<-r.script.wakers
		synctest.Wait()
		done := make(chan error)
		go func() { done <- r.Shutdown(t.Context()) }()
		idle.ended()
		parked.answer(1)
		parked.ended()
		pending.silent()
		h := r.script.held(0)
		h.slot.Done(h.token, kafka.None)
		pending.produced(1, kafka.None)
		pending.ended()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if r.script.mu.closed != 3 {
			t.Errorf("the handler was told of %d ends, want 3", r.script.mu.closed)
		}
	})
}

func TestShutdownCutsWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		pending, stuck := r.dial(), r.dial()
		pending.send(produce(time.Hour, 0))
		stuck.send(heartbeat("unread", 0))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		pending.ended()
		if n := r.Stats().Connections; n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestMoreConnectionsThanAllowedWait(t *testing.T) {
	bubble(t, Config{MaxConnections: 1}, func(r *rig) {
		first := r.dial()
		second := make(chan *client)
		go func() { second <- r.dial() }()
		synctest.Wait()
		if n := r.Stats().Connections; n != 1 {
			t.Fatalf("%d connections", n)
		}
		first.Close()
		c := <-second
		c.send(heartbeat("a", 0))
		c.answer(1)
	})
}

func TestRequestsWaitForTheBudget(t *testing.T) {
	bubble(t, Config{QueuedBytes: 100 << 10}, func(r *rig) {
		big := produce(time.Minute, 0).(*kmsg.ProduceRequest)
		big.Topics[0].Partitions[0].Records = make([]byte, 120<<10)
		a, b, small := r.dial(), r.dial(), r.dial()
		frame := a.request(big)
		a.Write(frame[:len(frame)-1]) // admitted, and not whole
		wrote := make(chan struct{})
		go func() { b.send(big); close(wrote) }()
		time.Sleep(time.Second)
		select {
		case <-wrote:
			t.Fatal("a second request is read while the first takes all the budget")
		default:
		}
		small.send(heartbeat("a", 0)) // small ones do not count
		small.answer(1)
		a.Write(frame[len(frame)-1:])
		<-wrote
		synctest.Wait()
		if n := r.script.servedCount(); n != 3 {
			t.Errorf("%d requests served, want 3", n)
		}
		if used := r.budget.mu.used; used != 0 {
			t.Errorf("%d bytes of the budget are taken and nothing is read", used)
		}
	})
}

func TestCountsAreWhatHasPassed(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(heartbeat("a", 0))
		c.answer(1)
		c.Close()
		synctest.Wait()
		size := uint64(len(c.request(heartbeat("a", 0))))
		if got, want := r.Stats(), (Stats{0, 1, 0, size, 10}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestManyPendingAnswersStopTheReading(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		go func() {
			for range 1500 {
				c.send(produce(time.Minute, 0))
			}
		}()
		synctest.Wait()
		if n := r.script.servedCount(); n != 1000 {
			t.Fatalf("%d requests served before any is answered, want 1000", n)
		}
		for i := range 1500 {
			h := r.script.held(i)
			h.slot.Done(h.token, kafka.None)
			c.produced(int32(i+1), kafka.None)
			synctest.Wait()
		}
	})
}
