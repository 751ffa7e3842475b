package datanode

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"varve/tier/hdfs/namenode"
)

// A Conn is a connection to a DataNode whose reads and writes have time limits.
type Conn interface {
	net.Conn
	// WriteAll writes the pieces in order, with one call where that is possible.
	WriteAll(pieces *net.Buffers) error
}

// heartbeatEvery is half the time after which a DataNode takes a silent client for dead.
const heartbeatEvery = 30 * time.Second

// burst is how many packets go to the socket with one call.
const burst = 16

// A Block is one block on its way to its DataNodes. One goroutine uses it at a time.
type Block struct {
	conn   Conn
	names  []string
	in     *bufio.Reader
	offset int64
	seqno  int64
	part   []byte // less than a packet, to be sent with what comes
	heads  []byte // prefixes and sums of a burst
	pieces net.Buffers

	last  atomic.Int64 // seqno of the packet that ends the block; 0 = not sent
	acked chan struct{}
	err   error // of the acks; good once acked is closed
	pulse *time.Ticker
	mu    sync.Mutex // held while packets are written: heartbeats go between them
	over  chan struct{}
	once  sync.Once
}

// Open makes the pipeline. The error is a *SetupError.
func Open(conn Conn, b namenode.NewBlock, holder string) (*Block, error) {
	k := &Block{conn: conn, in: bufio.NewReaderSize(conn, 4<<10), part: make([]byte, 0, packetBytes), acked: make(chan struct{}), over: make(chan struct{})}
	for _, t := range b.Targets {
		k.names = append(k.names, t.Host)
	}
	if _, err := conn.Write(request(b, holder)); err != nil {
		return nil, &SetupError{0, err}
	}
	answer, err := readMessage(k.in, nil)
	if err != nil {
		return nil, &SetupError{0, err}
	}
	if err := setUp(answer, b.Targets); err != nil {
		return nil, err
	}
	k.pulse = time.NewTicker(heartbeatEvery)
	go k.readAcks()
	go k.beat()
	return k, nil
}

// setUp looks whether a BlockOpResponseProto says that the pipeline stands.
func setUp(answer []byte, targets []namenode.Target) error {
	var status uint64
	var link, text string
	err := eachField(answer, func(n protowire.Number, num uint64, b []byte) {
		switch n {
		case 1:
			status = num
		case 2:
			link = string(b)
		case 5:
			text = string(b)
		}
	})
	if err == nil && status == 0 && link == "" {
		return nil
	}
	bad := slices.IndexFunc(targets, func(t namenode.Target) bool { return t.Address == link || t.Host == link })
	if err == nil {
		err = fmt.Errorf("%s %s", statusName(status), text)
	}
	at := max(bad, 0)
	return &SetupError{at, fmt.Errorf("DataNode %s: %w", targets[at].Host, err)}
}

// Write sends whole packets and keeps the rest.
func (k *Block) Write(b []byte) (int, error) {
	n := len(b)
	if len(k.part) > 0 {
		m := min(packetBytes-len(k.part), len(b))
		k.part, b = append(k.part, b[:m]...), b[m:]
		if len(k.part) < packetBytes {
			return n, nil
		}
		if err := k.send(k.part); err != nil {
			return 0, err
		}
		k.part = k.part[:0]
	}
	whole := len(b) / packetBytes * packetBytes
	for from := 0; from < whole; {
		to := min(from+burst*packetBytes, whole)
		if err := k.send(b[from:to]); err != nil {
			return 0, err
		}
		from = to
	}
	k.part = append(k.part, b[whole:]...)
	return n, nil
}

// send writes data as packets.
func (k *Block) send(data []byte) error {
	select {
	case <-k.acked:
		return k.broken()
	default:
	}
	const sums = packetBytes / chunkBytes * 4
	k.heads, k.pieces = slices.Grow(k.heads[:0], burst*(prefixBytes+sums)), k.pieces[:0]
	for len(data) > 0 {
		part := data[:min(packetBytes, len(data))]
		data = data[len(part):]
		k.seqno++
		at := len(k.heads)
		chunks := (len(part) + chunkBytes - 1) / chunkBytes
		k.heads = appendSums(appendPrefix(k.heads, k.offset, k.seqno, false, 4*chunks, len(part)), part)
		k.pieces = append(k.pieces, k.heads[at:], part)
		k.offset += int64(len(part))
	}
	return k.write()
}

func (k *Block) write() error {
	pieces := k.pieces
	k.mu.Lock()
	err := k.conn.WriteAll(&pieces)
	k.mu.Unlock()
	if err != nil {
		k.Abort()
		return k.broken(err)
	}
	return nil
}

// Close sends what is left and ends the block: every DataNode has all of it then.
func (k *Block) Close() error {
	if len(k.part) > 0 {
		if err := k.send(k.part); err != nil {
			return err
		}
	}
	k.seqno++
	k.last.Store(k.seqno)
	k.heads = appendPrefix(k.heads[:0], k.offset, k.seqno, true, 0, 0)
	k.pieces = append(k.pieces[:0], k.heads)
	if err := k.write(); err != nil {
		return err
	}
	<-k.acked
	k.Abort()
	return k.err
}

// Abort ends the connection; what was written counts for nothing unless Close said so.
func (k *Block) Abort() {
	k.once.Do(func() {
		close(k.over)
		k.conn.Close()
	})
}

// broken is why the pipeline broke: what a DataNode said counts for more than what the
// socket did.
func (k *Block) broken(errs ...error) error {
	<-k.acked
	if k.err == nil {
		k.err = errors.New("the pipeline ended before the block")
	}
	return errors.Join(append([]error{k.err}, errs...)...)
}

// readAcks reads answers until the last packet has its own, or one is no success.
func (k *Block) readAcks() {
	defer close(k.acked)
	var buf []byte
	for want := int64(1); ; {
		m, err := readMessage(k.in, buf)
		if err != nil {
			k.err = fmt.Errorf("waiting for the answer of DataNode %s to packet %d: %w", k.names[0], want, err)
			return
		}
		buf = m
		a, err := parseAck(m)
		switch {
		case err != nil:
			k.err = fmt.Errorf("reading an answer of DataNode %s: %w", k.names[0], err)
		case a.status != 0:
			k.err = fmt.Errorf("DataNode %s answered %s to packet %d", k.names[min(a.bad, len(k.names)-1)], statusName(a.status), a.seqno)
		case a.seqno == heartbeat:
			continue
		case a.seqno != want:
			k.err = fmt.Errorf("DataNode %s answered packet %d, want %d", k.names[0], a.seqno, want)
		}
		if k.err != nil {
			k.conn.Close()
			return
		}
		if want == k.last.Load() {
			return
		}
		want++
	}
}

// beat keeps the pipeline alive while nothing is written.
func (k *Block) beat() {
	defer k.pulse.Stop()
	packet := appendPrefix(nil, 0, heartbeat, false, 0, 0)
	for {
		select {
		case <-k.over:
			return
		case <-k.pulse.C:
		}
		pieces := net.Buffers{packet}
		k.mu.Lock()
		if k.last.Load() == 0 {
			_ = k.conn.WriteAll(&pieces) // an error shows in the next packet or answer
		}
		k.mu.Unlock()
	}
}
