package archive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"varve/broker/kafka"
	"varve/tier/chain"
	"varve/tier/manifest"
)

// ErrNotReady: the chain has not been loaded since the leadership began; ask again in a
// moment (KAFKA-19599).
var ErrNotReady = errors.New("the tier's manifest is not loaded yet")

// A Partition is the tier's side of one leadership of one partition:
//
//	new ──load──► loaded ──first version──► fenced in ──► … ──► resigned
//	                └────────── another writer ──────────────► out
//
// The published state may be read by anyone; all else belongs to the worker that has
// the partition's task.
type Partition struct {
	archive *Archive
	tp      kafka.TopicPartition
	log     Log
	entry   entry
	ctx     context.Context
	cancel  context.CancelFunc

	state   atomic.Pointer[manifest.State] // nil before the first load
	behind  atomic.Pointer[Lag]
	stopped atomic.Bool // out or resigned
	leaving atomic.Bool // the topic is tiered no more: what is in the tier goes, then this ends
	reload  atomic.Bool // a reader missed a file: look at the chain again

	chain     chain.Chain
	fenced    bool // our fence version is in the chain
	abandoned map[string]bool
	pins      map[manifest.Pin]time.Duration // first seen, monotonic
	failures  int
	roll      rollClock
	counted   kafka.Offset // local data below may go (T11)
	waiting   []committed  // containers that do not count yet
	clock     clockCheck
	nowMs     int64         // wall clock of this pass; 0 = not plausible (T10)
	compared  bool          // with the store's clock, since wall and monotonic last parted
	measured  time.Duration // monotonic, when it was compared
	skew      bool          // the store's clock and the wall clock have parted
	sweepAt   time.Duration
	sized     int64 // newest checkpoint below which was pruned
}

// A committed container counts from a time on.
type committed struct {
	segment manifest.Segment
	from    time.Duration // monotonic
}

// Lag is what of a partition is not in the tier.
type Lag struct {
	Bytes    int64
	Segments int
	since    time.Duration // monotonic, since when it is not zero
}

// Resign ends the leadership: what is under way is given up. A commit that is already
// on its way may still land, and is as good as any.
func (p *Partition) Resign() {
	p.stopped.Store(true)
	p.cancel()
	a := p.archive
	a.mu.Lock()
	delete(a.mu.parts, p) // KAFKA-16948: no lag of an ex-leader
	a.mu.Unlock()
}

// Leave begins to remove everything from the tier, because the topic is tiered no more;
// then the tier's part of the leadership ends. The log start must have been raised to
// the local start.
func (p *Partition) Leave() {
	p.leaving.Store(true)
	p.Kick()
}

// Kick makes the archive look at the partition now: a segment was rolled, the log start
// was raised, a config changed.
func (p *Partition) Kick() {
	if !p.stopped.Load() {
		p.archive.schedule(&p.entry, p, 0)
	}
}

// Lag is the last look's.
func (p *Partition) Lag() Lag {
	if l := p.behind.Load(); l != nil {
		return *l
	}
	return Lag{}
}

// Blocked tells whether produce requests are to be refused until the tier has caught
// up (tier.outage.policy=block).
func (p *Partition) Blocked() bool {
	return p.archive.opt.Outage == Block && p.Lag().Bytes > p.archive.opt.BlockBytes
}

// State is the chain as last seen; ErrNotReady before.
func (p *Partition) State() (*manifest.State, error) {
	if s := p.state.Load(); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%s: %w", p.tp, ErrNotReady)
}

// publish shows the chain's state to readers and to the log.
func (p *Partition) publish() {
	s := p.chain.State
	if old := p.state.Load(); old != nil && old.ID == s.ID && old.Number == s.Number {
		return
	}
	p.state.Store(&s)
	p.log.SetTiered(s.NextOffset())
}

