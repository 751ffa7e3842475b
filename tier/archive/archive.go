// Package archive moves closed segments to the tier, keeps the tier within its
// retention, and reads it back.
//
//	Lead ──► load the chain ──► [ roll ─ copy ─ expire ─ remove ─ sweep ─ count ─ drop ]* ──► Resign
//
// A partition that this broker leads is looked at when something is due: after a roll
// (Kick), when a grace has passed, at latest every Interval. One scheduler holds all of
// them in a heap; few workers do the looks ("passes") and few others the copies, which
// take long. A partition is in one worker at a time; at rest it is a struct.
//
// What a copy does, and what is true after each step:
//
//	export        local files are held, the range is [end of the run, end of a closed segment)
//	write, close  _inprogress/<base>-<epoch>-<broker>-<uuid>.seg has all its bytes
//	stat, read    the length and the footer are what was written
//	rename        segments/<name> is complete; nobody knows it
//	commit        the chain names it: readable; from here on the tier covers the range
//	count         it has its replicas and its grace has passed (T11)
//	drop          the local copy may go
//
// A step that fails or whose outcome is unknown leaves a file under a name that will
// never be used again; the next try takes a new name, and the sweep removes what the
// chain does not name (T1, T4). Local data goes only after the last step.
//
// A new leader writes nothing until it has something to write; the first version it
// commits is its fence (T13). Being fenced ends the tier's work of that leadership.
//
// Reading is by Partition.Read: whole batches of one container, as a run of a file of
// the chunk cache, or "pending" and a wake.
package archive

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"varve/broker/kafka"
	"varve/tier"
	"varve/tier/cache"
	"varve/tier/chain"
	"varve/tier/manifest"
)

// OutagePolicy is what happens with local data that cannot reach the tier.
type OutagePolicy int

const (
	// Retain keeps it, past its total retention too, until the tier is back.
	Retain OutagePolicy = iota
	// Expire lets it go when the total retention says so.
	Expire
	// Block keeps it and refuses produce requests above BlockBytes of it (Blocked).
	Block
)

// Options configure an Archive. Store and Cache must be given; the zero value of the
// rest is the default.
type Options struct {
	Store tier.Store
	Cache *cache.Cache
	Log   *slog.Logger // nil = slog.Default()

	Broker      kafka.BrokerID
	BrokerEpoch kafka.BrokerEpoch
	Incarnation string // uuid of the process; "" = a fresh one

	Interval       time.Duration // longest time between looks at a partition; 0 = 30 s
	Copies         int           // at a time; 0 = cores - 1, at least 1
	BytesPerSecond int64         // of all copies; 0 = no limit
	// Pressure is how much produce suffers, 0 (not) to 1: copies rest for that share
	// of their time. nil = 0.
	Pressure func() float64
	Retry    Retry         // of steps that failed
	Grace    time.Duration // tier.local.grace.ms; 0 = the store's, < 0 = none
	Outage   OutagePolicy
	// BlockBytes is the lag in bytes of one partition above which Block blocks; 0 = 10 GiB.
	BlockBytes int64
	TailBytes  int64 // memory for open containers' indexes; 0 = 64 MiB
	Clock      Clock // nil = the machine's
}

// Retry says when a step that failed is tried again: after First, then twice as long
// each time, at most Longest, give or take the share Jitter.
type Retry struct {
	First, Longest time.Duration // 0 = 500 ms, 60 s
	Jitter         float64       // 0 to 0.5; 0 = 0.2, < 0 = none
}

// A Clock tells wall time in milliseconds, for retention and people, and monotonic
// time, for everything else (§3-18).
type Clock interface {
	WallMs() int64
	Mono() time.Duration
}

type systemClock struct{ start time.Time }

func (c systemClock) WallMs() int64       { return time.Now().UnixMilli() }
func (c systemClock) Mono() time.Duration { return time.Since(c.start) }

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Incarnation == "" {
		o.Incarnation = chain.NewID()
	}
	if o.Interval == 0 {
		o.Interval = 30 * time.Second
	}
	if o.Copies == 0 {
		o.Copies = max(1, runtime.NumCPU()-1)
	}
	if o.Pressure == nil {
		o.Pressure = func() float64 { return 0 }
	}
	o.Retry = o.Retry.withDefaults()
	switch {
	case o.Grace == 0:
		o.Grace = o.Store.Grace()
	case o.Grace < 0:
		o.Grace = 0
	}
	if o.BlockBytes == 0 {
		o.BlockBytes = 10 << 30
	}
	if o.TailBytes == 0 {
		o.TailBytes = 64 << 20
	}
	if o.Clock == nil {
		o.Clock = systemClock{time.Now()}
	}
	return o
}

