package cluster

import (
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/replica"
	"varve/ha/controller"
)

// A broker drives a replica.Leader or a replica.Follower over a log in memory.
type broker struct {
	w           *World
	id          kafka.BrokerID
	alive       bool
	incarnation int
	epoch       kafka.BrokerEpoch // of its node, 0 before it has one
	unclean     bool              // its machine lost power since its last registration

	img *metadata.Image
	n   int // edits folded into img

	log     []record
	flushed int
	high    kafka.Offset // as checkpointed

	leaderEpoch    kafka.LeaderEpoch // of the term that it acts in
	partitionEpoch kafka.PartitionEpoch
	leaderID       kafka.BrokerID
	leader         *replica.Leader
	follower       *replica.Follower
	seq            uint64
}

func newBroker(w *World, id kafka.BrokerID) *broker {
	b := &broker{w: w, id: id, alive: true, incarnation: 1, img: metadata.Empty()}
	b.forget()
	return b
}

// forget is what a restart leaves of the roles.
func (b *broker) forget() {
	b.leader, b.follower = nil, nil
	b.leaderEpoch, b.partitionEpoch, b.leaderID = -1, -1, kafka.NoBroker
}

// register makes the broker's node new.
func (b *broker) register() {
	b.w.log.czxid++
	b.epoch = b.w.log.czxid
	b.w.log.nodes[b.id] = node{b.epoch, [16]byte{byte(b.incarnation), byte(b.incarnation >> 8)}, b.unclean}
	b.w.logf("b%d registers at %d", b.id, b.epoch)
}

// maybeRegister registers a broker that has no node, or reads that it was fenced (A13).
func (b *broker) maybeRegister() bool {
	if !b.alive {
		return false
	}
	known, ok := b.img.Broker(b.id)
	if b.epoch == 0 || b.w.log.nodes[b.id].czxid != b.epoch || ok && known.Epoch == b.epoch && known.Fenced() {
		b.register()
		return true
	}
	return false
}

// tail folds some edits in and acts on each.
func (b *broker) tail() {
	for range 1 + b.w.rng.IntN(6) {
		e := b.w.log.at(b.n + 1)
		if !b.alive || e == nil {
			return
		}
		b.n++
		b.img = apply(b.img, b.n, e)
		b.adopt()
	}
}

// adopt acts on the image, but only on one that holds the own registration (A5).
func (b *broker) adopt() {
	known, ok := b.img.Broker(b.id)
	mine := ok && b.epoch != 0 && known.Epoch == b.epoch
	if !mine && !b.w.is(ActsOnOwnRegistering) {
		return
	}
	if mine {
		b.unclean = false
	}
	s := state(b.img)
	switch {
	case s.Replicas == nil:
	case s.LeaderEpoch > b.leaderEpoch:
		b.begin(s)
	case s.LeaderEpoch == b.leaderEpoch && s.PartitionEpoch > b.partitionEpoch:
		b.change(s)
	}
	if b.leader != nil {
		for _, r := range b.replicas() {
			b.leader.Registered(r)
		}
	}
}

func (b *broker) replicas() (out []replica.Replica) {
	for _, x := range b.img.Brokers() {
		out = append(out, replica.Replica{ID: x.ID, Epoch: x.Epoch, Live: !x.Fenced()})
	}
	return out
}

// begin begins a term.
func (b *broker) begin(s metadata.PartitionState) {
	b.leader, b.follower = nil, nil
	b.leaderEpoch, b.partitionEpoch, b.leaderID = s.LeaderEpoch, s.PartitionEpoch, s.Leader
	switch s.Leader {
	case b.id:
		least := minISR
		if b.w.is(ELRKeepsTheLeavers) {
			least = 1
		}
		b.leader = replica.NewLeader(b.w.now, replica.Term{
			Leader: b.id, Epoch: s.LeaderEpoch, PartitionEpoch: s.PartitionEpoch, Replicas: b.replicas(), ISR: s.ISR,
			End: b.end(), High: b.high, MaxLag: maxLag, MinISR: least, Recovering: s.Recovering,
		})
		b.w.logf("b%d leads e%d isr %v end %d high %d", b.id, s.LeaderEpoch, s.ISR, b.end(), b.high)
		if s.Recovering {
			b.effects(b.leader.Recovered())
		}
		high, moved := b.leader.Appended(b.end())
		b.effects(replica.Effects{High: high, Moved: moved})
	case kafka.NoBroker:
	default:
		b.follower = replica.NewFollower(replica.Following{
			Leader: s.Leader, Epoch: s.LeaderEpoch, End: b.end(), LastEpoch: b.lastEpoch(), High: b.high, Seq: b.seq, Unclean: s.Recovering,
		})
	}
}

