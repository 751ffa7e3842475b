package partition

import (
	"fmt"
	"time"

	"varve/broker/kafka"
	"varve/broker/replica"
	"varve/tier/archive"
)

// mayLack tells whether the log may end below what the tier holds: it has no records
// though it is not the topic's first term, or its end may have been lost. Then it is
// shut until the archive has looked (T12).
func (p *Partition) mayLack(epoch kafka.LeaderEpoch) bool {
	return epoch > 0 && (p.log.View().Size() == 0 || p.log.Dir().MayHaveLostEnd())
}

// begin makes the log begin where the tier's run ends (T12). What it holds is in the
// tier too, or has left its history: then it is set aside.
func (p *Partition) begin(l *leadership, s archive.Seed) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	switch {
	case p.lead.Load() != l:
		return errEpochMovedOn
	case !l.shut.Load():
		return fmt.Errorf("the log of %v ends at %d, below the tier's %d, and has been served: records of it were taken away by hand, or the tier is another log's; nothing is copied",
			p.Name(), p.log.End(), s.Next)
	}
	if err := p.clear(s); err != nil {
		return err
	}
	if err := p.log.Adopt(s.Epochs, s.Producers); err != nil {
		return err
	}
	if err := p.log.StartEpoch(l.epoch); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.leader = replica.NewLeader(time.Now(), p.term(l.term))
	p.stable.Store(unknown)
	return nil
}

// clear empties the log.
func (p *Partition) clear(s archive.Seed) error {
	epochs, err := p.log.Epochs()
	if err != nil {
		return err
	}
	v := p.log.View()
	if v.Size() == 0 || sameHistory(epochs.List(), s.Epochs, v.LocalStart, p.log.End()) {
		return p.log.TruncateFullyAndStartAt(s.Next, true)
	}
	_, err = p.log.LeaveBehind(s.Next)
	return err
}

// sameHistory tells whether two histories of epochs give every offset of [from, to) the
// same epoch.
func sameHistory(a, b []kafka.EpochStart, from, to kafka.Offset) bool {
	same := func(o kafka.Offset) bool { return o < from || o >= to || epochAt(a, o) == epochAt(b, o) }
	for _, list := range [][]kafka.EpochStart{a, b} {
		for _, e := range list {
			if !same(e.Start) {
				return false
			}
		}
	}
	return same(from)
}

func epochAt(list []kafka.EpochStart, o kafka.Offset) kafka.LeaderEpoch {
	at := kafka.NoEpoch
	for _, e := range list {
		if e.Start <= o {
			at = e.Epoch
		}
	}
	return at
}