// run is one pass.
func (p *Partition) run() {
	if p.ctx.Err() != nil {
		return
	}
	next, copying, err := p.pass()
	if p.ctx.Err() != nil {
		return
	}
	if err != nil {
		p.failed(err, p.done)
		return
	}
	if copying {
		p.archive.copies.put(copyTask{p})
		return
	}
	p.failures = 0
	p.done(next)
}

func (p *Partition) done(d time.Duration) { p.archive.done(&p.entry, d) }

// failed says what is wrong and what happens next, and does that.
func (p *Partition) failed(err error, again func(time.Duration)) {
	a := p.archive
	a.count(func(s *Stats) { s.Errors++; s.LastError = err.Error() })
	if errors.Is(err, manifest.ErrFenced) || errors.Is(err, manifest.ErrDeleted) {
		a.count(func(s *Stats) { s.Fenced++ })
		a.opt.Log.Warn("tier: this broker's part in the partition's tier ends; local data is kept", "partition", p.tp, "err", err)
		p.stopped.Store(true)
		p.cancel()
		return
	}
	p.failures++
	d := a.opt.Retry.after(p.failures-1, rand.Float64())
	a.opt.Log.Warn("tier: a step failed; local data is kept and the step is repeated",
		"partition", p.tp, "err", err, "again", d.Round(time.Millisecond), "failures", p.failures)
	again(d)
}

// pass looks at everything once, cheapest first, and tells when to look again and
// whether there is something to copy first.
func (p *Partition) pass() (again time.Duration, copying bool, err error) {
	a := p.archive
	p.lookAtClock()
	if p.reload.Swap(false) || p.state.Load() == nil || p.chain.Unsettled() {
		if err := p.load(); err != nil {
			p.measureLag(p.log.Segments(), a.opt.Clock.Mono()) // KAFKA-16948: on every pass
			return 0, false, p.outage(p.log.Segments(), p.log.Offsets(), p.log.Config(), err)
		}
	}
	if p.leaving.Load() {
		return p.clear()
	}
	c, o, mono := p.log.Config(), p.log.Offsets(), a.opt.Clock.Mono()
	segs := p.log.Segments()
	if !c.CopyDisabled && p.roll.due(segs, o, c.UploadInterval, mono, a.opt.Clock.WallMs()) {
		if err := p.log.Roll(); err != nil {
			return 0, false, fmt.Errorf("rolling %s for the tier: %w", p.tp, err)
		}
		segs = p.log.Segments()
	}
	p.measureLag(segs, mono)
	if err := p.expire(segs, o, c); err != nil {
		return 0, false, p.outage(segs, o, c, err)
	}
	if p.fenced {
		if err := p.tidy(mono); err != nil {
			return 0, false, err
		}
	}
	again, err = p.drop(c, mono)
	if err != nil {
		return 0, false, err
	}
	from := p.chain.State.NextOffset()
	if g, ok := gapBefore(segs, from); ok {
		from = g.End
	}
	_, _, copying = next(segs, from, o.LastStable)
	return min(again, a.opt.Interval), copying && !c.CopyDisabled, nil
}

// load reads the chain, and takes its log start (§3-9: the higher counts).
func (p *Partition) load() error {
	ctx, cancel := p.deadline(0)
	defer cancel()
	if err := p.chain.Load(ctx); err != nil {
		return fmt.Errorf("loading the manifest of %s: %w", p.tp, err)
	}
	s := &p.chain.State
	may := s.MayLead
	if p.fenced {
		may = s.MayWrite
	}
	if err := may(p.chain.Writer); err != nil {
		p.publish() // what is there can be read all the same
		return err
	}
	if g, ok := vanished(s, p.log.Segments(), p.log.Offsets()); ok {
		return fmt.Errorf("the tier has no manifest of %s, but records [%d,%d) are on this disk no more: is tier.url right, and what it names mounted? "+
			"Nothing is written there until %s is back; if it is lost for good, delete the topic", p.tp, g.Start, g.End, p.chain.Path+"/"+manifest.ChainDir)
	}
	if err := p.catchUp(ctx); err != nil {
		return err
	}
	if err := p.log.SetLogStart(s.LogStart); err != nil {
		return fmt.Errorf("raising the log start of %s to the manifest's %d: %w", p.tp, s.LogStart, err)
	}
	p.await(s.Live)
	p.publish()
	return nil
}