// change takes a new state within the term.
func (b *broker) change(s metadata.PartitionState) {
	b.partitionEpoch = s.PartitionEpoch
	if b.leader != nil {
		b.effects(b.leader.Committed(replica.Change{
			LeaderEpoch: s.LeaderEpoch, PartitionEpoch: s.PartitionEpoch, ISR: s.ISR, Recovering: s.Recovering,
		}))
	}
}

// effects does what the leader says.
func (b *broker) effects(e replica.Effects) {
	if e.Moved {
		b.reveal(e.High)
	}
	if e.Ask {
		b.ask()
	}
}

// reveal lets consumers read and producers go on.
func (b *broker) reveal(high kafka.Offset) {
	b.high = high
	b.w.logf("b%d (e%d) reveals to %d", b.id, b.leaderEpoch, high)
	b.w.reveal(b, b.log[:high])
}

// ask sends the wish to some controller.
func (b *broker) ask() {
	wish, ok := b.leader.Wish()
	if !ok {
		return
	}
	want := controller.WantedISR{
		Topic: kafka.TopicID{15: 1}, LeaderEpoch: wish.LeaderEpoch, PartitionEpoch: wish.PartitionEpoch, Recovering: wish.Recovering,
	}
	for _, m := range wish.ISR {
		if b.w.is(PositionHasItsEpoch) { // the image's epoch instead of the position's
			if x, ok := b.img.Broker(m.ID); ok {
				m.Epoch = x.Epoch
			}
		}
		want.Members = append(want.Members, controller.ISRMember{Broker: m.ID, Epoch: m.Epoch})
	}
	b.w.send(message{
		kind: ask, from: b.id, brokerEpoch: b.epoch, leaderEpoch: b.leaderEpoch, wish: wish.N,
		ask: controller.AlterPartition{Broker: b.id, BrokerEpoch: b.epoch, Partitions: []controller.WantedISR{want}},
	})
	if b.w.is(WaitsForBothISRs) {
		b.actOn(wish)
	}
}

// actOn treats a proposal as if it were committed: what A8 forbids.
func (b *broker) actOn(wish replica.Wish) {
	var isr []kafka.BrokerID
	for _, m := range wish.ISR {
		isr = append(isr, m.ID)
	}
	b.effects(b.leader.Committed(replica.Change{LeaderEpoch: b.leaderEpoch, PartitionEpoch: wish.PartitionEpoch + 1, ISR: isr}))
}

// onAnswer takes the controller's answer; it may be acted on before the tail shows it.
func (b *broker) onAnswer(m message) {
	if b.leader == nil || b.epoch != m.brokerEpoch || b.leaderEpoch != m.leaderEpoch {
		return
	}
	a := m.altered
	switch {
	case a.Code != kafka.None:
		b.effects(b.leader.Refused(m.wish, a.Code))
	case a.State.LeaderEpoch == b.leaderEpoch && a.State.PartitionEpoch > b.partitionEpoch:
		b.w.logf("b%d acts on the answer: isr %v", b.id, a.State.ISR)
		b.change(a.State)
	}
}

// append takes a produced record.
func (b *broker) append() {
	if !b.alive || b.leader == nil || len(b.log) >= 16 {
		return
	}
	b.w.ids++
	b.log = append(b.log, record{b.leaderEpoch, b.w.ids})
	b.w.appended(b)
	b.w.logf("b%d appends %d at %d e%d", b.id, b.w.ids, len(b.log)-1, b.leaderEpoch)
	high, moved := b.leader.Appended(b.end())
	b.effects(replica.Effects{High: high, Moved: moved})
}

// tick passes time at a leader: lag, and the wish again.
func (b *broker) tick() {
	if !b.alive || b.leader == nil {
		return
	}
	e := b.leader.Tick(b.w.now)
	b.effects(e)
	if !e.Ask && b.w.chance(4) {
		b.ask()
	}
}

func (b *broker) end() kafka.Offset { return kafka.Offset(len(b.log)) }

func (b *broker) lastEpoch() kafka.LeaderEpoch {
	if len(b.log) == 0 {
		return -1
	}
	return b.log[len(b.log)-1].epoch
}

// endFor is the largest epoch of the log not above e, and where it ends.
func (b *broker) endFor(e kafka.LeaderEpoch) (kafka.LeaderEpoch, kafka.Offset) {
	at, end := kafka.LeaderEpoch(-1), kafka.Offset(0)
	for i, r := range b.log {
		if r.epoch <= e {
			at, end = r.epoch, kafka.Offset(i+1)
		}
	}
	return at, end
}
