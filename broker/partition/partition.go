// Package partition drives one partition on this broker: its log, its part in
// replication, its tier. It decides where a read goes, and what becomes visible when.
//
//	Append ─► validate ─► log ─► replica: the high watermark ─► watchers, and who waits for acks=all
//	Read   ─► log (hot) or archive (cold), below the high watermark or the last stable offset
//
// A partition at rest is its log and a few numbers. What leading takes is there while
// this broker leads.
package partition

import (
	"sync"
	"sync/atomic"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/replica"
	"varve/tier/archive"
)

// Settings are what a topic's configs mean to its partitions. They do not change;
// a changed config is another Settings.
type Settings struct {
	Policy record.Policy // Partition and ProduceVersion are set for each append
	MinISR int           // min.insync.replicas
	Log    commitlog.Config
	Tiered bool           // remote.storage.enable, where there is a tier
	Tier   archive.Config // how the tier keeps it
}

// A Partition is one partition on this broker. Its methods are safe for concurrent use.
type Partition struct {
	log      *commitlog.Log
	settings atomic.Pointer[Settings]
	lead     atomic.Pointer[leadership] // nil: this broker does not lead
	stable   atomic.Int64               // last stable offset, or unknown
	watches  watches
	turn     sync.Mutex // one change of the term at a time; held over the log's own work, never over the tier's
}

// leadership is one term of this broker as the partition's leader.
type leadership struct {
	epoch  kafka.LeaderEpoch
	term   Term
	shut   atomic.Bool                       // nothing is served: the tier may hold what the log lacks (T12)
	aged   atomic.Bool                       // the archive knows how old the active segment is
	tier   atomic.Pointer[archive.Partition] // nil: not tiered
	tiered atomic.Int64                      // where the tier's gap-free run ends

	mu struct {
		sync.Mutex
		leader *replica.Leader
		waits  []wait // in no order: few
	}
}

// A wait is an append that is answered when every replica in sync has it.
type wait struct {
	next kafka.Offset
	done func(kafka.Code)
}

// New returns the partition of an open log, which nobody leads yet.
func New(log *commitlog.Log, s *Settings) *Partition {
	p := &Partition{log: log}
	p.settings.Store(s)
	p.stable.Store(unknown)
	return p
}

// Name is the partition's topic and number.
func (p *Partition) Name() kafka.TopicPartition { return p.log.Partition() }

// TopicID is the id of its topic.
func (p *Partition) TopicID() kafka.TopicID { return p.log.TopicID() }

// Log is its log, for checkpoints, retention and tools.
func (p *Partition) Log() *commitlog.Log { return p.log }

// Settings are the ones in force.
func (p *Partition) Settings() *Settings { return p.settings.Load() }

// Set replaces the settings.
func (p *Partition) Set(s *Settings) {
	p.settings.Store(s)
	p.log.SetConfig(&s.Log)
	l := p.lead.Load()
	if l == nil {
		return
	}
	l.mu.Lock()
	e := l.mu.leader.SetMinISR(s.MinISR)
	p.follow(l, e.High, e.Moved)
	if e.Moved {
		p.watches.mark(-1)
	}
	if t := l.tier.Load(); t != nil {
		t.Kick()
	}
}

// A Term is what the image says when this broker becomes leader.
type Term struct {
	Epoch          kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	Broker         kafka.BrokerID
	Replicas       []kafka.BrokerID
	ISR            []kafka.BrokerID
}

// Lead begins a term. The epoch's start is in the log before the first append and
// before anybody is told of it (protocols.md §3-5). tier is the archive to use where
// the topic is tiered; nil otherwise.
func (p *Partition) Lead(now time.Time, t Term, tier *archive.Archive) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	if err := p.log.StartEpoch(t.Epoch); err != nil {
		return err
	}
	l := &leadership{epoch: t.Epoch, term: t}
	l.shut.Store(tier != nil && p.Settings().Tiered && p.mayLack(t.Epoch))
	l.mu.leader = replica.NewLeader(now, p.term(t))
	p.stable.Store(unknown)
	p.lead.Store(l)
	p.advance(l)
	if tier != nil && p.Settings().Tiered {
		l.tier.Store(tier.Lead(p.Name(), p.TopicID(), t.Epoch, tierLog{p, l}))
	}
	return nil
}

