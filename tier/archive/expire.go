package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"varve/tier"
	"varve/tier/manifest"
)

const (
	// sweepEvery is the time between looks for leftovers.
	sweepEvery = 10 * time.Minute
	// pruneMax bounds the versions that one pass removes.
	pruneMax = 100
)

// expire does what the total retention asks, in the tier and for records that are not
// in it yet: log start in the chain first, then here, then nothing is left to do but
// removal, which may come any time later.
func (p *Partition) expire(segs []Segment, o Offsets, c Config) error {
	now, skips := p.nowMs, false
	change := func(s *manifest.State) (manifest.Change, bool) {
		from, start := s.NextOffset(), o.LogStart
		if upTo := expiredLocally(segs, from, o.HighWatermark, c, now); upTo > from {
			start, skips = upTo, true
		}
		return s.ExpireChange(manifest.Retention{NowMs: now, Ms: c.RetentionMs, Bytes: c.RetentionBytes,
			LocalBytes: onlyLocal(segs, from), LogStart: start})
	}
	ch, ok := change(&p.chain.State)
	deletes := len(ch.Deleting) > 0 || skips
	stale := p.skew && p.archive.opt.Clock.Mono()-p.measured > sweepEvery
	if !(ok && deletes) && !(ok && p.fenced) && !(stale && p.fenced) {
		return nil // a higher log start alone can wait for the next version
	}
	if err := p.fence(); err != nil {
		return err
	}
	ctx, cancel := p.deadline(0)
	defer cancel()
	if stale || deletes && !p.compared {
		// Nothing says that the store's clock and this one agree now: a version shows
		// the store's, before anything is deleted (T10).
		if err := p.commit(ctx, func(*manifest.State) (manifest.Change, bool) { return manifest.Change{}, true }); err != nil {
			return err
		}
	}
	if p.skew {
		now, p.nowMs = 0, 0
	}
	if err := p.commit(ctx, change); err != nil {
		return fmt.Errorf("expiring in the tier of %s: %w", p.tp, err)
	}
	// The chain has it: now it may be heard of (§3-9, KAFKA-15352).
	if err := p.log.SetLogStart(p.chain.State.LogStart); err != nil {
		return fmt.Errorf("raising the log start of %s to %d: %w", p.tp, p.chain.State.LogStart, err)
	}
	return nil
}

// clear removes everything from the tier, then ends (KIP-950). The log start is the local
// one already: nobody reads here any more. What a crash leaves goes with the topic.
func (p *Partition) clear() (again time.Duration, copying bool, err error) {
	if p.chain.State.Number > 0 {
		if err := p.fence(); err != nil {
			return 0, false, err
		}
		ctx, cancel := p.deadline(0)
		defer cancel()
		start := p.log.Offsets().LogStart
		if err := p.commit(ctx, func(s *manifest.State) (manifest.Change, bool) { return s.ClearChange(start) }); err != nil {
			return 0, false, fmt.Errorf("taking %s out of the tier: %w", p.tp, err)
		}
		if err := p.tidy(p.archive.opt.Clock.Mono()); err != nil {
			return 0, false, err
		}
		if len(p.chain.State.Deleting) > 0 { // pinned
			return p.archive.opt.Interval, false, nil
		}
	}
	p.archive.opt.Log.Info("tier: the partition has left the tier", "partition", p.tp)
	p.Resign()
	return 0, false, nil
}

// outage applies the outage policy where a step failed with err, which it returns.
func (p *Partition) outage(segs []Segment, o Offsets, c Config, err error) error {
	if p.archive.opt.Outage != Expire || !errors.Is(err, tier.ErrUnavailable) && !errors.Is(err, tier.ErrFull) {
		return err
	}
	from := o.LogStart
	if p.state.Load() != nil {
		from = max(from, p.chain.State.NextOffset())
	}
	upTo := expiredLocally(segs, from, o.HighWatermark, c, p.nowMs)
	if upTo <= from {
		return err
	}
	p.archive.opt.Log.Warn("tier: records expire without having been copied (tier.outage.policy=expire)", "partition", p.tp, "below", upTo)
	if e := p.log.SetLogStart(upTo); e != nil {
		return errors.Join(err, e)
	}
	_, _, e := p.log.DropLocal(upTo)
	return errors.Join(err, e)
}

// tidy removes what may go: files of deleting segments, leftovers, old versions.
func (p *Partition) tidy(mono time.Duration) error {
	ctx, cancel := p.deadline(0)
	defer cancel()
	s := &p.chain.State
	checkpoint := s.Number / manifest.CheckpointEvery
	if len(s.Deleting) == 0 && mono < p.sweepAt && checkpoint == p.sized && len(p.abandoned) == 0 {
		return nil
	}
	if p.chain.Unsettled() { // T1: nothing that it names may go
		return nil
	}
	// Marked first, pins looked for after (T9): s was committed before this call.
	pins, err := p.alivePins(ctx, mono)
	if err != nil {
		return err
	}
	if err := p.remove(ctx, pins); err != nil {
		return fmt.Errorf("removing expired containers of %s: %w", p.tp, err)
	}
	if checkpoint != p.sized {
		if err := p.chain.Prune(ctx, pins, pruneMax); err != nil {
			return fmt.Errorf("pruning the manifest of %s: %w", p.tp, err)
		}
		p.sized = checkpoint
	}
	if mono >= p.sweepAt || len(p.abandoned) > 0 {
		if err := p.sweep(ctx); err != nil {
			return fmt.Errorf("sweeping %s: %w", p.chain.Path, err)
		}
		p.sweepAt = mono + sweepEvery
	}
	return nil
}

