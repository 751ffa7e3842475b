package host

import (
	"context"
	"slices"
	"time"

	"varve/broker/commitlog"
	"varve/broker/partition"
)

// pulse is what the ticks remember.
type pulse struct {
	checkpointed, retained, reopened time.Time
	wall                             time.Time // of the last retention pass or the start, without its monotonic part
	mono                             time.Time
}

// clockJumpMax is how far wall and monotonic clock may part between two passes before
// retention by time is not to be trusted (T10).
const clockJumpMax = time.Minute

// reopenEvery is the time between two tries to bring back what is out of service.
const reopenEvery = 5 * time.Second

// Run begins the ticks; Close ends them.
func (h *Host) Run() {
	ctx, cancel := context.WithCancel(context.Background())
	h.end = cancel
	now := time.Now()
	h.beat = pulse{checkpointed: now, retained: now, reopened: now, wall: now.Round(0), mono: now}
	h.wg.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-t.C:
				h.tick(now)
			}
		}
	})
}

// tick looks after all logs.
func (h *Host) tick(now time.Time) {
	for _, d := range h.dirs {
		d.Sweep(now.UnixMilli())
	}
	h.settleEnds()
	if now.Sub(h.beat.checkpointed) >= h.opt.CheckpointEvery {
		h.beat.checkpointed = now
		for _, d := range h.dirs {
			if d.Failed() != nil {
				continue
			}
			if err := d.Checkpoint(); err != nil {
				h.log.Warn("writing checkpoints failed; they are written again", "dir", d.Path(), "err", err)
			}
		}
		h.opt.Checkpointed()
	}
	if now.Sub(h.beat.reopened) >= reopenEvery {
		h.beat.reopened = now
		h.reopen()
	}
	if now.Sub(h.beat.retained) >= h.opt.RetentionEvery {
		h.beat.retained = now
		if h.plausible(now) {
			h.Retain(now)
		}
	}
}

// settleEnds notes that what the logs may have lost has been made good: the controller
// knows it since the registration (A7), and no partition waits any more for the tier to
// tell where it ends (T12). A process that dies before leaves the doubt to the next.
func (h *Host) settleEnds() {
	if !slices.ContainsFunc(h.dirs, (*commitlog.Dir).InDoubt) || len(h.broken()) > 0 ||
		slices.ContainsFunc(h.Partitions(), (*partition.Partition).Shut) {
		return
	}
	for _, d := range h.dirs {
		if err := d.SettleEnds(); err != nil {
			h.log.Warn("it is tried again", "err", err)
		}
	}
}

// plausible tells whether the wall clock has gone as the monotonic one since the last
// pass (T10).
func (h *Host) plausible(now time.Time) bool {
	defer func() { h.beat.wall, h.beat.mono = now.Round(0), now }()
	parted := now.Round(0).Sub(h.beat.wall) - now.Sub(h.beat.mono)
	if parted.Abs() <= clockJumpMax {
		return true
	}
	h.log.Warn("the wall clock jumped: this retention pass is skipped", "by", parted)
	return false
}

// Retain is one retention pass over the partitions that are led here. What a tiered one
// lets go is the archive's to say, which knows what the tier holds; here its active
// segment is rolled when it alone is more than may stay, so that it can be tiered.
func (h *Host) Retain(now time.Time) {
	for _, p := range h.Partitions() {
		if _, leads := p.Epoch(); !leads {
			continue
		}
		v, err := p.Retention(now.UnixMilli())
		switch {
		case err != nil:
			h.log.Warn("deciding on retention failed", "partition", p.Name().String(), "err", err)
		case p.Remote() == nil && (v.Segments > 0 || v.Roll):
			h.retain(p, v, now)
		case p.Remote() != nil && v.Roll:
			if err := p.Log().Roll(now.UnixMilli()); err != nil {
				h.log.Error("rolling a segment for the tier failed; it is tried again", "partition", p.Name().String(), "err", err)
				continue
			}
			p.Remote().Kick()
		}
	}
}

func (h *Host) retain(p *partition.Partition, v commitlog.Verdict, now time.Time) {
	n, bytes, err := p.Log().Apply(v, now.UnixMilli())
	switch {
	case err != nil:
		h.log.Error("retention failed; it is tried again", "partition", p.Name().String(), "err", err)
	case n > 0:
		h.log.Info("retention deleted segments", "partition", p.Name().String(), "segments", n, "bytes", bytes,
			"until", v.Until, "reason", v.Reason)
	}
}
