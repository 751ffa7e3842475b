package partition

import (
	"errors"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/record"
)

// An Append is one partition's part of a produce request.
type Append struct {
	Records   []byte // stamped in place
	Acks      int16
	Version   int16 // of the request
	Internal  bool  // a coordinator of this broker
	Validator *record.Validator
	Now       time.Time
}

// Appended says where the records are.
type Appended struct {
	Base       kafka.Offset
	Next       kafka.Offset
	AppendTime int64 // ms, of a topic with LogAppendTime and of a duplicate; -1 otherwise
	LogStart   kafka.Offset
	Revealed   bool // acks=all is met already; otherwise Await(Next)
}

// Refusals that every append may meet.
var (
	errBehind       = &kafka.Error{Code: kafka.NotLeaderOrFollower, Message: "the log may end below what the tier holds: it is served once the tier has told"}
	errNotLeader    = &kafka.Error{Code: kafka.NotLeaderOrFollower, Message: "this broker does not lead the partition"}
	errNotEnough    = &kafka.Error{Code: kafka.NotEnoughReplicas, Message: "fewer replicas are in sync than min.insync.replicas asks for"}
	errTierFull     = &kafka.Error{Code: kafka.KafkaStorageError, Message: "the tier is away and tier.outage.policy=block: local data waits for it"}
	errRequiredAcks = &kafka.Error{Code: kafka.InvalidRequiredAcks, Message: "acks must be 0, 1 or -1"}
	errEpochMovedOn = &kafka.Error{Code: kafka.NotLeaderOrFollower, Message: "the leadership ended while the records were written"}
)

// Append checks the records and writes them behind the last ones. The error is a
// *record.Refusal, a *kafka.Error, or the disk's.
func (p *Partition) Append(a Append) (Appended, error) {
	l := p.lead.Load()
	if l == nil {
		return Appended{}, errNotLeader
	}
	if l.shut.Load() {
		return Appended{}, errBehind
	}
	s := p.settings.Load()
	if a.Acks < -1 || a.Acks > 1 {
		return Appended{}, errRequiredAcks
	}
	if a.Acks == -1 && !l.enough(s.MinISR) {
		return Appended{}, errNotEnough
	}
	if t := l.tier.Load(); t != nil && t.Blocked() {
		return Appended{}, errTierFull
	}
	now := a.Now.UnixMilli()
	policy := s.Policy
	policy.Partition, policy.ProduceVersion, policy.FromCoordinator = p.log.Partition(), a.Version, a.Internal
	b, refusal := a.Validator.Validate(a.Records, policy, now)
	if refusal != nil {
		return Appended{}, refusal
	}
	done, err := p.log.AppendFrom(b, commitlog.Origin{Internal: a.Internal}, now)
	if err != nil {
		return Appended{}, storage(err)
	}
	out := Appended{Base: done.Base, Next: done.Next, AppendTime: -1, LogStart: p.log.Start()}
	if s.Policy.LogAppendTime {
		out.AppendTime = now
	}
	if done.Duplicate {
		out.AppendTime = done.Timestamp // Kafka tells it of any topic
		out.Revealed = p.HighWatermark() >= done.Next
		return out, nil
	}
	p.advance(l)
	p.watches.mark(int64(b.Size()))
	if done.Rolled {
		if t := l.tier.Load(); t != nil {
			t.Kick()
		}
	}
	out.Revealed = p.HighWatermark() >= done.Next
	return out, nil
}

// enough tells whether as many replicas are in sync as acks=all wants.
func (l *leadership) enough(minISR int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.leader.MinISRMet(minISR)
}

// advance tells the leader where the log ends now, and lets the high watermark and the
// last stable offset follow. The end is read under the lock: of two appends the later
// may come first.
func (p *Partition) advance(l *leadership) {
	l.mu.Lock()
	if now := p.lead.Load(); now != l { // a term that has ended moves nothing: the present one counts what was appended
		l.mu.Unlock()
		if now != nil {
			p.advance(now)
		}
		return
	}
	high, moved := l.mu.leader.Appended(p.log.End())
	p.follow(l, high, moved)
}

// follow shows the high watermark that the leader has decided on, and answers those who
// waited for it. It is called with the leadership's mu, and gives it back.
func (p *Partition) follow(l *leadership, high kafka.Offset, moved bool) {
	var met []wait
	if moved {
		p.reveal(high)
		met = l.takeMet(high)
	}
	l.mu.Unlock()
	for _, w := range met {
		w.done(kafka.None)
	}
}

// reveal moves the marks that readers see; the leadership's mu is held, so they never
// move back within an epoch.
func (p *Partition) reveal(high kafka.Offset) {
	if high > p.log.HighWatermark() {
		p.log.SetHighWatermark(high)
	}
	if p.stable.Load() != unknown {
		p.settle(high)
	}
}

// settle finds the last stable offset; the leadership's mu is held.
func (p *Partition) settle(high kafka.Offset) {
	stable, err := p.log.FirstUnstable(high)
	if err != nil {
		return // stays where it is: read-committed readers wait for the disk to answer
	}
	p.stable.Store(int64(stable))
}

// takeMet removes the waits that high has reached; mu is held.
func (l *leadership) takeMet(high kafka.Offset) (met []wait) {
	kept := l.mu.waits[:0]
	for _, w := range l.mu.waits {
		if w.next <= high {
			met = append(met, w)
		} else {
			kept = append(kept, w)
		}
	}
	clear(l.mu.waits[len(kept):])
	l.mu.waits = kept
	return met
}

// Await calls done once, from any goroutine, when every replica in sync has all below
// next, or when this term ends (NOT_LEADER_OR_FOLLOWER).
func (p *Partition) Await(next kafka.Offset, done func(kafka.Code)) {
	l := p.lead.Load()
	if l == nil {
		done(kafka.NotLeaderOrFollower)
		return
	}
	l.mu.Lock()
	if p.log.HighWatermark() >= next {
		l.mu.Unlock()
		done(kafka.None)
		return
	}
	l.mu.waits = append(l.mu.waits, wait{next: next, done: done})
	l.mu.Unlock()
	if p.lead.Load() != l { // Resign may have passed before the wait was there
		l.mu.Lock()
		met := l.takeMet(1<<63 - 1)
		l.mu.Unlock()
		for _, w := range met {
			w.done(kafka.NotLeaderOrFollower)
		}
	}
}

// storage turns what a log cannot do into the wire's words.
func storage(err error) error {
	var refused *kafka.Error
	if errors.As(err, &refused) {
		return err
	}
	if errors.Is(err, commitlog.ErrClosed) {
		return errEpochMovedOn
	}
	return &kafka.Error{Code: kafka.KafkaStorageError, Message: err.Error()}
}
