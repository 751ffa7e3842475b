package conn

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"varve/broker/kafka"
	"varve/broker/vfs"
	"varve/broker/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An echo is a produce without a log: decode, CRC, answer. With pend every answer
// waits for a goroutine beside it, as acks=all does.
type echo struct {
	req  wire.ProduceRequest // one connection only
	pend chan held
}

func (e *echo) Serve(c *Conn, h wire.Header, body []byte, out *Out) error {
	r := &e.req
	if err := r.Decode(body, h.Version); err != nil {
		return err
	}
	v := wire.ProduceResponse(h.Version)
	out.Begin(h)
	var slot *Slot
	if e.pend != nil {
		slot = out.Pend(time.Now().Add(time.Minute))
	}
	out.B = v.Begin(out.B, len(r.Topics))
	for i := range r.Topics {
		t := &r.Topics[i]
		out.B = v.Topic(out.B, t.Name, t.ID, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			res := wire.ProduceResult{Partition: p.Partition, Base: 42, AppendTime: -1}
			if crc32.Checksum(p.Records[21:], castagnoli) != binary.BigEndian.Uint32(p.Records[17:]) {
				res.Code = kafka.CorruptMessage
			}
			if slot != nil {
				e.pend <- held{slot, slot.Hold(len(out.B))}
			}
			out.B = v.Partition(out.B, &res)
		}
		out.B = v.EndTopic(out.B)
	}
	out.B = v.End(out.B, 0, nil)
	out.End()
	return nil
}

func (e *echo) Closed(*Conn) {}

// batchRequest is a produce of one batch of about size bytes with a right CRC.
func batchRequest(size int) []byte {
	rec := make([]byte, size)
	binary.BigEndian.PutUint32(rec[17:], crc32.Checksum(rec[21:], castagnoli))
	r := produce(time.Minute, 0).(*kmsg.ProduceRequest)
	r.Topics[0].Partitions[0].Records = rec
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, r, 1)
}

// pump sends b.N requests with so many in flight, and reads the answers.
func pump(b *testing.B, nc net.Conn, request []byte, answer, inflight int) {
	b.Helper()
	credit := make(chan struct{}, inflight)
	go func() {
		for range b.N {
			credit <- struct{}{}
			if _, err := nc.Write(request); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, answer*inflight)
	b.ReportAllocs()
	b.SetBytes(int64(len(request)))
	b.ResetTimer()
	began := cpu()
	defer func() { b.ReportMetric(float64(cpu()-began)/float64(b.N)/1000, "cpu-µs/op") }()
	for done, have := 0, 0; done < b.N; {
		n, err := nc.Read(buf[have:])
		if err != nil {
			b.Fatal(err)
		}
		for have += n; have >= answer; have -= answer {
			done++
			<-credit
		}
	}
}

// cpu is the process's time in user and kernel, in ns: the wall clock means little
// on a machine that others use.
func cpu() int64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return r.Utime.Nano() + r.Stime.Nano()
}

const produceAnswer = 4 + 4 + 1 + 1 + 7 + 1 + 4 + 2 + 8 + 8 + 8 + 1 + 1 + 1 + 1 + 4 + 1

// BenchmarkProduce asks what a produce costs on a real socket, sender included, and
// how that compares with the plainest server: bufio, kmsg, one write an answer.
func BenchmarkProduce(b *testing.B) {
	for _, size := range []int{100, 1 << 10, 16 << 10, 128 << 10} {
		request := batchRequest(size)
		b.Run(fmt.Sprintf("%d/conn", size), func(b *testing.B) {
			_, addr, _ := tcpRig(b, Config{}, &echo{})
			pump(b, dialTCP(b, addr), request, produceAnswer, 5)
		})
		b.Run(fmt.Sprintf("%d/plain", size), func(b *testing.B) {
			pump(b, plainServer(b), request, produceAnswer, 5)
		})
	}
}

// plainServer serves one connection as a simple program would.
func plainServer(b *testing.B) net.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		defer l.Close()
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		r := bufio.NewReaderSize(nc, 64<<10)
		var body, out []byte
		for {
			var prefix [4]byte
			if _, err := io.ReadFull(r, prefix[:]); err != nil {
				return
			}
			n := int(binary.BigEndian.Uint32(prefix[:]))
			if cap(body) < n {
				body = make([]byte, n)
			}
			body = body[:n]
			if _, err := io.ReadFull(r, body); err != nil {
				return
			}
			out = plainAnswer(out[:0], body)
			if _, err := nc.Write(out); err != nil {
				return
			}
		}
	}()
	return dialTCP(b, l.Addr().String())
}

