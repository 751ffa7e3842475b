package partition

import (
	"context"
	"errors"

	"varve/broker/kafka"
	"varve/tier/archive"
)

// The timestamps that stand for places in a log (KIP-79, 405, 734, 1005, 1023).
const (
	Latest          int64 = -1
	Earliest        int64 = -2
	MaxTimestamp    int64 = -3
	EarliestLocal   int64 = -4
	LatestTiered    int64 = -5
	EarliestPending int64 = -6
)

// A Place answers ListOffsets.
type Place struct {
	Offset    kafka.Offset
	Timestamp int64
	Epoch     kafka.LeaderEpoch
}

var nowhere = Place{kafka.NoOffset, -1, kafka.NoEpoch}

// errOffsetNotAvailable: the new leader's high watermark has not reached its term.
var errOffsetNotAvailable = &kafka.Error{Code: kafka.OffsetNotAvailable}

// Locate finds the offset for a timestamp or a place. It may wait for the tier, as
// long as ctx lets it.
func (p *Partition) Locate(ctx context.Context, ts int64, current kafka.LeaderEpoch, committed bool) (Place, error) {
	l := p.lead.Load()
	if l == nil {
		return nowhere, errNotLeader
	}
	if err := l.checkEpoch(current); err != nil {
		return nowhere, err
	}
	settled := l.settled() // before the high watermark is read: that only rises
	high := p.log.HighWatermark()
	bound := high
	if committed {
		bound = min(p.LastStable(), high)
	}
	switch ts {
	case Latest:
		if !settled {
			return nowhere, errOffsetNotAvailable
		}
		return Place{bound, -1, l.epoch}, nil
	case Earliest:
		return p.place(p.log.Start())
	case EarliestLocal:
		v := p.log.View()
		return p.place(max(v.LogStart, v.LocalStart))
	case LatestTiered:
		if n := kafka.Offset(l.tiered.Load()); n > 0 && l.tier.Load() != nil {
			return p.place(n - 1)
		}
		return nowhere, nil
	case EarliestPending:
		if l.tier.Load() == nil {
			return nowhere, nil
		}
		return p.place(max(kafka.Offset(l.tiered.Load()), p.log.Start()))
	case MaxTimestamp:
		return p.newest(ctx, l, bound)
	}
	found, err := p.byTime(ctx, l, ts, bound)
	if err == nil && found == nowhere && !settled {
		return nowhere, errOffsetNotAvailable // it may lie above the high watermark
	}
	return found, err
}

// settled tells whether the high watermark has reached the term's start: LATEST waits
// for it (KIP-207).
func (l *leadership) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.leader.Settled()
}

// place is an offset with the epoch of its record.
func (p *Partition) place(o kafka.Offset) (Place, error) {
	epochs, err := p.log.Epochs()
	if err != nil {
		return nowhere, storage(err)
	}
	return Place{o, -1, epochs.For(o)}, nil
}

// byTime asks the tier for what is not local, then the local log.
func (p *Partition) byTime(ctx context.Context, l *leadership, ts int64, bound kafka.Offset) (Place, error) {
	if v := p.log.View(); v.LogStart < v.LocalStart {
		f, ok, err := p.tierTime(ctx, l, func(t *archive.Partition) (archive.Found, bool, error) {
			return t.OffsetForTime(ctx, ts, v.LogStart)
		})
		if err != nil {
			return nowhere, err
		}
		if ok && f.Offset < min(v.LocalStart, bound) {
			return Place{f.Offset, f.Timestamp, f.Epoch}, nil
		}
	}
	hit, found, err := p.log.OffsetForTime(ts, bound)
	switch {
	case err != nil:
		return nowhere, storage(err)
	case found:
		return Place{hit.Offset, hit.Timestamp, hit.Epoch}, nil
	}
	return nowhere, nil
}

// newest is the first record with the highest timestamp, in both tiers (KAFKA-17552).
func (p *Partition) newest(ctx context.Context, l *leadership, bound kafka.Offset) (Place, error) {
	best := nowhere
	if v := p.log.View(); v.LogStart < v.LocalStart {
		f, ok, err := p.tierTime(ctx, l, func(t *archive.Partition) (archive.Found, bool, error) {
			return t.MaxTimestamp(ctx)
		})
		if err != nil {
			return nowhere, err
		}
		if ok && f.Offset < bound {
			best = Place{f.Offset, f.Timestamp, f.Epoch}
		}
	}
	hit, found, err := p.log.MaxTimestamp(bound)
	if err != nil {
		return nowhere, storage(err)
	}
	if found && hit.Timestamp > best.Timestamp {
		best = Place{hit.Offset, hit.Timestamp, hit.Epoch}
	}
	return best, nil
}

func (p *Partition) tierTime(_ context.Context, l *leadership, ask func(*archive.Partition) (archive.Found, bool, error)) (archive.Found, bool, error) {
	t := l.tier.Load()
	if t == nil {
		return archive.Found{}, false, errTierNotReady
	}
	f, ok, err := ask(t)
	switch {
	case errors.Is(err, archive.ErrNotReady):
		return f, false, errTierNotReady
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return f, false, &kafka.Error{Code: kafka.RequestTimedOut, Message: "the tier did not answer in time"}
	case err != nil:
		return f, false, &kafka.Error{Code: kafka.KafkaStorageError, Message: err.Error()}
	}
	return f, ok, nil
}
