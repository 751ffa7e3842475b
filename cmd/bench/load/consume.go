package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Consume reads all that is there when it begins, partitions dealt over the
// connections. There is no latency.
type Consume struct {
	Target
	Conns        int // connections; 0 is 1; at most one a partition
	FetchMax     int // max bytes of a fetch; 0 is 8 MiB
	PartitionMax int // max bytes of a partition in it; 0 is 1 MiB
}

// Run consumes.
func (c Consume) Run(ctx context.Context) (Result, error) {
	c.Conns = min(or(c.Conns, 1), c.Partitions)
	begin, err := c.offsets(ctx, -2)
	if err != nil {
		return Result{}, err
	}
	end, err := c.offsets(ctx, -1)
	if err != nil {
		return Result{}, err
	}
	return measured(c.Target, func() (Result, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var records, size atomic.Int64
		start := time.Now()
		errs := make(chan error, c.Conns)
		for i := range c.Conns {
			f := &fetcher{topic: c.Topic, next: map[int32]int64{},
				max: or(c.FetchMax, 8<<20), partitionMax: or(c.PartitionMax, 1<<20), wait: 500 * time.Millisecond}
			for p := i; p < c.Partitions; p += c.Conns {
				if begin[p] < end[p] {
					f.next[int32(p)] = begin[p]
				}
			}
			go func() {
				errs <- f.drain(ctx, c.Addr, end)
				records.Add(f.records)
				size.Add(f.bytes)
			}()
		}
		err := firstOf(errs, c.Conns, cancel)
		return Result{Records: records.Load(), Bytes: size.Load(), Elapsed: time.Since(start)}, err
	})
}

// fetcher reads partitions of one topic over one connection.
type fetcher struct {
	topic             string
	next              map[int32]int64 // offset to read next, by partition
	max, partitionMax int
	wait              time.Duration
	each              func(batch []byte) // called with what arrives; may be nil

	records, bytes int64
}

// drain reads until every partition has reached its end.
func (f *fetcher) drain(ctx context.Context, addr string, end []int64) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.closeWith(ctx)()
	for len(f.next) > 0 {
		if err := f.fetch(c); err != nil {
			return err
		}
		for p, next := range f.next {
			if next >= end[p] {
				delete(f.next, p)
			}
		}
	}
	return nil
}

// fetch asks once and waits for the answer.
func (f *fetcher) fetch(c *conn) error {
	if _, err := c.Write(f.request()); err != nil {
		return fmt.Errorf("writing a fetch request: %w", err)
	}
	return f.answer(c)
}

func (f *fetcher) request() []byte {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(fetchVersion)
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(f.wait.Milliseconds()), 1, int32(f.max)
	req.SessionEpoch = -1 // no session
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = f.topic
	for p, next := range f.next {
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = p, next, int32(f.partitionMax)
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	return encode(req)
}

func (f *fetcher) answer(c *conn) error {
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(fetchVersion)
	if err := c.read(resp); err != nil {
		return fmt.Errorf("reading a fetch response: %w", err)
	}
	if resp.ErrorCode != 0 {
		return fmt.Errorf("fetching %s: error code %d", f.topic, resp.ErrorCode)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			if p.ErrorCode != 0 {
				return fmt.Errorf("fetching %s-%d: error code %d", f.topic, p.Partition, p.ErrorCode)
			}
			next, records, size := skim(p.RecordBatches, f.next[p.Partition], f.each)
			f.next[p.Partition] = next
			f.records += records
			f.bytes += size
		}
	}
	return nil
}
