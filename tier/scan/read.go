package scan

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/tier"
	"varve/tier/container"
)

// readBytes is how much of the log is read at a time.
const readBytes = 4 << 20

// A Reader gives the committed records of one split, in offset order:
//
//	for r.Next(&rec) { … }
//	err := r.Close()
type Reader struct {
	split   Split
	file    tier.Reader
	pos     int64  // of the log, behind buf
	buf     []byte // read, not yet parsed
	store   []byte
	records record.Records
	walking bool
	unfold  record.Decompressor
	filter  filter
	err     error
}

// Read opens a split. The records it gives are good until the next call.
func (p *Plan) Read(ctx context.Context, s Split) (*Reader, error) {
	store := p.Topic.Store
	tail, err := readTail(ctx, store, s.File)
	if err != nil {
		return nil, err
	}
	aborted, err := container.DecodeAborted(tail.Part(container.Aborted))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	file, err := store.Open(ctx, s.File)
	if err != nil {
		return nil, err
	}
	return &Reader{split: s, file: file, pos: s.Pos, filter: newFilter(aborted)}, nil
}

// Next gives the next record; false at the end and after an error.
func (r *Reader) Next(rec *record.Record) bool {
	for r.err == nil {
		if r.walking {
			for r.records.Next(rec) {
				if rec.Offset >= r.split.From && rec.Offset < r.split.To {
					return true
				}
			}
			r.walking = false
			if err := r.records.Err(); err != nil {
				r.fail(err)
				return false
			}
		}
		b, ok := r.batch()
		if !ok {
			return false
		}
		if b.Control() || r.filter.drops(b) || b.LastOffset() < r.split.From || b.BaseOffset() >= r.split.To {
			continue
		}
		r.records, r.walking = b.Records(&r.unfold), true
	}
	return false
}

// batch takes the next batch off the log.
func (r *Reader) batch() (record.Batch, bool) {
	for {
		b, rest, err := record.Parse(r.buf)
		switch {
		case err == nil:
			r.buf = rest
			if !b.ValidCRC() {
				return nil, r.fail(fmt.Errorf("batch at offset %d does not fit its CRC", b.BaseOffset()))
			}
			return b, true
		case !errors.Is(err, record.ErrShort):
			return nil, r.fail(err)
		case r.pos == r.split.End && len(r.buf) == 0:
			return nil, false
		case r.pos == r.split.End:
			return nil, r.fail(fmt.Errorf("%d bytes behind the last batch", len(r.buf)))
		}
		if err := r.more(); err != nil {
			return nil, r.fail(err)
		}
	}
}

// more reads on, keeping what is in buf; the buffer grows for a batch that is larger.
func (r *Reader) more() error {
	have := len(r.buf)
	n := int(min(readBytes, r.split.End-r.pos))
	if cap(r.store) < have+n {
		grown := make([]byte, max(have+n, readBytes+64<<10))
		copy(grown, r.buf)
		r.store = grown
	} else {
		copy(r.store[:cap(r.store)], r.buf)
	}
	r.buf = r.store[:have+n]
	if m, err := r.file.ReadAt(r.buf[have:], r.pos); m < n {
		return cmp.Or(err, errShort)
	}
	r.pos += int64(n)
	return nil
}

func (r *Reader) fail(err error) bool {
	r.err = fmt.Errorf("%s, before position %d: %w", r.split.File, r.pos, err)
	return false
}

// Close ends the reading and tells what stopped it early.
func (r *Reader) Close() error { return errors.Join(r.err, r.file.Close()) }

// A filter knows which batches belong to aborted transactions: those of a producer from
// a transaction's first offset to its abort marker. Batches come in offset order.
type filter struct {
	coming []container.AbortedTxn // by first offset
	active txnHeap                // begun, by last offset
	open   map[kafka.ProducerID]int
}

func newFilter(txns []container.AbortedTxn) filter {
	txns = slices.Clone(txns)
	slices.SortFunc(txns, func(a, b container.AbortedTxn) int { return cmp.Compare(a.First, b.First) })
	return filter{coming: txns, open: map[kafka.ProducerID]int{}}
}

// drops tells whether a batch of records was aborted.
func (f *filter) drops(b record.Batch) bool {
	for len(f.coming) > 0 && f.coming[0].First <= b.LastOffset() {
		heap.Push(&f.active, f.coming[0])
		f.open[f.coming[0].Producer]++
		f.coming = f.coming[1:]
	}
	for len(f.active) > 0 && f.active[0].Last < b.BaseOffset() {
		t := heap.Pop(&f.active).(container.AbortedTxn)
		f.open[t.Producer]--
	}
	return b.Transactional() && f.open[b.ProducerID()] > 0
}

type txnHeap []container.AbortedTxn

func (h txnHeap) Len() int           { return len(h) }
func (h txnHeap) Less(i, j int) bool { return h[i].Last < h[j].Last }
func (h txnHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *txnHeap) Push(x any)        { *h = append(*h, x.(container.AbortedTxn)) }
func (h *txnHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
