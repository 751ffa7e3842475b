package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"varve/broker/kafka"
	"varve/tier"
	"varve/tier/chain"
	"varve/tier/container"
	"varve/tier/manifest"
)

// Several finished containers share a version: that many, or as many as are finished
// in that time.
const (
	batchMax  = 16
	batchTime = 5 * time.Second
)

var buffers = sync.Pool{New: func() any { b := make([]byte, writeBytes); return &b }}

// A copyTask copies what a partition has to copy, and commits it.
type copyTask struct{ p *Partition }

func (t copyTask) run() {
	p := t.p
	if p.ctx.Err() != nil {
		return
	}
	before := p.chain.State.Number
	err := p.copyBatch()
	if p.ctx.Err() != nil {
		return
	}
	if err != nil {
		segs, o, c := p.log.Segments(), p.log.Offsets(), p.log.Config()
		p.failed(p.outage(segs, o, c, err), p.done)
		return
	}
	p.failures = 0
	if p.chain.State.Number == before {
		p.done(p.archive.opt.Interval)
	} else {
		p.done(0)
	}
}

// copyBatch fences, copies containers in offset order, and commits them in one version
// (T5). What was finished before a failure is committed all the same.
func (p *Partition) copyBatch() error {
	if err := p.fence(); err != nil {
		return err
	}
	if err := p.closeGap(); err != nil {
		return err
	}
	start, from := time.Now(), p.chain.State.NextOffset()
	var done []manifest.Segment
	var failure error
	for len(done) < batchMax && (len(done) == 0 || time.Since(start) < batchTime) {
		r, size, ok := next(p.log.Segments(), from, p.log.Offsets().LastStable)
		if !ok {
			break
		}
		seg, err := p.copyOne(r, size)
		if err != nil {
			failure = fmt.Errorf("copying %s %s to %s: %w", p.tp, r, p.archive.opt.Store.URL(), err)
			break
		}
		done, from = append(done, seg), seg.Next()
	}
	if len(done) == 0 {
		return failure
	}
	if err := p.commitCopies(done); err != nil {
		return errors.Join(fmt.Errorf("committing %d containers of %s: %w", len(done), p.tp, err), failure)
	}
	p.report(done, time.Since(start))
	return failure
}

// closeGap records that what lies between the tier's end and the local start is
// nowhere any more (Redpanda 26052).
func (p *Partition) closeGap() error {
	g, ok := gapBefore(p.log.Segments(), p.chain.State.NextOffset())
	if !ok {
		return nil
	}
	ctx, cancel := p.deadline(0)
	defer cancel()
	if p.log.Offsets().LogStart < g.End {
		p.archive.opt.Log.Warn("tier: records are neither in the tier nor on this disk; the gap is recorded", "partition", p.tp, "from", g.Start, "to", g.End)
	}
	return p.commit(ctx, func(s *manifest.State) (manifest.Change, bool) {
		g, ok := gapBefore(p.log.Segments(), s.NextOffset())
		c := manifest.Change{LogStart: p.log.Offsets().LogStart, Lineage: p.log.Epochs()}
		if c.LogStart < g.End {
			c.Gaps = []manifest.Gap{g}
		}
		return c, ok
	})
}

// commitCopies names finished containers in the chain and gives up those that lost
// their place.
func (p *Partition) commitCopies(done []manifest.Segment) error {
	ctx, cancel := p.deadline(0)
	defer cancel()
	err := p.commit(ctx, func(s *manifest.State) (manifest.Change, bool) {
		// §3-10: still mine (Commit looks), still missing, still in the lineage.
		return s.AddChange(done, p.log.Offsets().LastStable, p.log.Epochs())
	})
	if err != nil {
		// Named, perhaps: an attempt that is unsettled keeps its containers (T1). They
		// are swept when the chain, as it is then, does not name them.
		for _, s := range done {
			p.abandoned[s.ID] = true
		}
		return err
	}
	from := p.archive.opt.Clock.Mono() + p.archive.opt.Grace
	for _, s := range done {
		if p.chain.State.IsLive(s.ID) {
			p.waiting = append(p.waiting, committed{s, from})
		} else {
			p.abandoned[s.ID] = true
		}
	}
	return nil
}

func (p *Partition) report(done []manifest.Segment, d time.Duration) {
	bytes := int64(0)
	for _, s := range done {
		bytes += s.Size
	}
	p.archive.count(func(s *Stats) { s.Copied += bytes; s.Containers += int64(len(done)) })
	p.archive.opt.Log.Info("tier: copied", "partition", p.tp, "from", done[0].Base, "to", done[len(done)-1].End,
		"containers", len(done), "bytes", bytes, slog.Int64("MB/s", bytes/1000/max(1, d.Milliseconds())),
		"version", p.chain.State.Number)
}

