package load

import (
	"context"
	"time"
)

// EndToEnd paces batches and times each from when it was due to its arrival at
// a consumer that waits on another connection: a stall is charged to all that
// it delays.
type EndToEnd struct {
	Target
	RecordBytes, BatchBytes int
	Rate                    float64 // records per second
	For                     time.Duration
}

// Run produces and consumes.
func (e EndToEnd) Run(ctx context.Context) (Result, error) {
	if e.RecordBytes < 8 {
		return Result{}, errNoRoom
	}
	ends, err := e.offsets(ctx, -1)
	if err != nil {
		return Result{}, err
	}
	b := newBatch(e.BatchBytes, e.RecordBytes)
	total := int(e.For.Seconds() * e.Rate / float64(b.records))
	f := &fetcher{topic: e.Topic, next: map[int32]int64{}, max: 8 << 20, partitionMax: 1 << 20, wait: 500 * time.Millisecond}
	for p, end := range ends {
		f.next[int32(p)] = end
	}
	latencies := make([]time.Duration, 0, total)
	f.each = func(received []byte) { latencies = append(latencies, time.Since(b.sentAt(received))) }
	return measured(e.Target, func() (Result, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		out, err := dial(ctx, e.Addr)
		if err != nil {
			return Result{}, err
		}
		defer out.closeWith(ctx)()
		in, err := dial(ctx, e.Addr)
		if err != nil {
			return Result{}, err
		}
		defer in.closeWith(ctx)()
		start := time.Now()
		errs := make(chan error, 3)
		go func() { errs <- e.write(out, b, start, total) }()
		go func() { errs <- readAcks(out, total) }()
		go func() {
			var err error
			for err == nil && len(latencies) < total {
				err = f.fetch(in)
			}
			errs <- err
		}()
		err = firstOf(errs, 3, cancel)
		return Result{Records: f.records, Bytes: f.bytes, Elapsed: time.Since(start), Latency: latencyOf(latencies)}, err
	})
}

// write sends batch i when it is due, to the partitions in turn.
func (e EndToEnd) write(c *conn, b *batch, start time.Time, total int) error {
	pace := newPacer()
	defer pace.end()
	produce := Produce{Target: e.Target, Acks: 1}
	for i := range total {
		due := start.Add(time.Duration(float64(i) * float64(b.records) / e.Rate * float64(time.Second)))
		pace.until(due)
		b.due(due)
		p := i % e.Partitions
		if _, err := c.Write(produce.request(p, p+1, b.bytes)); err != nil {
			return err
		}
	}
	return nil
}

func readAcks(c *conn, n int) error {
	for range n {
		if err := readProduced(c); err != nil {
			return err
		}
	}
	return nil
}
