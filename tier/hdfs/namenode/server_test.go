package namenode

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"varve/tier"
)

// A call is what the stand-in for a NameNode got.
type call struct {
	conn   int // the how manieth connection
	id     int32
	retry  int64
	client string
	method string
	body   fields
}

// A standIn speaks the NameNode's frames; its answer decides what goes back. A nil
// slice is silence, errHangUp closes the connection.
type standIn struct {
	addr string
	mu   struct {
		sync.Mutex
		calls []call
		conns int
	}
}

var errHangUp = errors.New("hang up")

func serve(t *testing.T, answer func(c call, reply func([]byte)) error) *standIn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{addr: l.Addr().String()}
	var all sync.WaitGroup
	var open []net.Conn
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				break
			}
			s.mu.Lock()
			s.mu.conns++
			n := s.mu.conns
			open = append(open, nc)
			s.mu.Unlock()
			all.Go(func() { s.talk(nc, n, answer) })
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, nc := range open {
			nc.Close()
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return s
}

func (s *standIn) talk(nc net.Conn, n int, answer func(call, func([]byte)) error) {
	defer nc.Close()
	if _, err := io.ReadFull(nc, make([]byte, 7)); err != nil {
		return
	}
	var writing sync.Mutex
	for {
		b, err := readFrame(nc)
		if err != nil {
			return
		}
		head, rest, err := cut(b)
		if err != nil {
			return
		}
		h, _ := parse(head)
		c := call{conn: n, id: int32(protowire.DecodeZigZag(h.last(3).num)), client: h.str(4), retry: protowire.DecodeZigZag(h.last(5).num)}
		if c.id < 0 {
			continue // the connection's context
		}
		method, rest, _ := cut(rest)
		m, _ := parse(method)
		c.method = m.str(1)
		body, _, _ := cut(rest)
		c.body, _ = parse(body)
		s.mu.Lock()
		s.mu.calls = append(s.mu.calls, c)
		s.mu.Unlock()
		err = answer(c, func(b []byte) {
			writing.Lock()
			defer writing.Unlock()
			nc.Write(b)
		})
		if err != nil {
			return
		}
	}
}

func (s *standIn) seen() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]call(nil), s.mu.calls...)
}

func success(id int32, body message) []byte {
	return frame(message(nil).num(1, uint64(uint32(id))).num(2, 0), body)
}

func exception(id int32, status uint64, class, text string) []byte {
	return frame(message(nil).num(1, uint64(uint32(id))).num(2, status).str(4, class).str(5, text))
}

func client(t *testing.T, o Options, servers ...*standIn) *Client {
	t.Helper()
	for _, s := range servers {
		o.Addrs = append(o.Addrs, s.addr)
	}
	o.User = "varve"
	c := New(o)
	t.Cleanup(func() { c.Close() })
	return c
}

const standbyClass = "org.apache.hadoop.ipc.StandbyException"

func standby(c call, reply func([]byte)) error {
	reply(exception(c.id, 1, standbyClass, "Operation category WRITE is not supported in state standby\n\tat java"))
	return nil
}

func yes(c call, reply func([]byte)) error {
	reply(success(c.id, message(nil).flag(1, true)))
	return nil
}

func TestStandbySendsTheCallToTheOther(t *testing.T) {
	one, two := serve(t, standby), serve(t, yes)
	c := client(t, Options{}, one, two)
	for range 2 {
		if err := c.Rename(t.Context(), "/a", "/b"); err != nil {
			t.Fatal(err)
		}
	}
	first, then := one.seen(), two.seen()
	if len(first) != 1 || len(then) != 2 {
		t.Fatalf("the standby got %d calls, the active %d, want 1 and 2: the active is remembered", len(first), len(then))
	}
	if first[0].id != then[0].id || first[0].client != then[0].client || len(first[0].client) != 16 {
		t.Fatalf("asked as call %d of %x, then as %d of %x: want the same", first[0].id, first[0].client, then[0].id, then[0].client)
	}
	if then[0].retry != 1 || then[1].id == then[0].id {
		t.Fatalf("retry %d, next call %d after %d", then[0].retry, then[1].id, then[0].id)
	}
}

// T1: the retry cache can answer only if the call keeps its id.
func TestLostAnswerIsAskedForUnderTheSameID(t *testing.T) {
	s := serve(t, func(c call, reply func([]byte)) error {
		if c.conn == 1 {
			return errHangUp
		}
		return yes(c, reply)
	})
	c := client(t, Options{}, s)
	if err := c.Rename(t.Context(), "/a", "/b"); err != nil {
		t.Fatal(err)
	}
	calls := s.seen()
	if len(calls) != 2 || calls[0].id != calls[1].id || calls[0].client != calls[1].client {
		t.Fatalf("the NameNode saw %+v, want one call twice", calls)
	}
	if got := calls[1].body; got.str(1) != "/a" || got.str(2) != "/b" || !got.has(3) || got.flag(3) {
		t.Fatalf("rename2 carries %v, want /a, /b, overwrite false", got)
	}
}

