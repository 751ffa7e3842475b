package datanode

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"varve/tier/hdfs/namenode"
)

// pipe is one end of a connection in memory.
type pipe struct{ net.Conn }

func (p pipe) WriteAll(pieces *net.Buffers) error {
	_, err := pieces.WriteTo(p.Conn)
	return err
}

// A node plays the first DataNode of a pipeline: it answers the request, takes packets
// and answers each as it is told.
type node struct {
	net.Conn
	answer []byte                   // to the request
	reply  func(seqno int64) []byte // nil: success
	data   bytes.Buffer
	broken []string // what was wrong with packets
	done   chan struct{}
}

func newPair(n *node) pipe {
	here, there := net.Pipe()
	n.Conn, n.done = there, make(chan struct{})
	go n.serve()
	return pipe{here}
}

func framed(m []byte) []byte { return protowire.AppendBytes(nil, m) }

func success(seqno int64) []byte {
	m := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), protowire.EncodeZigZag(seqno))
	return protowire.AppendVarint(protowire.AppendTag(m, 2, protowire.VarintType), 0)
}

func failure(seqno int64, status uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(success(seqno), 2, protowire.VarintType), status)
}

func (n *node) serve() {
	defer close(n.done)
	defer n.Close()
	var head [3]byte
	if _, err := io.ReadFull(n, head[:]); err != nil {
		return
	}
	var size []byte
	for one := make([]byte, 1); len(size) == 0 || size[len(size)-1] >= 0x80; size = append(size, one[0]) {
		if _, err := io.ReadFull(n, one); err != nil {
			return
		}
	}
	length, _ := binary.Uvarint(size)
	if _, err := io.CopyN(io.Discard, n, int64(length)); err != nil {
		return
	}
	if _, err := n.Write(framed(n.answer)); err != nil {
		return
	}
	for n.packet() {
	}
}

func (n *node) packet() bool {
	var head [prefixBytes]byte
	if _, err := io.ReadFull(n, head[:]); err != nil {
		return false
	}
	all := int(binary.BigEndian.Uint32(head[:])) - 4
	offset := int64(binary.LittleEndian.Uint64(head[7:]))
	seqno := int64(binary.LittleEndian.Uint64(head[16:]))
	last := head[25] == 1
	size := int(binary.LittleEndian.Uint32(head[27:]))
	body := make([]byte, all)
	if _, err := io.ReadFull(n, body); err != nil {
		return false
	}
	sums, data := body[:all-size], body[all-size:]
	if offset != int64(n.data.Len()) {
		n.broken = append(n.broken, "offset")
	}
	for i := 0; i < size; i += chunkBytes {
		sum := crc32.Checksum(data[i:min(i+chunkBytes, size)], crc32.MakeTable(crc32.Castagnoli))
		if binary.BigEndian.Uint32(sums[i/chunkBytes*4:]) != sum {
			n.broken = append(n.broken, "sum")
		}
	}
	n.data.Write(data)
	reply := success
	if n.reply != nil {
		reply = n.reply
	}
	_, err := n.Write(framed(reply(seqno)))
	return err == nil && !last
}

var target = namenode.NewBlock{Block: []byte{8, 1}, Targets: []namenode.Target{
	{Host: "one:1", Address: "127.0.0.1:1", Info: []byte("1"), StorageType: 1, StorageID: "s1"},
	{Host: "two:2", Address: "127.0.0.2:2", Info: []byte("2"), StorageType: 1, StorageID: "s2"},
}}

func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*31 + i>>9)
	}
	return b
}

func TestBlockArrivesWholeHoweverItIsWritten(t *testing.T) {
	for _, piece := range []int{1000, 512, packetBytes, packetBytes + 1, 5 << 20} {
		n := &node{answer: []byte{8, 0}}
		k, err := Open(newPair(n), target, "holder")
		if err != nil {
			t.Fatal(err)
		}
		want := noise(3<<20 + 77)
		for rest := want; len(rest) > 0; {
			m := min(piece, len(rest))
			if _, err := k.Write(rest[:m]); err != nil {
				t.Fatal(err)
			}
			rest = rest[m:]
		}
		if err := k.Close(); err != nil {
			t.Fatalf("in pieces of %d: %v", piece, err)
		}
		<-n.done
		if !bytes.Equal(n.data.Bytes(), want) || len(n.broken) > 0 {
			t.Errorf("in pieces of %d: %d bytes arrived, want %d; wrong: %v", piece, n.data.Len(), len(want), n.broken)
		}
	}
}

func TestPipelineThatCannotBeMadeNamesTheNode(t *testing.T) {
	link := protowire.AppendString(protowire.AppendTag([]byte{8, 1}, 2, protowire.BytesType), "127.0.0.2:2")
	for _, c := range []struct {
		answer []byte
		bad    int
	}{{link, 1}, {[]byte{8, 5}, 0}, {[]byte{0xff}, 0}} {
		n := &node{answer: c.answer}
		conn := newPair(n)
		_, err := Open(conn, target, "holder")
		conn.Close()
		<-n.done
		var setup *SetupError
		if !errors.As(err, &setup) || setup.Bad != c.bad {
			t.Errorf("answer %x: %v, want a SetupError of node %d", c.answer, err, c.bad)
		}
	}
}

func TestRefusedPacketFailsTheBlock(t *testing.T) {
	n := &node{answer: []byte{8, 0}, reply: func(seqno int64) []byte {
		if seqno == 3 {
			return failure(seqno, 2)
		}
		return success(seqno)
	}}
	k, err := Open(newPair(n), target, "holder")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err = k.Write(noise(packetBytes)); err != nil {
			break
		}
	}
	if err == nil {
		err = k.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "two:2 answered ERROR_CHECKSUM to packet 3") {
		t.Errorf("the block ended with %v, want what the second node said to packet 3", err)
	}
	k.Abort()
	<-n.done
}

func TestNodeThatGoesAwayFailsTheBlock(t *testing.T) {
	n := &node{answer: []byte{8, 0}, reply: func(int64) []byte { return nil }}
	k, err := Open(newPair(n), target, "holder")
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	if _, err := k.Write(noise(1 << 20)); err == nil && k.Close() == nil {
		t.Error("a block whose node went away closed without an error")
	}
}

func TestPacketIsWrittenAsDrawn(t *testing.T) {
	got := hex.EncodeToString(appendPrefix(nil, 512, 7, true, 4, 3))
	want := "0000000b" + "0019" + "09" + "0002000000000000" + "11" + "0700000000000000" + "1801" + "25" + "03000000"
	if got != want {
		t.Errorf("the prefix is %s, want %s", got, want)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(success(3))
	f.Add(failure(1<<40, 99))
	f.Add([]byte{0x12, 3, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := parseAck(b); err == nil && a.bad > len(b) {
			t.Errorf("%d bytes name node %d", len(b), a.bad)
		}
		if err := setUp(b, target.Targets); err != nil {
			var setup *SetupError
			if !errors.As(err, &setup) || setup.Bad < 0 || setup.Bad >= len(target.Targets) {
				t.Errorf("%v names no node", err)
			}
		}
	})
}

// Question: what does it cost to cut a GB into packets? The sums are most of it.
func BenchmarkPackets(b *testing.B) {
	n := &node{answer: []byte{8, 0}}
	here, there := net.Pipe()
	n.Conn = there
	go io.Copy(io.Discard, there)
	k := &Block{conn: pipe{here}, acked: make(chan struct{}), names: []string{"one"}}
	data := noise(4 << 20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Write(data); err != nil {
			b.Fatal(err)
		}
	}
	here.Close()
}
