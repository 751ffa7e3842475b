package archive

import (
	"context"
	"fmt"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/tier/container"
	"varve/tier/manifest"
)

// A Found is a record found by its time.
type Found struct {
	Offset    kafka.Offset
	Timestamp int64
	Epoch     kafka.LeaderEpoch
}

// OffsetForTime finds the first record of the tier, at or above the log start from,
// whose timestamp is ts or later (tiering 2.11). It waits for the store: it is for a
// goroutine of the caller's, bounded by ctx. ok is false where the tier has none.
func (p *Partition) OffsetForTime(ctx context.Context, ts int64, from kafka.Offset) (f Found, ok bool, err error) {
	s, err := p.State()
	if err != nil {
		return f, false, err
	}
	from = max(from, s.LogStart)
	for i := range s.Live {
		seg := s.Live[i]
		if seg.MaxTimestamp < ts || seg.End < from || !s.Lineage.Holds(&seg) {
			continue
		}
		if f, ok, err = p.search(ctx, seg, ts, from); ok || err != nil {
			return f, ok, err
		}
	}
	return f, false, nil
}

// MaxTimestamp finds the record with the highest timestamp in the tier, the first of
// several (KAFKA-17552).
func (p *Partition) MaxTimestamp(ctx context.Context) (f Found, ok bool, err error) {
	s, err := p.State()
	if err != nil {
		return f, false, err
	}
	var best *manifest.Segment
	for i := range s.Live {
		seg := &s.Live[i]
		if seg.End >= s.LogStart && (best == nil || seg.MaxTimestamp > best.MaxTimestamp) && s.Lineage.Holds(seg) {
			best = seg
		}
	}
	if best == nil {
		return f, false, nil
	}
	return p.search(ctx, *best, best.MaxTimestamp, s.LogStart)
}

// search looks in one container for the first record from offset from on with a
// timestamp of ts or later. Batches whose newest record is older are not unfolded.
func (p *Partition) search(ctx context.Context, seg manifest.Segment, ts int64, from kafka.Offset) (f Found, ok bool, err error) {
	c, err := p.open(ctx, seg)
	if err != nil {
		return f, false, err
	}
	o := max(from, c.tail.OffsetForTime(ts))
	for o <= seg.End {
		b, err := p.batch(ctx, c, o)
		if err != nil {
			return f, false, err
		}
		if b.MaxTimestamp() >= ts && !b.Control() {
			if f, ok = firstAt(b, ts, from); ok {
				return f, true, nil
			}
		}
		o = b.NextOffset()
	}
	return f, false, nil
}

// firstAt finds the record in a batch. One whose records do not unfold is taken as one,
// as by a segment on the disk.
func firstAt(b record.Batch, ts int64, from kafka.Offset) (f Found, ok bool) {
	it := b.Records(nil)
	var r record.Record
	for it.Next(&r) {
		if r.Timestamp >= ts && r.Offset >= from {
			return Found{r.Offset, r.Timestamp, b.LeaderEpoch()}, true
		}
	}
	if it.Err() != nil {
		return Found{max(b.BaseOffset(), from), b.MaxTimestamp(), b.LeaderEpoch()}, true
	}
	return f, false
}

// wait repeats look until it is done, waking on what it said to wake.
func wait(ctx context.Context, look func(wake func()) (bool, error)) error {
	for {
		woken := make(chan struct{}, 1)
		done, err := look(func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
		if done || err != nil {
			return err
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Partition) open(ctx context.Context, seg manifest.Segment) (c *opened, err error) {
	err = wait(ctx, func(wake func()) (bool, error) {
		c, err = p.archive.reads.get(seg, p.chain.Segment(seg), wake)
		return c != nil, err
	})
	return c, p.stale(err)
}

// batch reads the batch that holds offset o, or the next one, to memory.
func (p *Partition) batch(ctx context.Context, c *opened, o kafka.Offset) (b record.Batch, err error) {
	chunks := p.archive.opt.Cache
	err = wait(ctx, func(wake func()) (bool, error) {
		pos, head, err := c.seek(chunks, o, wake)
		if err != nil || head == nil {
			return false, err
		}
		f, err := c.single(chunks, pos, head, wake)
		if err != nil || f.Pending {
			return false, err
		}
		b = append(record.Batch(nil), f.Run.Bytes...)
		f.Run.Release()
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if !b.ValidCRC() {
		return nil, &CorruptSegmentError{c.name, &container.CorruptError{Part: "log", Err: fmt.Errorf("batch at offset %d does not fit its CRC", b.BaseOffset())}}
	}
	return b, nil
}

// A Seed is what a replica needs to begin its log behind the tier (T12, tiering 2.7).
type Seed struct {
	Next      kafka.Offset // where its log begins
	LogStart  kafka.Offset
	Epochs    []kafka.EpochStart // all up to Next
	Producers []byte             // producer snapshot at Next, as Kafka's .snapshot; may be empty
	Aborted   []container.AbortedTxn
}

// Seed reads it from the newest container of the gap-free run; ok is false where the
// tier has none.
func (p *Partition) Seed(ctx context.Context) (seed Seed, ok bool, err error) {
	s, err := p.State()
	if err != nil {
		return seed, false, err
	}
	return p.seed(ctx, s)
}

func (p *Partition) seed(ctx context.Context, s *manifest.State) (seed Seed, ok bool, err error) {
	next := s.NextOffset()
	seg, ok := s.Find(next - 1)
	if !ok {
		return seed, false, nil
	}
	c, err := p.open(ctx, seg)
	if err != nil {
		return seed, false, err
	}
	seed = Seed{Next: next, LogStart: s.LogStart, Producers: c.tail.Part(container.Producers), Aborted: c.aborted}
	seed.Epochs, err = container.DecodeEpochs(c.tail.Part(container.Epochs))
	return seed, err == nil, err
}