// copyOne brings one range to segments/ under a fresh name.
func (p *Partition) copyOne(r kafka.Range, size int64) (manifest.Segment, error) {
	ctx, cancel := p.deadline(size)
	defer cancel()
	x, err := p.log.Export(r)
	if err != nil {
		return manifest.Segment{}, fmt.Errorf("exporting: %w", err)
	}
	defer x.Release()
	w := p.chain.Writer
	seg := manifest.Segment{ID: chain.NewID(), Base: r.Start, End: r.End - 1, LeaderEpoch: w.LeaderEpoch, Broker: w.Broker,
		Epochs: x.Epochs, HasAborted: len(x.Parts.Aborted) > 0}
	temp := p.chain.Progress(manifest.ProgressName{Number: int64(r.Start), LeaderEpoch: w.LeaderEpoch, Broker: w.Broker, ID: seg.ID})
	p.abandoned[seg.ID] = true // until it is where it belongs; the sweep knows it by that
	f, err := p.writeContainer(ctx, temp, &seg, x)
	if err != nil {
		return seg, err
	}
	if err := verify(ctx, p.archive.opt.Store, temp, f); err != nil {
		return seg, err
	}
	if err := p.place(ctx, temp, p.chain.Segment(seg)); err != nil {
		return seg, err
	}
	delete(p.abandoned, seg.ID)
	return seg, nil
}

// writeContainer writes the file and fills in what the writer counted.
func (p *Partition) writeContainer(ctx context.Context, temp string, seg *manifest.Segment, x *Export) (*container.Footer, error) {
	store := p.archive.opt.Store
	out, err := store.Create(ctx, temp, tier.CreateOptions{Size: container.SizeEstimate(x.LogSize, x.Parts, len(x.Epochs))})
	if err != nil {
		return nil, err
	}
	epochs := make([]container.Epoch, len(x.Epochs))
	for i, e := range x.Epochs {
		epochs[i] = container.Epoch{Epoch: e.Epoch, Start: e.Start}
	}
	cw := container.NewWriter(pacedWriter{ctx, out, &p.archive.pace}, container.Footer{
		ID: seg.ID, Topic: p.tp.Topic, TopicID: p.topicID(), Partition: p.tp.Partition,
		Base: seg.Base, End: seg.End, LeaderEpoch: seg.LeaderEpoch, Broker: seg.Broker, Epochs: epochs,
	})
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	if err := x.WriteLog(cw, *buf); err != nil {
		out.Abort()
		return nil, err
	}
	f, err := cw.Finish(x.Parts)
	if err != nil {
		out.Abort()
		return nil, err
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	seg.Size, seg.LogSize, seg.CRC = cw.Size(), f.Parts[container.Log].Size, f.Parts[container.Log].CRC
	seg.MaxTimestamp, seg.Records = f.MaxTimestamp, f.Records
	return f, nil
}

// verify looks at a closed file as a reader will: its length, its footer.
func verify(ctx context.Context, store tier.Store, name string, want *container.Footer) error {
	size := want.Size()
	info, err := store.Stat(ctx, name)
	if err != nil {
		return err
	}
	if info.Size != size {
		return fmt.Errorf("%s has %d bytes after it was closed, %d were written", name, info.Size, size)
	}
	r, err := store.Open(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	log := want.Parts[container.Log]
	b := make([]byte, size-log.Size)
	if n, err := r.ReadAt(b, log.Size); n < len(b) {
		return fmt.Errorf("reading %s back: %w", name, err)
	}
	got, err := container.DecodeTail(b, size)
	if err != nil {
		return fmt.Errorf("reading %s back: %w", name, err)
	}
	if got.Parts != want.Parts {
		return fmt.Errorf("%s reads back with parts %v, %v were written", name, got.Parts, want.Parts)
	}
	return nil
}

// place renames a finished file to its unique name. An unknown outcome is settled by
// taking the source away: then the target is there or never will be (T1).
func (p *Partition) place(ctx context.Context, from, to string) error {
	store := p.archive.opt.Store
	err := store.Rename(ctx, from, to)
	if err == nil {
		return nil
	}
	if e := store.Delete(ctx, from); e != nil {
		return errors.Join(err, e)
	}
	if _, e := store.Stat(ctx, to); e == nil {
		return nil
	}
	return err
}

func (p *Partition) topicID() string {
	dir, _ := tier.Parent(p.chain.Path)
	_, id := tier.Parent(dir)
	return id
}