func plainAnswer(dst, frame []byte) []byte {
	h, body, err := wire.ParseHeader(frame)
	if err != nil {
		panic(err)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version = h.Version
	if err := req.UnsafeReadFrom(body); err != nil {
		panic(err)
	}
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition = p.Partition
			if crc32.Checksum(p.Records[21:], castagnoli) != binary.BigEndian.Uint32(p.Records[17:]) {
				rp.ErrorCode = 2
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	dst = resp.AppendTo(wire.AppendResponseHeader(dst, h))
	wire.SetFrameSize(dst, len(dst))
	return dst
}

// BenchmarkPendingProduce asks what it costs that another goroutine completes the
// answer and wakes the connection out of its read.
func BenchmarkPendingProduce(b *testing.B) {
	request := batchRequest(1 << 10)
	for _, inflight := range []int{1, 5} {
		b.Run(fmt.Sprintf("%d in flight", inflight), func(b *testing.B) {
			e := &echo{pend: make(chan held, 100)}
			_, addr, _ := tcpRig(b, Config{}, e)
			go func() {
				for h := range e.pend {
					h.slot.Done(h.token, kafka.None)
				}
			}()
			pump(b, dialTCP(b, addr), request, produceAnswer, inflight)
			close(e.pend)
		})
		b.Run(fmt.Sprintf("%d in flight, at once", inflight), func(b *testing.B) {
			_, addr, _ := tcpRig(b, Config{}, &echo{})
			pump(b, dialTCP(b, addr), request, produceAnswer, inflight)
		})
	}
}

// A sleeper parks until it is woken, once for each request.
type sleeper struct{ waker chan *Waker }

func (s *sleeper) Serve(c *Conn, h wire.Header, _ []byte, out *Out) error {
	s.waker <- c.Waker()
	c.Park(time.Now().Add(500 * time.Millisecond))
	out.Begin(h)
	out.End()
	return nil
}

func (s *sleeper) Closed(*Conn) {}

// BenchmarkPark asks what a fetch that waits and is woken costs, round trip
// included.
func BenchmarkPark(b *testing.B) {
	s := &sleeper{make(chan *Waker, 10)}
	_, addr, _ := tcpRig(b, Config{}, s)
	go func() {
		for w := range s.waker {
			w.Wake()
		}
	}()
	request := kmsg.NewRequestFormatter().AppendRequest(nil, heartbeat("a", 0), 1)
	pump(b, dialTCP(b, addr), request, 8, 1)
	close(s.waker)
}

// BenchmarkSendfile asks what a fetch of one run costs, reader included.
func BenchmarkSendfile(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			file, _ := book(b, size)
			l := &library{file: file, runs: []vfs.Run{{N: size}}}
			_, addr, _ := tcpRig(b, Config{}, l)
			nc := dialTCP(b, addr)
			request := kmsg.NewRequestFormatter().AppendRequest(nil, heartbeat("a", 0), 1)
			buf := make([]byte, 8+3+size+5)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				nc.Write(request)
				if _, err := io.ReadFull(nc, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAThousandConnectionsCostLittle holds a connection that has been served, and
// waits for its next request, to 30 KB, stack and client included.
func TestAThousandConnectionsCostLittle(t *testing.T) {
	const n = 1000
	_, addr, _ := tcpRig(t, Config{}, newScript())
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := memory()
	conns := make([]*client, n)
	for i := range conns {
		conns[i] = &client{Conn: dialTCP(t, addr), t: t}
	}
	for _, c := range conns {
		c.send(heartbeat("a", 0))
		c.answer(1)
	}
	after := memory()
	each := (int64(after) - int64(before)) / n
	t.Logf("%d bytes a connection", each)
	if each > 30<<10 {
		t.Errorf("%d bytes a connection, want at most 30 KB", each)
	}
	for _, c := range conns {
		c.Close()
	}
}

// TestServingAllocatesNothing counts over all goroutines of the process.
func TestServingAllocatesNothing(t *testing.T) {
	if raceOn {
		t.Skip("pools throw buffers away under the race detector")
	}
	_, addr, _ := tcpRig(t, Config{}, &echo{})
	nc := dialTCP(t, addr)
	request := batchRequest(16 << 10)
	answer := make([]byte, produceAnswer)
	var failed atomic.Bool
	n := testing.AllocsPerRun(2000, func() {
		if _, err := nc.Write(request); err != nil {
			failed.Store(true)
		}
		if _, err := io.ReadFull(nc, answer); err != nil {
			failed.Store(true)
		}
	})
	if failed.Load() {
		t.Fatal("the connection was lost")
	}
	if n >= 0.1 { // pools are emptied by the collector now and then
		t.Errorf("%v allocations a request", n)
	}
}
