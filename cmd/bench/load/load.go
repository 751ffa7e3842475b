// Package load puts load on a broker over the wire, with a client that costs
// almost nothing: batches are encoded once, requests are written whole,
// responses are only skimmed. What it measures is the broker's doing.
//
// All of it speaks to one broker, which must lead every partition of the topic.
// Times are of the wall clock; CPU and memory are those of the broker's
// processes, read from /proc, and zero where there is none.
package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions of the requests: the last that name topics, and do not number them.
const (
	produceVersion     = 9
	fetchVersion       = 12
	listOffsetsVersion = 4
)

// Target is what is put under load.
type Target struct {
	Addr       string // HOST:PORT of the broker
	Topic      string // must exist
	Partitions int    // how many of its partitions take part, from 0
	PIDs       []int  // the broker's processes; none: CPU and memory are not measured
}

// Result is what a run saw.
type Result struct {
	Records int64
	Bytes   int64 // of whole batches
	Elapsed time.Duration
	Latency Latency
	CPU     time.Duration // that the broker spent meanwhile
	RSS     int64         // bytes of the broker's memory at the end
}

// RecordsPerSecond is the rate.
func (r Result) RecordsPerSecond() float64 { return float64(r.Records) / r.Elapsed.Seconds() }

// MBPerSecond is the rate in 10^6 bytes.
func (r Result) MBPerSecond() float64 { return float64(r.Bytes) / 1e6 / r.Elapsed.Seconds() }

// CPUPerMillion is the broker's CPU seconds for a million records.
func (r Result) CPUPerMillion() float64 {
	if r.Records == 0 {
		return 0
	}
	return r.CPU.Seconds() / float64(r.Records) * 1e6
}

// Cores is how many cores the broker kept busy.
func (r Result) Cores() float64 { return r.CPU.Seconds() / r.Elapsed.Seconds() }

// Latency is the distribution of what was timed.
type Latency struct{ P50, P99, P999, Max time.Duration }

func latencyOf(all []time.Duration) Latency {
	if len(all) == 0 {
		return Latency{}
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[min(len(all)-1, int(q*float64(len(all))))] }
	return Latency{at(.5), at(.99), at(.999), at(1)}
}

// measured runs one load between two readings of the broker's usage.
func measured(t Target, run func() (Result, error)) (Result, error) {
	before, err := usageOf(t.PIDs)
	if err != nil {
		return Result{}, err
	}
	r, err := run()
	if err != nil {
		return r, err
	}
	after, err := usageOf(t.PIDs)
	r.CPU, r.RSS = after.cpu-before.cpu, after.rss
	return r, err
}

// conn is a connection with the buffer of its last response.
type conn struct {
	net.Conn
	buf []byte
}

func dial(ctx context.Context, addr string) (*conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// closeWith closes the connection when ctx ends, which wakes whoever waits on
// it; release ends that watch.
func (c *conn) closeWith(ctx context.Context) (release func()) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return func() {
		stop()
		c.Close()
	}
}

func encode(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1)
}

// read reads one response. A response that can point into the buffer does so
// until the next read.
func (c *conn) read(resp kmsg.Response) error {
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	c.buf = slices.Grow(c.buf[:0], n)[:n]
	if _, err := io.ReadFull(c, c.buf); err != nil {
		return err
	}
	header := 4
	if resp.IsFlexible() {
		header = 5 // no broker sends tags there
	}
	if n < header {
		return fmt.Errorf("a response of %d bytes", n)
	}
	if unsafe, ok := resp.(kmsg.UnsafeReadFrom); ok {
		return unsafe.UnsafeReadFrom(c.buf[header:])
	}
	return resp.ReadFrom(c.buf[header:])
}

// offsets asks for an offset of each partition: at -1 the end, at -2 the start.
func (t Target) offsets(ctx context.Context, at int64) ([]int64, error) {
	c, err := dial(ctx, t.Addr)
	if err != nil {
		return nil, err
	}
	defer c.closeWith(ctx)()
	req := kmsg.NewPtrListOffsetsRequest()
	req.SetVersion(listOffsetsVersion)
	req.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = t.Topic
	for p := range t.Partitions {
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp = int32(p), at
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	if _, err := c.Write(encode(req)); err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrListOffsetsResponse()
	resp.SetVersion(listOffsetsVersion)
	if err := c.read(resp); err != nil {
		return nil, err
	}
	offsets := make([]int64, t.Partitions)
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				return nil, fmt.Errorf("listing offsets of %s-%d: error code %d", t.Topic, p.Partition, p.ErrorCode)
			}
			offsets[p.Partition] = p.Offset
		}
	}
	return offsets, nil
}

// AwaitLeaders waits until the broker answers for every partition: a topic that
// was just created is not led at once.
func (t Target) AwaitLeaders(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := t.offsets(ctx, -1)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for leaders of %s: %w", t.Topic, err)
		case <-tick.C:
		}
	}
}
