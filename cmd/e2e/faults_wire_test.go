package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/cmd/e2e/servers"
)

// dial is a bare connection that ends with the test.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// framed is a request with its size before it.
func framed(req kmsg.Request, version int16) []byte {
	req.SetVersion(version)
	return kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)
}

// answers tells that the broker serves others.
func answers(t *testing.T, v *servers.Varve, while string) {
	t.Helper()
	nc := dial(t, v.Addr)
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(5 * time.Second))
	nc.Write(framed(kmsg.NewPtrApiVersionsRequest(), 0))
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		t.Fatalf("while there are %s another client waits in vain: %v", while, err)
	}
}

// resident is the broker's memory in MiB.
func resident(t *testing.T, v *servers.Varve) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.PID()))
	if err != nil {
		t.Skipf("SKIPPED: memory is looked at in /proc: %v", err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

// goroutines counts them in /stacks.
func goroutines(t *testing.T, v *servers.Varve) int {
	t.Helper()
	resp, err := http.Get("http://" + v.HTTP + "/stacks")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("goroutine "))
}

// hostile is a broker with a topic, and a check that nothing of the test is left there.
func hostile(t *testing.T) *servers.Varve {
	t.Helper()
	v := servers.VarveFor(t, servers.VarveOptions{})
	if _, err := admin(t, v).CreateTopic(t.Context(), 2, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	return v
}

// calm waits until what a test has left behind is gone.
func calm(t *testing.T, v *servers.Varve, before int) {
	t.Helper()
	eventually(t, 20*time.Second, "goroutines to end", func(context.Context) error {
		if n := goroutines(t, v); n > before+20 {
			return fmt.Errorf("%d goroutines, %d before", n, before)
		}
		return nil
	})
}

func TestFramesThatAreNoneCloseTheirConnectionAlone(t *testing.T) {
	v := hostile(t)
	size := func(n int32, more ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(n)), more...)
	}
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Topics = []kmsg.FetchRequestTopic{{Topic: "orders", Partitions: make([]kmsg.FetchRequestTopicPartition, 1)}}
	many := framed(fetch, 4)
	binary.BigEndian.PutUint32(many[len(many)-20:], 1<<31-1) // the partitions it says it has
	for name, frame := range map[string][]byte{
		"a negative size": size(-1), "no size": size(0), "2 GiB": size(1<<31 - 1), "three bytes": size(3, 'a', 'b', 'c'),
		"HTTP": []byte("GET / HTTP/1.1\r\n\r\n"), "TLS": append([]byte{0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3}, make([]byte, 300)...),
		"an unknown key": size(10, 0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0, 0), "a negative version": size(10, 0, 3, 0xff, 0xff, 0, 0, 0, 1, 0, 0),
		"two thousand million partitions": many,
	} {
		nc := dial(t, v.Addr)
		nc.SetDeadline(time.Now().Add(5 * time.Second))
		nc.Write(frame)
		if n, err := nc.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %d bytes, %v; want a closed connection", name, n, err)
		}
		answers(t, v, name)
	}
	if mb := resident(t, v); mb > 150 {
		t.Errorf("%d MiB are resident", mb)
	}
}

func TestManyConnectionsThatDoNothingCostLittle(t *testing.T) {
	v := hostile(t)
	before, mb := goroutines(t, v), resident(t, v)
	var all []net.Conn
	for range 1000 {
		nc := dial(t, v.Addr)
		nc.Write([]byte{0x05, 0xf0, 0, 0, 0, 0}) // the beginning of 99 MB
		all = append(all, nc)
	}
	answers(t, v, "a thousand halves of frames")
	if now := resident(t, v); now > mb+80 {
		t.Errorf("%d MiB are resident, %d before", now, mb)
	}
	for _, nc := range all {
		nc.Close()
	}
	calm(t, v, before)
}

func TestClientsThatLeaveWhileTheyWaitLeaveNothingBehind(t *testing.T) {
	v := hostile(t)
	before := goroutines(t, v)
	fetch := kmsg.NewPtrFetchRequest()
	fetch.MaxWaitMillis, fetch.MinBytes, fetch.MaxBytes = 1<<31-1, 1, 1<<20 // for 24 days
	fetch.Topics = []kmsg.FetchRequestTopic{{Topic: "orders", Partitions: []kmsg.FetchRequestTopicPartition{{PartitionMaxBytes: 1000}}}}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis = "leavers", "consumer", 6000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("x")}}
	var all []net.Conn
	for i := range 200 {
		nc := dial(t, v.Addr)
		if i%2 == 0 {
			nc.Write(framed(fetch, 4))
		} else {
			nc.Write(framed(join, 0))
		}
		all = append(all, nc)
	}
	eventually(t, 5*time.Second, "them to wait", func(context.Context) error {
		if n := goroutines(t, v); n < before+100 {
			return fmt.Errorf("%d goroutines", n)
		}
		return nil
	})
	answers(t, v, "parked clients")
	for _, nc := range all {
		nc.Close()
	}
	calm(t, v, before)
}

func TestTenThousandTopicsInOneRequest(t *testing.T) {
	v := hostile(t)
	cl := client(t, v.Addr, kgo.RequestTimeoutOverhead(30*time.Second))
	ask := kmsg.NewPtrMetadataRequest()
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis, create.ValidateOnly = 30_000, true // their folders take a disk its time
	for n := range 10_000 {
		name := fmt.Sprintf("many-%d", n)
		ask.Topics = append(ask.Topics, kmsg.MetadataRequestTopic{Topic: &name})
		create.Topics = append(create.Topics, kmsg.CreateTopicsRequestTopic{Topic: name, NumPartitions: 1, ReplicationFactor: 1})
	}
	valid, err := create.RequestWith(t.Context(), cl)
	if err != nil || len(valid.Topics) != 10_000 || valid.Topics[9_999].ErrorCode != 0 {
		t.Fatalf("checking them answers %d topics, %v", len(valid.Topics), err)
	}
	told, err := ask.RequestWith(t.Context(), cl)
	if err != nil || len(told.Topics) != 10_000 || kerr.ErrorForCode(told.Topics[9_999].ErrorCode) != kerr.UnknownTopicOrPartition {
		t.Fatalf("asking for them answers %d topics, %v", len(told.Topics), err)
	}
	answers(t, v, "10 000 topics")
	if mb := resident(t, v); mb > 400 {
		t.Errorf("%d MiB are resident", mb)
	}
}

// Answers come from the page cache, and requests wait in the client's socket.
func TestAReaderThatNeverReadsHoldsNoMemory(t *testing.T) {
	v := hostile(t)
	cl := client(t, v.Addr, kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for range 100 {
		r := &kgo.Record{Topic: "orders", Value: make([]byte, 900_000)}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	before, mb := goroutines(t, v), resident(t, v)
	fetch := kmsg.NewPtrFetchRequest()
	fetch.MaxBytes = 100 << 20
	fetch.Topics = []kmsg.FetchRequestTopic{{Topic: "orders", Partitions: []kmsg.FetchRequestTopicPartition{{PartitionMaxBytes: 100 << 20}}}}
	frame := framed(fetch, 4)
	var all []net.Conn
	for range 20 {
		nc := dial(t, v.Addr)
		nc.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		for range 1000 {
			if _, err := nc.Write(frame); err != nil {
				break
			}
		}
		all = append(all, nc)
	}
	answers(t, v, "20 readers that do not read")
	if now := resident(t, v); now > mb+150 {
		t.Errorf("%d MiB are resident, %d before", now, mb)
	}
	for _, nc := range all {
		nc.Close()
	}
	calm(t, v, before)
}
