package cluster

import (
	"slices"

	"varve/broker/kafka"
	"varve/broker/replica"
	"varve/ha/controller"
)

type messageKind int

const (
	fetch messageKind = iota
	response
	ask
	answer
)

// A message is anything on the wire between brokers and controllers.
type message struct {
	kind        messageKind
	from, to    kafka.BrokerID
	incarnation int
	brokerEpoch kafka.BrokerEpoch
	leaderEpoch kafka.LeaderEpoch

	request replica.Request  // fetch, and what a response answers
	reply   replica.Response // response
	records []record

	wish    uint64 // ask, answer
	ask     controller.AlterPartition
	altered controller.PartitionAltered
}

func (w *World) send(m message) {
	if len(w.net) < 40 {
		w.net = append(w.net, m)
	}
}

// deliver takes any message off the wire: late, twice, or not at all.
func (w *World) deliver() {
	if len(w.net) == 0 {
		return
	}
	i := w.rng.IntN(len(w.net))
	m := w.net[i]
	if !w.chance(w.repeatOf) { // else it comes again
		w.net = slices.Delete(w.net, i, i+1)
	}
	if w.chance(w.lossOf) {
		return
	}
	if m.kind == ask {
		w.controllers[w.rng.IntN(controllers)].onAsk(m)
		return
	}
	b := w.brokers[m.to]
	if !b.alive {
		return
	}
	switch m.kind {
	case fetch:
		b.onFetch(m)
	case response:
		b.onResponse(m)
	case answer:
		b.onAnswer(m)
	}
}

// fetch asks the leader for records; a request that seems lost is given up.
func (b *broker) fetch() {
	if !b.alive || b.follower == nil {
		return
	}
	r, ok := b.follower.Fetch()
	if !ok && !b.follower.Stopped() && b.w.chance(2) {
		b.follower.Lost(b.seq)
		r, ok = b.follower.Fetch()
	}
	if !ok {
		return
	}
	b.seq = r.Seq
	b.w.send(message{
		kind: fetch, from: b.id, to: b.leaderID, incarnation: b.incarnation, brokerEpoch: b.epoch, leaderEpoch: r.Epoch, request: r,
	})
}

// onFetch serves a follower: refuse, say where the logs part, or send.
func (b *broker) onFetch(m message) {
	if b.leader == nil {
		return
	}
	f := replica.Fetched{From: m.from, BrokerEpoch: m.brokerEpoch, LeaderEpoch: m.leaderEpoch, At: m.request.At}
	if b.w.is(PositionHasItsEpoch) { // takes any process of that broker for the present one
		if x, ok := b.img.Broker(m.from); ok {
			f.BrokerEpoch = x.Epoch
		}
	}
	if b.leader.Check(f) != kafka.None {
		return
	}
	out := message{
		kind: response, from: b.id, to: m.from, incarnation: m.incarnation, leaderEpoch: b.leaderEpoch, request: m.request,
		reply: replica.Response{Seq: m.request.Seq, High: b.leader.High(), First: -1, SegmentBase: -1, Diverging: kafka.EpochStart{Epoch: -1}},
	}
	if at, end := b.endFor(m.request.LastEpoch); m.request.At > 0 && (at != m.request.LastEpoch || end < m.request.At) {
		out.reply.Diverging = kafka.EpochStart{Epoch: at, Start: end}
		if at < 0 {
			out.reply.Diverging = kafka.EpochStart{Epoch: 0, Start: 0}
		}
		b.w.send(out)
		return
	}
	b.effects(b.leader.Fetched(b.w.now, f))
	out.reply.High = b.leader.High()
	if to := min(len(b.log), int(m.request.At)+1+b.w.rng.IntN(2)); to > int(m.request.At) {
		out.records = slices.Clone(b.log[m.request.At:to])
		out.reply.First = m.request.At
		out.reply.MaxEpoch = out.records[len(out.records)-1].epoch
	}
	b.w.send(out)
}

// onResponse does what the follower says.
func (b *broker) onResponse(m message) {
	if b.follower == nil || b.incarnation != m.incarnation || b.leaderEpoch != m.leaderEpoch {
		return
	}
	r := m.reply
	if b.w.is(OnlyTheLatestFetch) && m.request.At == b.end() { // any fetch's answer will do
		if next, ok := b.follower.Fetch(); ok {
			b.seq = next.Seq
		}
		r.Seq = b.seq
	}
	v := b.follower.Received(r, b.endFor)
	switch v.Do {
	case replica.Append:
		b.log = append(b.log, m.records...)
		b.high = b.follower.Appended(b.end(), b.lastEpoch(), r.High)
	case replica.Truncate:
		b.w.logf("b%d truncates %d to %d (e%d)", b.id, b.end(), v.To, b.leaderEpoch)
		b.log = slices.Clone(b.log[:v.To])
		b.flushed = min(b.flushed, len(b.log))
		b.high = min(b.high, v.To)
		b.follower.Truncated(v.To, b.lastEpoch())
	case replica.Idle:
		b.high = v.High
	case replica.Stop:
		b.w.fail(NothingRevealedIsLost{}, "b%d: %v", b.id, v.Why)
	}
}