func TestChangeWithoutAnswerIsUnsettled(t *testing.T) {
	s := serve(t, func(call, func([]byte)) error { return nil })
	c := client(t, Options{Timeout: 30 * time.Millisecond, Patience: 200 * time.Millisecond}, s)
	err := c.Rename(t.Context(), "/a", "/b")
	var e *Error
	if !errors.Is(err, tier.ErrUnsettled) || !errors.As(err, &e) || !e.Lost {
		t.Fatalf("Rename without an answer = %v, want %v", err, tier.ErrUnsettled)
	}
	if _, err := c.Stat(t.Context(), "/a"); !errors.Is(err, tier.ErrUnavailable) {
		t.Fatalf("Stat without an answer = %v, want %v: it changes nothing", err, tier.ErrUnavailable)
	}
	if calls := s.seen(); len(calls) < 3 || calls[0].id != calls[1].id {
		t.Fatalf("%d calls, want the rename several times under one id", len(calls))
	}
}

func TestUnreachedChangeIsUnavailable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := client(t, Options{Addrs: []string{addr}, Patience: 150 * time.Millisecond})
	err = c.Rename(t.Context(), "/a", "/b")
	if !errors.Is(err, tier.ErrUnavailable) || errors.Is(err, tier.ErrUnsettled) {
		t.Fatalf("Rename at a port without server = %v, want %v", err, tier.ErrUnavailable)
	}
	if !strings.Contains(err.Error(), addr) {
		t.Fatalf("%q does not name %s", err, addr)
	}
}

// A pair without an active one answers at once; the call goes on asking.
func TestCallWaitsForAnActive(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	s := serve(t, func(c call, reply func([]byte)) error {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked < 4 {
			return standby(c, reply)
		}
		return yes(c, reply)
	})
	c := client(t, Options{}, s, s)
	if err := c.Rename(t.Context(), "/a", "/b"); err != nil {
		t.Fatal(err)
	}
}

func TestAnswersComeInAnyOrder(t *testing.T) {
	var mu sync.Mutex
	var held []call
	s := serve(t, func(c call, reply func([]byte)) error {
		mu.Lock()
		defer mu.Unlock()
		held = append(held, c)
		if len(held) < 3 {
			return nil
		}
		for i := len(held) - 1; i >= 0; i-- { // the last first
			path := held[i].body.str(1)
			reply(success(held[i].id, message(nil).raw(1, message(nil).num(1, 2).num(3, uint64(len(path))))))
		}
		return nil
	})
	c := client(t, Options{}, s)
	var wg sync.WaitGroup
	for _, path := range []string{"/1", "/22", "/333"} {
		wg.Go(func() {
			status, err := c.Stat(t.Context(), path)
			if err != nil || status.Length != int64(len(path)) {
				t.Errorf("Stat(%s) = %+v, %v, want length %d", path, status, err, len(path))
			}
		})
	}
	wg.Wait()
	if conns := s.seen()[2].conn; conns != 1 {
		t.Errorf("%d connections, want 1", conns)
	}
}

func TestCallerThatGivesUpLeavesTheConnection(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(c call, reply func([]byte)) error {
		if c.method == "getContentSummary" {
			go func() { <-release; yes(c, reply) }()
			return nil
		}
		return yes(c, reply)
	})
	defer close(release)
	c := client(t, Options{}, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.ContentSummary(ctx, "/"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, tier.ErrUnavailable) {
		t.Fatalf("a call past its context = %v, want %v", err, context.DeadlineExceeded)
	}
	if err := c.Rename(t.Context(), "/a", "/b"); err != nil {
		t.Fatal(err)
	}
	if calls := s.seen(); calls[1].conn != 1 {
		t.Fatalf("the next call went over connection %d, want 1", calls[1].conn)
	}
}

func TestRefusalOfTheConnectionIsTheAnswer(t *testing.T) {
	s := serve(t, func(c call, reply func([]byte)) error {
		reply(exception(-1, 2, "org.apache.hadoop.security.AccessControlException", "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]\nat x"))
		return errHangUp
	})
	c := client(t, Options{}, s)
	err := c.Rename(t.Context(), "/a", "/b")
	if !errors.Is(err, tier.ErrDenied) || !strings.Contains(err.Error(), "SIMPLE authentication is not enabled") {
		t.Fatalf("on a NameNode that wants Kerberos: %v, want %v with its words", err, tier.ErrDenied)
	}
}