// term is t with what the log says.
func (p *Partition) term(t Term) replica.Term {
	r := replica.Term{Leader: t.Broker, Epoch: t.Epoch, PartitionEpoch: t.PartitionEpoch, ISR: t.ISR,
		End: p.log.End(), High: min(p.log.HighWatermark(), p.log.End()),
		MinISR: p.Settings().MinISR}
	for _, id := range t.Replicas {
		r.Replicas = append(r.Replicas, replica.Replica{ID: id, Live: true})
	}
	return r
}

// Tier begins or ends the tier's part of a term that goes on: the topic's config has
// changed.
func (p *Partition) Tier(tier *archive.Archive) {
	l := p.lead.Load()
	if l == nil || tier == nil {
		return
	}
	switch t := l.tier.Load(); {
	case p.Settings().Tiered && t == nil:
		l.tier.Store(tier.Lead(p.Name(), p.TopicID(), l.epoch, tierLog{p, l}))
	case !p.Settings().Tiered && t != nil:
		p.leaveTier(l, t)
	}
}

// Resign ends the term, if there is one: appends that wait are answered
// NOT_LEADER_OR_FOLLOWER, and readers look again.
func (p *Partition) Resign() {
	l := p.lead.Swap(nil)
	if l == nil {
		return
	}
	if t := l.tier.Load(); t != nil {
		t.Resign()
	}
	l.mu.Lock()
	waits := l.mu.waits
	l.mu.waits = nil
	l.mu.Unlock()
	for _, w := range waits {
		w.done(kafka.NotLeaderOrFollower)
	}
	p.watches.mark(-1)
}

// Epoch is the leader epoch of this broker's term; ok is false where it does not lead.
func (p *Partition) Epoch() (epoch kafka.LeaderEpoch, ok bool) {
	if l := p.lead.Load(); l != nil {
		return l.epoch, true
	}
	return kafka.NoEpoch, false
}

// Shut tells whether nothing is served until the tier has told where it ends (T12).
func (p *Partition) Shut() bool {
	l := p.lead.Load()
	return l != nil && l.shut.Load()
}

// HighWatermark is the offset below which consumers may read.
func (p *Partition) HighWatermark() kafka.Offset { return p.log.HighWatermark() }

// unknown is a last stable offset that nobody has asked for since the start: it takes
// the producers' state to tell, which a partition at rest does not hold.
const unknown = -1

// LastStable is the offset below which read-committed consumers may read.
func (p *Partition) LastStable() kafka.Offset {
	if o := p.stable.Load(); o != unknown {
		return kafka.Offset(o)
	}
	l := p.lead.Load()
	if l == nil {
		return p.log.HighWatermark()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.settle(p.log.HighWatermark())
	return kafka.Offset(max(p.stable.Load(), int64(p.log.Start())))
}

// Tiered is where the tier's gap-free run ends: the first offset that only the local
// log holds. 0 without a tier.
func (p *Partition) Tiered() kafka.Offset {
	if l := p.lead.Load(); l != nil && l.tier.Load() != nil {
		return kafka.Offset(l.tiered.Load())
	}
	return 0
}

// Remote is the tier's part of the term; nil without.
func (p *Partition) Remote() *archive.Partition {
	if l := p.lead.Load(); l != nil {
		return l.tier.Load()
	}
	return nil
}

// Watch registers a watcher's bit i: marked when consumers may see more, when the
// leadership ends, when the tier has what was asked of it.
func (p *Partition) Watch(w *Watcher, i int) { p.watches.add(w, i) }

// Unwatch takes it back.
func (p *Partition) Unwatch(w *Watcher, i int) { p.watches.remove(w, i) }
