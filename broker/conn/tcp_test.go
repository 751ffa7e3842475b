package conn

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"varve/broker/vfs"
	"varve/broker/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// tcpRig is a server on loopback. It is drained when the test ends.
func tcpRig(t testing.TB, cfg Config, h Handler) (*Server, string, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	set, err := Listen(t.Context(), []Endpoint{{Name: "PLAINTEXT", Host: "127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(cfg, h)
	set.Serve(s, func(err error) { t.Error(err) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return s, set.Bound()[0].Address(), log
}

func dialTCP(t testing.TB, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// A library answers every request with runs of a file, and small ones between.
type library struct {
	file  vfs.File
	runs  []vfs.Run
	owner counter
}

type counter struct{ n int }

func (c *counter) Release() { c.n++ }

func (l *library) Serve(_ *Conn, h wire.Header, _ []byte, out *Out) error {
	out.Begin(h)
	for i, r := range l.runs {
		out.B = fmt.Appendf(out.B, "<%d>", i)
		r.Owner = &l.owner
		if r.Bytes == nil {
			r.File = l.file
		}
		if err := out.Run(r); err != nil {
			return err
		}
	}
	out.B = append(out.B, "<end>"...)
	out.End()
	return nil
}

func (l *library) Closed(*Conn) {}

// book is a file of random bytes.
func book(t testing.TB, size int) (vfs.File, []byte) {
	t.Helper()
	b := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	name := filepath.Join(t.TempDir(), "book")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.OS{}.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, b
}

func TestRunsArriveWholeBySendfileAndThroughMemory(t *testing.T) {
	file, content := book(t, 3<<20)
	memory := bytes.Repeat([]byte("cached"), 10_000)
	runs := []vfs.Run{
		{Pos: 0, N: 100}, {Pos: 100, N: 1 << 20}, {Pos: 7, N: sendfileMin - 1}, {Pos: 9, N: sendfileMin},
		{N: len(memory), Bytes: memory}, {N: 6, Bytes: memory}, {Pos: 1 << 20, N: 2 << 20}, {Pos: 50, N: 0},
	}
	var want bytes.Buffer
	for i, r := range runs {
		fmt.Fprintf(&want, "<%d>", i)
		if r.Bytes != nil {
			want.Write(r.Bytes[:r.N])
		} else {
			want.Write(content[r.Pos : r.Pos+int64(r.N)])
		}
	}
	want.WriteString("<end>")

	check := func(t *testing.T, l *library, nc net.Conn) {
		c := &client{Conn: nc, t: t}
		c.send(heartbeat("a", 0), heartbeat("b", 0))
		for i := range int32(2) {
			if got := c.answer(i + 1); !bytes.Equal(got, want.Bytes()) {
				t.Errorf("answer %d: %d bytes differ from %d", i, len(got), want.Len())
			}
		}
		c.Close()
	}
	t.Run("sendfile", func(t *testing.T) {
		l := &library{file: file, runs: runs}
		s, addr, _ := tcpRig(t, Config{}, l)
		check(t, l, dialTCP(t, addr))
		s.Shutdown(t.Context())
		if l.owner.n != 2*len(runs) {
			t.Errorf("%d releases of %d runs", l.owner.n, 2*len(runs))
		}
	})
	t.Run("memory", func(t *testing.T) {
		l := &library{file: file, runs: runs}
		pipes := newPipes()
		s := NewServer(Config{}, l)
		go s.Serve("PLAINTEXT", pipes)
		ours := pipes.dial()
		done := make(chan struct{})
		go func() { defer close(done); check(t, l, ours) }()
		<-done
		s.Shutdown(t.Context())
		if l.owner.n != 2*len(runs) {
			t.Errorf("%d releases of %d runs", l.owner.n, 2*len(runs))
		}
	})
}

func TestAFileThatIsShorterThanItsRunClosesTheConnection(t *testing.T) {
	file, _ := book(t, 100_000)
	for name, run := range map[string]vfs.Run{"large": {Pos: 50_000, N: 100_000}, "small": {Pos: 99_000, N: 2000}} {
		t.Run(name, func(t *testing.T) {
			l := &library{file: file, runs: []vfs.Run{run}}
			s, addr, log := tcpRig(t, Config{}, l)
			c := &client{Conn: dialTCP(t, addr), t: t}
			c.send(heartbeat("a", 0))
			io.Copy(io.Discard, c)
			s.Shutdown(t.Context())
			if l.owner.n != 1 {
				t.Errorf("%d releases", l.owner.n)
			}
			if !strings.Contains(log.String(), "unexpected EOF") || !strings.Contains(log.String(), file.Name()) {
				t.Errorf("log %q", log)
			}
		})
	}
}

func TestAReaderThatLeavesReleasesTheRunsLeft(t *testing.T) {
	file, _ := book(t, 8<<20)
	l := &library{file: file, runs: []vfs.Run{{N: 8 << 20}, {N: 8 << 20}, {N: 8 << 20}}}
	s, addr, _ := tcpRig(t, Config{}, l)
	c := &client{Conn: dialTCP(t, addr), t: t}
	c.send(heartbeat("a", 0))
	io.ReadFull(c, make([]byte, 100))
	c.Close()
	s.Shutdown(t.Context())
	if l.owner.n != 3 {
		t.Errorf("%d releases of 3 runs", l.owner.n)
	}
}

func TestPendingAnswersLeaveARealSocketWithoutARequestBehindThem(t *testing.T) {
	h := newScript()
	_, addr, _ := tcpRig(t, Config{}, h)
	c := &client{Conn: dialTCP(t, addr), t: t}
	for i := range int32(100) {
		c.send(produce(time.Minute, 0))
		for h.servedCount() <= int(i) {
			runtime.Gosched()
		}
		held := h.held(int(i))
		go held.slot.Done(held.token, 0)
		c.produced(i+1, 0)
	}
}

// A fetch may wait for days, and holds a descriptor meanwhile.
func TestAClientThatLeavesWhileItsRequestWaitsIsNoticed(t *testing.T) {
	h := newScript()
	s, addr, _ := tcpRig(t, Config{PeerCheck: time.Millisecond}, h)
	stays := &client{Conn: dialTCP(t, addr), t: t}
	leaves := &client{Conn: dialTCP(t, addr), t: t}
	leaves.send(heartbeat("park", 3_600_000))
	<-h.wakers
	stays.send(heartbeat("park", 3_600_000))
	waker := <-h.wakers
	leaves.Close()
	for deadline := time.Now().Add(20 * time.Second); s.Stats().Connections > 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the client left, and its connection is still there after 20 s")
		}
	}
	waker.Wake()
	stays.answer(1)
}

func TestLargeRequestsGrowWithTheirBytes(t *testing.T) {
	h := newScript()
	s, addr, _ := tcpRig(t, Config{}, h)
	c := &client{Conn: dialTCP(t, addr), t: t}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	liar := dialTCP(t, addr)
	liar.Write([]byte{0x06, 0x3f, 0xff, 0xff}) // 100 MiB, and nothing of it
	c.send(heartbeat("a", 0))
	c.answer(1)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("a size without bytes took %d bytes of memory", n)
	}

	big := produce(time.Minute, 0).(*kmsg.ProduceRequest)
	for i, size := range []int{300 << 10, 5 << 20, 5 << 20, 20 << 20, 1 << 10} {
		big.Topics[0].Partitions[0].Records = make([]byte, size)
		c.send(big)
		for h.servedCount() < i+2 {
			runtime.Gosched()
		}
		held := h.held(i)
		held.slot.Done(held.token, 0)
		c.produced(int32(i+2), 0)
	}
	if n := s.Stats().Connections; n != 2 {
		t.Errorf("%d connections", n)
	}
}

func TestRequestsOfRealSocketsWaitForTheBudget(t *testing.T) {
	h := newScript()
	s, addr, _ := tcpRig(t, Config{QueuedBytes: 100 << 10}, h)
	waiting := func() int {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		return len(s.budget.mu.waiting)
	}
	used := func() int64 {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		return s.budget.mu.used
	}
	until := func(ok func() bool) {
		for !ok() {
			runtime.Gosched()
		}
	}
	big := produce(time.Minute, 0).(*kmsg.ProduceRequest)
	big.Topics[0].Partitions[0].Records = make([]byte, 120<<10)
	a, b := &client{Conn: dialTCP(t, addr), t: t}, &client{Conn: dialTCP(t, addr), t: t}
	frame := a.request(big)
	a.Write(frame[:len(frame)-1])
	until(func() bool { return used() > 100<<10 })
	b.send(big)
	until(func() bool { return waiting() == 1 })
	if n := h.servedCount(); n != 0 {
		t.Errorf("%d requests served", n)
	}
	a.Write(frame[len(frame)-1:])
	until(func() bool { return h.servedCount() == 2 })
	until(func() bool { return used() == 0 })
	for i, c := range []*client{a, b} {
		held := h.held(i)
		held.slot.Done(held.token, 0)
		c.produced(1, 0)
	}
}

func TestMoreConnectionsOfOneAddressThanAllowedAreClosed(t *testing.T) {
	h := newScript()
	_, addr, log := tcpRig(t, Config{MaxPerIP: 5, PerIP: map[string]int{"127.0.0.1": 1}}, h)
	first := &client{Conn: dialTCP(t, addr), t: t}
	first.send(heartbeat("a", 0))
	first.answer(1)
	second := dialTCP(t, addr)
	if n, err := second.Read(make([]byte, 1)); err == nil {
		t.Errorf("a second connection reads %d bytes", n)
	}
	if !strings.Contains(log.String(), "127.0.0.1 has max.connections.per.ip, 1, already") {
		t.Errorf("log %q", log)
	}
}

// What is waited for may be done before the connection sleeps, and its wake with it.
func TestBlockMissesNoEndHoweverSoonItComes(t *testing.T) {
	h := newScript()
	close(h.block)
	_, addr, _ := tcpRig(t, Config{}, h)
	c := &client{Conn: dialTCP(t, addr), t: t}
	c.SetDeadline(time.Now().Add(time.Minute))
	for i := int32(1); i <= 20_000; i++ {
		c.send(heartbeat("block", 0))
		c.answer(i)
	}
}