func TestExceptionsHaveTheirKinds(t *testing.T) {
	for class, want := range map[string]error{
		"org.apache.hadoop.hdfs.server.namenode.SafeModeException":     tier.ErrUnavailable,
		"org.apache.hadoop.ipc.RetriableException":                     tier.ErrUnavailable,
		"org.apache.hadoop.hdfs.protocol.DSQuotaExceededException":     tier.ErrFull,
		"org.apache.hadoop.hdfs.protocol.NSQuotaExceededException":     tier.ErrFull,
		"org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException":   tier.ErrFull,
		"org.apache.hadoop.security.AccessControlException":            tier.ErrDenied,
		"org.apache.hadoop.security.token.SecretManager$InvalidToken":  tier.ErrDenied,
		"org.apache.hadoop.fs.FileAlreadyExistsException":              tier.ErrExists,
		"org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException": tier.ErrExists,
		"java.io.FileNotFoundException":                                tier.ErrNotFound,
		"org.apache.hadoop.fs.ParentNotDirectoryException":             tier.ErrNotFound,
		"org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException": tier.ErrNotFound,
		"java.lang.NullPointerException":                               nil,
	} {
		err := &Error{Method: "m", Kind: Kind(class, ""), Err: &RemoteError{Class: class}}
		if err.Kind != want || want != nil && !errors.Is(err, want) {
			t.Errorf("%s is %v, want %v", class, err.Kind, want)
		}
	}
	for text, want := range map[string]error{
		"File /f could only be written to 0 of the 1 minReplication nodes. There are 1 datanode(s) running and 1 node(s) are excluded":             tier.ErrFull,
		"File /f could only be replicated to 0 nodes instead of minReplication (=1).  There are 0 datanode(s) running and no node(s) are excluded": tier.ErrUnavailable,
	} {
		if got := Kind("java.io.IOException", text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestListingGoesOnPageByPage(t *testing.T) {
	pages := map[string][]string{"": {"a", "b"}, "b": {"c"}}
	s := serve(t, func(c call, reply func([]byte)) error {
		var list message
		after := c.body.str(2)
		for _, name := range pages[after] {
			list = list.raw(1, message(nil).num(1, 2).str(2, name).num(3, 7))
		}
		list = list.num(2, uint64(len(pages["b"])*(1-len(after))))
		reply(success(c.id, message(nil).raw(1, list)))
		return nil
	})
	c := client(t, Options{}, s)
	got, err := c.List(t.Context(), "/d", false)
	if err != nil || len(got) != 3 || got[2].Name != "c" || got[2].Length != 7 {
		t.Fatalf("List = %+v, %v, want a, b, c of 7 bytes", got, err)
	}
}

// TestFirstBytesAreHadoops: what a NameNode gets, byte for byte.
func TestFirstBytesAreHadoops(t *testing.T) {
	k := &conn{client: bytes.Repeat([]byte{0xab}, 16)}
	const client = "2210abababababababababababababababab" // field 4
	protocol := hex.EncodeToString([]byte(protocolClass)) // 46 bytes
	hello := "68727063090000" +                           // "hrpc", version 9, service class 0, no SASL
		"00000055" + // length of the frame
		"1a" + "08021000" + "1805" + client + "2801" + // protobuf, final packet, call -3, retry -1
		"39" + "1207" + "0a057661727665" + "1a2e" + protocol
	if got := hex.EncodeToString(k.hello("varve")); got != hello {
		t.Errorf("hello is\n%s, want\n%s", got, hello)
	}
	call := "00000062" + "1a" + "08021000" + "180e" + client + "2800" + // call 7, first attempt
		"3b" + "0a0772656e616d6532" + "122e" + protocol + "1801" + // rename2
		"0a" + "0a022f61" + "12022f62" + "1800" // from, to, without overwriting
	head := message(nil).str(1, "rename2").str(2, protocolClass).num(3, 1)
	body := message(nil).str(1, "/a").str(2, "/b").flag(3, false)
	if got := hex.EncodeToString(frame(k.header(7, 0), head, body)); got != call {
		t.Errorf("rename2 is\n%s, want\n%s", got, call)
	}
}

func FuzzResponse(f *testing.F) {
	f.Add(success(7, message(nil).flag(1, true))[4:])
	f.Add(exception(7, 1, standbyClass, "text")[4:])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, a, err := decodeResponse(b)
		if err != nil || a.err != nil {
			return
		}
		m, err := parse(a.body)
		if err != nil {
			return
		}
		// nothing that a NameNode says may break the decoders
		s, blocks := decodeStatus(m), decodeBlocks(m)
		if s.Mode&^0o777 != 0 || len(blocks.Blocks) > len(a.body) {
			t.Fatalf("decoded %+v, %+v", s, blocks)
		}
	})
}
