package cluster

import (
	"slices"

	"varve/broker/metadata"
)

// fault kills a broker, with its machine's power or without, ends its session, or
// starts it again.
func (b *broker) fault() {
	if !b.alive {
		b.alive = true
		b.incarnation++
		b.epoch, b.n, b.img = 0, 0, metadata.Empty()
		b.high = min(b.high, b.end())
		b.forget()
		if b.w.is(ActsOnOwnRegistering) {
			b.n = b.w.log.prefix()
			for n := 1; n <= b.n; n++ {
				b.img = apply(b.img, n, b.w.log.at(n))
			}
			b.adopt()
		}
		b.w.logf("b%d starts again, end %d", b.id, len(b.log))
		return
	}
	if b.w.chance(8) {
		b.flushed = len(b.log)
	}
	switch b.w.rng.IntN(12) {
	case 0:
		b.w.logf("b%d is killed", b.id)
		b.alive, b.epoch = false, 0
		b.forget()
		if b.w.mayLosePower(b) {
			b.losePower()
		}
	case 1:
		if b.w.log.nodes[b.id].czxid != 0 {
			b.w.log.nodes[b.id] = node{}
			b.w.logf("b%d's session ends", b.id)
		}
	}
}

func (b *broker) losePower() {
	b.unclean = true
	keep := min(b.flushed, len(b.log))
	keep += b.w.rng.IntN(len(b.log) - keep + 1)
	if keep < len(b.log) {
		b.w.logf("b%d loses its unsynced tail: end %d", b.id, keep)
		b.log = slices.Clone(b.log[:keep])
	}
}

// mayLosePower: one power loss at a time, and somewhere else a disk with everything. With
// more, records may be missing: the last leader comes back RECOVERING (A7).
func (w *World) mayLosePower(b *broker) bool {
	truth := w.truth()
	for _, x := range w.brokers {
		known, _ := truth.Broker(x.id)
		if x.unclean && (x.epoch == 0 || known.Epoch != x.epoch) {
			return false
		}
	}
	s := state(truth)
	for _, id := range slices.Concat(s.ISR, s.ELR) {
		if id != b.id {
			return true
		}
	}
	return false
}

// prefix is a lagging view of the log: what a restarted broker might find.
func (l *editLog) prefix() int { return min(5, len(l.edits)) }
