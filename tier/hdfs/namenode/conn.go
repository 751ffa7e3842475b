package namenode

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	protocolClass = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
	contextCall   = -3        // the call id of the connection context
	maxAnswer     = 128 << 20 // bytes; Hadoop's ipc.maximum.response.length
)

// errRetired is why a connection ends that the client has left.
var errRetired = errors.New("connection given up")

// A conn is one connection to one NameNode. Calls are sent in the order they come
// and answered in any order; a reader matches answers to calls by id. All frames
// pass through the writer and through readFrame: there Kerberos (SASL) and its
// wrapping have their place, hello is where its handshake goes.
type conn struct {
	addr    string
	net     net.Conn
	client  []byte        // client id, part of each request's header
	timeout time.Duration // of one write
	out     chan []byte   // frames to be written
	gone    chan struct{} // closed when the connection has ended; err says why

	mu struct {
		sync.Mutex
		pending  map[int32]chan answer
		answered int       // answers so far
		asked    time.Time // of the oldest call since the last answer; zero: none
		retired  bool
		err      error
	}
}

// An answer is a response's body, or the exception.
type answer struct {
	body []byte
	err  error
}

// newConn takes over a dialled connection, says hello and starts the reader and the
// writer; both end with the connection.
func newConn(nc net.Conn, addr, user string, client []byte, timeout time.Duration) *conn {
	k := &conn{addr: addr, net: nc, client: client, timeout: timeout, out: make(chan []byte), gone: make(chan struct{})}
	k.mu.pending = map[int32]chan answer{}
	go k.write(k.hello(user))
	go k.read()
	return k
}

// hello is the preamble and the connection context: protocol and user. The server
// answers only if it refuses.
func (k *conn) hello(user string) []byte {
	preamble := []byte{'h', 'r', 'p', 'c', 9, 0, 0} // version 9, service class 0, no SASL
	context := message(nil).raw(2, message(nil).str(1, user)).str(3, protocolClass)
	return append(preamble, frame(k.header(contextCall, -1), context)...)
}

func (k *conn) header(call int32, retry int) message {
	const protobuf, final = 2, 0
	return message(nil).num(1, protobuf).num(2, final).zig(3, int64(call)).raw(4, k.client).zig(5, int64(retry))
}

// call sends one request and waits for its answer. sent tells whether the server
// may have got it.
func (k *conn) call(ctx context.Context, id int32, retry int, method string, req message) (body []byte, sent bool, err error) {
	reply := make(chan answer, 1)
	if err := k.expect(id, reply); err != nil {
		return nil, false, err
	}
	defer k.forget(id)
	head := message(nil).str(1, method).str(2, protocolClass).num(3, 1)
	select {
	case k.out <- frame(k.header(id, retry), head, req):
	case <-k.gone:
		return nil, false, k.err()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	select {
	case a := <-reply:
		return a.body, true, a.err
	case <-ctx.Done():
		return nil, true, ctx.Err()
	case <-k.gone:
	}
	select { // the answer may have come just before the end
	case a := <-reply:
		return a.body, true, a.err
	default:
		return nil, true, k.err()
	}
}

func (k *conn) expect(id int32, reply chan answer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.err != nil {
		return k.mu.err
	}
	k.mu.pending[id] = reply
	if k.mu.asked.IsZero() {
		k.mu.asked = time.Now()
	}
	return nil
}

func (k *conn) forget(id int32) {
	k.mu.Lock()
	delete(k.mu.pending, id)
	done := k.mu.retired && len(k.mu.pending) == 0
	k.mu.Unlock()
	if done {
		k.end(errRetired)
	}
}

// retire closes the connection when the calls on it are through.
func (k *conn) retire() {
	k.mu.Lock()
	k.mu.retired = true
	done := len(k.mu.pending) == 0
	k.mu.Unlock()
	if done {
		k.end(errRetired)
	}
}

// end closes the connection; the first reason stays.
func (k *conn) end(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.err != nil {
		return
	}
	k.mu.err = why
	k.net.Close()
	close(k.gone)
}

func (k *conn) err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.err
}

// proven tells whether the NameNode has answered anything on this connection.
func (k *conn) proven() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.answered > 0
}

// silence tells for how long the NameNode has owed an answer and given none.
func (k *conn) silence() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.asked.IsZero() {
		return 0
	}
	return time.Since(k.mu.asked)
}

func (k *conn) write(hello []byte) {
	for b := hello; ; {
		k.net.SetWriteDeadline(time.Now().Add(k.timeout))
		if _, err := k.net.Write(b); err != nil {
			k.end(err)
			return
		}
		select {
		case b = <-k.out:
		case <-k.gone:
			return
		}
	}
}

func (k *conn) read() {
	r := bufio.NewReaderSize(k.net, 32<<10)
	for {
		b, err := readFrame(r)
		if err == nil {
			err = k.deliver(b)
		}
		if err != nil {
			k.end(err)
			return
		}
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxAnswer {
		return nil, fmt.Errorf("answer of %d bytes, at most %d are taken", n, maxAnswer)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// deliver hands a response to its call. An error ends the connection.
func (k *conn) deliver(b []byte) error {
	id, a, err := decodeResponse(b)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.mu.answered++
	k.mu.asked = time.Time{}
	reply := k.mu.pending[id]
	delete(k.mu.pending, id)
	k.mu.Unlock()
	if reply != nil {
		reply <- a // has room for the one answer
	}
	var remote *RemoteError
	if errors.As(a.err, &remote) && remote.fatal {
		return remote
	}
	return nil
}

// decodeResponse splits a frame into the call it answers and the answer. Fields of
// RpcResponseHeaderProto: 1 call id, 2 status, 4 exception, 5 message.
func decodeResponse(b []byte) (id int32, a answer, err error) {
	const success, fatal = 0, 2
	head, rest, err := cut(b)
	if err != nil {
		return 0, answer{}, err
	}
	h, err := parse(head)
	if err != nil {
		return 0, answer{}, err
	}
	id = int32(h.num(1))
	if status := h.num(2); status != success {
		return id, answer{err: &RemoteError{Class: h.str(4), Message: firstLine(h.str(5)), fatal: status == fatal}}, nil
	}
	body, _, err := cut(rest)
	return id, answer{body: body}, err
}