// catchUp makes a log that ends below what the tier holds begin behind it, before it is
// appended to (T12): after an unclean election, on a new disk, where the end was lost.
func (p *Partition) catchUp(ctx context.Context) error {
	s := &p.chain.State
	if p.log.Offsets().End >= s.NextOffset() {
		return nil
	}
	seed, ok, err := p.seed(ctx, s)
	if err == nil && !ok {
		err = fmt.Errorf("no container ends at %d", s.NextOffset())
	}
	if err == nil {
		err = p.log.Begin(seed)
	}
	if err != nil {
		return fmt.Errorf("beginning the log of %s behind the tier's %d: %w", p.tp, s.NextOffset(), err)
	}
	p.archive.opt.Log.Warn("tier: the local log ended below what the tier holds; it begins behind it now", "partition", p.tp, "at", seed.Next)
	return nil
}

// await takes containers that cover local data in the list of those that are to count.
func (p *Partition) await(segs []manifest.Segment) {
	local := p.log.Offsets().LocalStart
	from := p.archive.opt.Clock.Mono() + p.archive.opt.Grace
	p.waiting = p.waiting[:0]
	for _, s := range segs {
		if s.Next() > max(local, p.counted) {
			p.waiting = append(p.waiting, committed{s, from})
		}
	}
}

// fence commits this leader's first version, once (T13).
func (p *Partition) fence() error {
	if p.fenced {
		return nil
	}
	ctx, cancel := p.deadline(0)
	defer cancel()
	err := p.chain.Fence(ctx, func(*manifest.State) (manifest.Change, bool) {
		o := p.log.Offsets()
		return manifest.FenceChange(o.LogStart, o.LastStable, p.log.Epochs()), true
	})
	if err != nil {
		return fmt.Errorf("taking over the manifest of %s: %w", p.tp, err)
	}
	p.fenced = true
	p.clockMeasured()
	p.await(p.chain.State.Live)
	p.publish()
	return nil
}

// commit publishes a change; the state that readers see follows.
func (p *Partition) commit(ctx context.Context, change chain.ChangeFunc) error {
	err := p.chain.Commit(ctx, change)
	if err == nil {
		p.clockMeasured()
		p.publish()
	}
	return err
}

// clockMeasured compares the wall clock with the store's, which a version just written
// shows (T10).
func (p *Partition) clockMeasured() {
	if !p.chain.Written.IsZero() {
		p.compared, p.measured = true, p.archive.opt.Clock.Mono()
		p.skew = skewed(p.chain.Written, p.archive.opt.Clock.WallMs())
	}
}

// lookAtClock settles what the wall clock is for this pass (T10).
func (p *Partition) lookAtClock() {
	wall, mono := p.archive.opt.Clock.WallMs(), p.archive.opt.Clock.Mono()
	ok := p.clock.look(wall, mono)
	if !ok {
		p.compared = false
	}
	p.nowMs = wall
	if !ok || p.skew {
		p.nowMs = 0
		p.archive.count(func(s *Stats) { s.ClockSkipped++ })
	}
}

// deadline is the time that a step over n bytes may take: a minute, and 1 MB/s.
func (p *Partition) deadline(n int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, time.Minute+time.Duration(n/1_000_000)*time.Second)
}

func (p *Partition) measureLag(segs []Segment, mono time.Duration) {
	bytes, n := lag(segs, p.chain.State.NextOffset())
	l := &Lag{Bytes: bytes, Segments: n, since: mono}
	if old := p.behind.Load(); old != nil && old.Segments > 0 {
		l.since = old.since
	}
	p.behind.Store(l)
}