// alivePins lists the pins and takes away those whose name has been there for longer
// than its time to live, on this clock (T9).
func (p *Partition) alivePins(ctx context.Context, mono time.Duration) ([]manifest.Pin, error) {
	listed, err := p.chain.Pins(ctx)
	if err != nil {
		return nil, err
	}
	seen := make(map[manifest.Pin]time.Duration, len(listed))
	var alive []manifest.Pin
	for _, pin := range listed {
		first, ok := p.pins[pin]
		if !ok {
			first = mono
		}
		seen[pin] = first
		if mono-first <= time.Duration(pin.TTLSeconds)*time.Second {
			alive = append(alive, pin)
		} else if err := p.chain.Unpin(ctx, pin); err != nil {
			return nil, err
		}
	}
	p.pins = seen
	return alive, nil
}

// remove deletes files, then drops their segments from the chain.
func (p *Partition) remove(ctx context.Context, pins []manifest.Pin) error {
	var gone []string
	for _, s := range p.chain.State.Removable(pins) {
		if err := p.archive.opt.Store.Delete(ctx, p.chain.Segment(s)); err != nil {
			return err
		}
		gone = append(gone, s.ID)
	}
	if len(gone) == 0 {
		return nil
	}
	p.archive.count(func(s *Stats) { s.Removed += int64(len(gone)) })
	return p.commit(ctx, func(s *manifest.State) (manifest.Change, bool) { return s.DropChange(gone) })
}

// sweep removes files that no version names and nobody can name any more (T4). The
// folders are listed before the chain is read: what is placed and committed in between
// is then in the chain.
func (p *Partition) sweep(ctx context.Context) error {
	store := p.archive.opt.Store
	segments := p.chain.Path + "/" + manifest.SegmentsDir
	progress := p.chain.Path + "/" + manifest.ProgressDir
	containers, err := store.List(ctx, segments)
	if err != nil {
		return err
	}
	temps, err := store.List(ctx, progress)
	if err != nil {
		return err
	}
	if err := p.chain.Load(ctx); err != nil {
		return err
	}
	s, mine := &p.chain.State, p.chain.Writer.LeaderEpoch
	if err := s.MayWrite(p.chain.Writer); err != nil {
		return err
	}
	abandoned := func(id string) bool { return p.abandoned[id] }
	var old []string
	seen := map[string]bool{}
	for _, f := range containers {
		if n, err := manifest.ParseSegmentName(f.Name); err == nil && s.MaySweepContainer(n, mine, abandoned) {
			old, seen[n.ID] = append(old, segments+"/"+f.Name), true
		}
	}
	for _, f := range temps {
		if n, err := manifest.ParseProgressName(f.Name); err == nil && s.MaySweepProgress(n, mine, abandoned) {
			old, seen[n.ID] = append(old, progress+"/"+f.Name), true
		}
	}
	for _, name := range old {
		if err := store.Delete(ctx, name); err != nil {
			return err
		}
	}
	// One look may come between the two places of a rename that lands late: what is
	// abandoned is forgotten after a look that found nothing of it.
	maps.DeleteFunc(p.abandoned, func(id string, _ bool) bool { return !seen[id] })
	p.publish()
	if len(old) > 0 {
		p.archive.count(func(s *Stats) { s.Swept += int64(len(old)) })
		p.archive.opt.Log.Info("tier: removed leftovers of interrupted copies", "partition", p.tp, "files", len(old))
	}
	return nil
}

// drop lets local segments go that local retention wants gone and whose containers
// count: enough replicas, and their grace has passed (T11). It tells when the next may.
func (p *Partition) drop(c Config, mono time.Duration) (again time.Duration, err error) {
	again = p.archive.opt.Interval
	ctx, cancel := p.deadline(0)
	defer cancel()
	for len(p.waiting) > 0 {
		w := p.waiting[0]
		if w.from > mono {
			again = w.from - mono
			break
		}
		if p.chain.State.IsLive(w.segment.ID) {
			live, want, err := p.archive.opt.Store.LiveReplicas(ctx, p.chain.Segment(w.segment))
			if err != nil {
				return 0, fmt.Errorf("counting the replicas of %s: %w", w.segment.Name(), err)
			}
			if live < min(want, 2) {
				again = min(again, 5*time.Second)
				break
			}
		}
		p.counted = max(p.counted, w.segment.Next())
		p.waiting = p.waiting[1:]
	}
	o, segs := p.log.Offsets(), p.log.Segments()
	// Never above the gap-free run of what the chain says now (T5, §3-8).
	upTo := localDrop(segs, min(p.counted, p.chain.State.NextOffset()), o, c, p.nowMs)
	if len(segs) == 0 || upTo <= segs[0].Base {
		return again, nil
	}
	n, bytes, err := p.log.DropLocal(upTo)
	if err != nil {
		return 0, fmt.Errorf("dropping local segments of %s below %d: %w", p.tp, upTo, err)
	}
	p.archive.count(func(s *Stats) { s.Dropped += bytes })
	if n > 0 {
		p.archive.opt.Log.Info("tier: local segments went", "partition", p.tp, "segments", n, "bytes", bytes, "localStart", upTo)
	}
	return again, nil
}