// An Archive is this broker's side of the tier. Its methods are safe for concurrent use.
type Archive struct {
	opt    Options
	pace   pacer
	reads  *reader
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup
	poke   chan struct{} // the heap's head may have changed
	passes chan task
	copies *queue

	mu struct {
		sync.Mutex
		heap  schedule
		parts map[*Partition]struct{}
		stats Stats
	}
}

// New starts the archive's workers; Close ends them.
func New(opt Options) *Archive {
	a := &Archive{opt: opt.withDefaults(), poke: make(chan struct{}, 1)}
	a.pace = newPacer(a.opt.BytesPerSecond, a.opt.Pressure)
	a.reads = newReader(a.opt)
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.passes, a.copies = make(chan task), newQueue(a.opt.Copies)
	a.mu.parts = map[*Partition]struct{}{}
	a.wg.Add(1)
	go a.dispatch()
	a.workers(passWorkers, a.passes)
	for range a.opt.Copies {
		a.wg.Add(1)
		go a.work(a.copies)
	}
	return a
}

// Close ends all work; copies under way are given up and swept later.
func (a *Archive) Close() {
	a.stop()
	a.wg.Wait()
	a.reads.close()
}

// Lead begins this broker's leadership of a partition whose topic is tiered. The chain
// is loaded at once; until then reads answer ErrNotReady.
func (a *Archive) Lead(tp kafka.TopicPartition, id kafka.TopicID, epoch kafka.LeaderEpoch, log Log) *Partition {
	p := &Partition{archive: a, tp: tp, log: log}
	p.ctx, p.cancel = context.WithCancel(a.ctx)
	p.chain = chain.Chain{
		Folder: chain.At(a.opt.Store, tp, id),
		Writer: manifest.Writer{LeaderEpoch: epoch, BrokerEpoch: a.opt.BrokerEpoch, Broker: a.opt.Broker, Incarnation: a.opt.Incarnation},
	}
	p.abandoned = map[string]bool{}
	p.pins = map[manifest.Pin]time.Duration{}
	a.mu.Lock()
	a.mu.parts[p] = struct{}{}
	a.mu.Unlock()
	a.schedule(&p.entry, p, 0)
	return p
}

// Stats are the archive's numbers, over all partitions.
type Stats struct {
	Copied         int64 // bytes of containers committed
	Containers     int64 // committed
	Errors         int64 // steps that failed
	LastError      string
	Fenced         int64 // leaderships that found another writer
	Removed        int64 // containers deleted by retention
	Swept          int64 // leftovers removed
	Dropped        int64 // bytes of local segments let go
	ClockSkipped   int64 // retention passes skipped because the clock is not plausible
	LagBytes       int64 // closed and not yet in the tier
	LagSegments    int64
	OldestLag      time.Duration // how long the oldest of them has waited
	Cache          cache.Stats
	OpenContainers int
	ReadErrors     int64 // reads of the store for consumers that failed
}

// Stats is a snapshot.
func (a *Archive) Stats() Stats {
	a.mu.Lock()
	s := a.mu.stats
	parts := make([]*Partition, 0, len(a.mu.parts))
	for p := range a.mu.parts {
		parts = append(parts, p)
	}
	a.mu.Unlock()
	mono := a.opt.Clock.Mono()
	for _, p := range parts {
		l := p.Lag()
		s.LagBytes += l.Bytes
		s.LagSegments += int64(l.Segments)
		if l.Segments > 0 {
			s.OldestLag = max(s.OldestLag, mono-l.since)
		}
	}
	s.Cache = a.opt.Cache.Stats()
	s.OpenContainers, s.ReadErrors = a.reads.stats()
	s.ReadErrors += s.Cache.Failures
	return s
}

func (a *Archive) count(f func(*Stats)) {
	a.mu.Lock()
	f(&a.mu.stats)
	a.mu.Unlock()
}
