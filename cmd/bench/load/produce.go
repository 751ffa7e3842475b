package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Produce writes batches over a few connections, several requests in flight on
// each. The latency is of an acknowledgement, from the write of its request.
type Produce struct {
	Target
	RecordBytes int           // in a value
	BatchBytes  int           // in a batch, about
	PerRequest  int           // partitions that a request carries; 0 is 1
	Conns       int           // connections; 0 is 2
	InFlight    int           // requests on each; 0 is 5
	Acks        int16         // 0, 1 or -1
	Rate        float64       // records per second; 0 is as fast as possible
	For         time.Duration // ends after that,
	MaxBytes    int64         // or after so much; 0 is no bound
}

// producing is one run of Produce.
type producing struct {
	Produce
	batch    *batch
	requests [][]byte // prepared, one for each group of partitions; rotated
	carried  []int    // batches in each of them
	start    time.Time
	batches  atomic.Int64

	mu struct {
		sync.Mutex
		latencies []time.Duration
	}
}

// Run produces.
func (p Produce) Run(ctx context.Context) (Result, error) {
	p.PerRequest, p.Conns, p.InFlight = max(1, p.PerRequest), or(p.Conns, 2), or(p.InFlight, 5)
	run := &producing{Produce: p, batch: newBatch(p.BatchBytes, p.RecordBytes)}
	for from := 0; from < p.Partitions; from += p.PerRequest {
		to := min(from+p.PerRequest, p.Partitions)
		run.requests = append(run.requests, p.request(from, to, run.batch.bytes))
		run.carried = append(run.carried, to-from)
	}
	return measured(p.Target, func() (Result, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		run.start = time.Now()
		errs := make(chan error, p.Conns)
		for i := range p.Conns {
			go func() { errs <- run.connection(ctx, i) }()
		}
		err := firstOf(errs, p.Conns, cancel)
		n := run.batches.Load()
		return Result{
			Records: n * int64(run.batch.records),
			Bytes:   n * int64(len(run.batch.bytes)),
			Elapsed: time.Since(run.start),
			Latency: latencyOf(run.mu.latencies),
		}, err
	})
}

// request encodes the batch for partitions [from, to).
func (p Produce) request(from, to int, records []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(produceVersion)
	req.Acks, req.TimeoutMillis = p.Acks, 30_000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = p.Topic
	for i := from; i < to; i++ {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = int32(i), records
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	return encode(req)
}

// connection writes requests, each connection beginning at another partition,
// while a second goroutine reads the acknowledgements.
func (run *producing) connection(ctx context.Context, number int) error {
	c, err := dial(ctx, run.Addr)
	if err != nil {
		return err
	}
	defer c.closeWith(ctx)()
	written := make(chan time.Time, run.InFlight-1)
	acked := make(chan error, 1)
	go func() { acked <- run.acknowledgements(c, written) }()

	rate := run.Rate / float64(run.Conns)
	pace := newPacer()
	defer pace.end()
	var sent int
	for i := number * len(run.requests) / run.Conns; run.goesOn(); i++ {
		k := i % len(run.requests)
		if rate > 0 {
			pace.until(run.start.Add(time.Duration(float64(sent) / rate * float64(time.Second))))
		}
		if run.Acks != 0 {
			select {
			case written <- time.Now():
			case err := <-acked:
				return err
			}
		}
		if _, err := c.Write(run.requests[k]); err != nil {
			return fmt.Errorf("writing a produce request: %w", err)
		}
		run.batches.Add(int64(run.carried[k]))
		sent += run.carried[k] * run.batch.records
	}
	close(written)
	return <-acked
}

func (run *producing) goesOn() bool {
	if run.MaxBytes > 0 && run.batches.Load()*int64(len(run.batch.bytes)) >= run.MaxBytes {
		return false
	}
	return time.Since(run.start) < run.For
}

// acknowledgements reads an answer for each request that was written.
func (run *producing) acknowledgements(c *conn, written <-chan time.Time) error {
	var mine []time.Duration
	for at := range written {
		if err := readProduced(c); err != nil {
			return err
		}
		mine = append(mine, time.Since(at))
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	run.mu.latencies = slices.Concat(run.mu.latencies, mine)
	return nil
}

// readProduced reads the answer to a produce request and refuses an error in it.
func readProduced(c *conn) error {
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(produceVersion)
	if err := c.read(resp); err != nil {
		return fmt.Errorf("reading a produce response: %w", err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return fmt.Errorf("producing to %s-%d: error code %d", t.Topic, p.Partition, p.ErrorCode)
			}
		}
	}
	return nil
}

// firstOf waits for n results; the first error ends the others.
func firstOf(errs <-chan error, n int, cancel func()) error {
	var first error
	for range n {
		if err := <-errs; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

var errNoRoom = errors.New("a record of an end to end run holds its moment: it needs at least 8 bytes")
