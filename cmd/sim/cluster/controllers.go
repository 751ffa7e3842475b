package cluster

import (
	"fmt"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/ha/controller"
)

// A controllerNode drives one controller.Machine over the log, as ha/runner does over
// a journal: it leads from takeOver until something is refused, and tails otherwise.
type controllerNode struct {
	w         *World
	id        int
	epoch     kafka.ControllerEpoch
	n         int             // edits folded into committed
	committed *metadata.Image // of the log
	machine   *controller.Machine
	queue     []*queued // decided, not yet known to be in the log
	term      int       // replies of earlier terms are dropped
}

// queued is an edit on its way, and the answer that waits for it.
type queued struct {
	n      int
	edit   *edit
	state  sending
	answer *message
}

type sending int

const (
	toSend sending = iota
	inFlight
	outcomeUnknown
	written // out of order, only without A1
)

func (c *controllerNode) takeOver() {
	if c.machine != nil {
		return
	}
	c.w.log.epoch++
	c.epoch = c.w.log.epoch
	for c.tail() {
	}
	c.term++
	c.machine = controller.New(c.committed, c.w.config())
	c.w.logf("c%d takes over in epoch %d, edits to %d", c.id, c.epoch, c.n)
	c.request(controller.BeginTerm{Epoch: c.epoch, Who: fmt.Sprint("c", c.id)}, "term begins")
}

// tail folds the next edit in; the active one has no need to.
func (c *controllerNode) tail() bool {
	e := c.w.log.at(c.n + 1)
	if c.machine != nil || e == nil {
		return false
	}
	c.n++
	c.committed = apply(c.committed, c.n, e)
	return true
}

// newest is a broker whose node the controller has not registered yet, else b.
func (c *controllerNode) newest(b kafka.BrokerID) kafka.BrokerID {
	if c.machine == nil || c.w.chance(3) {
		return b
	}
	for i := range kafka.BrokerID(brokers) {
		x := (b + i) % brokers
		if known, ok := c.machine.Image().Broker(x); ok && c.w.log.nodes[x].czxid > known.Epoch {
			return x
		}
	}
	return b
}

// decide looks at broker b: its node, or a refused connection, true or a false alarm.
func (c *controllerNode) decide(b kafka.BrokerID) {
	if c.machine == nil || len(c.queue) > 3 {
		return
	}
	known, ok := c.machine.Image().Broker(b)
	if !ok {
		return
	}
	node := c.w.log.nodes[b]
	switch {
	case node.czxid > known.Epoch:
		req := c.w.log.registration(b)
		if c.w.is(ELRKeepsTheLeavers) {
			req.Unclean = false
		}
		c.request(req, fmt.Sprintf("register b%d at %d unclean=%v", b, node.czxid, node.unclean))
	case node.czxid == 0 && !known.Fenced():
		c.request(controller.FenceBroker{ID: b, Epoch: known.Epoch}, fmt.Sprintf("fence b%d, its session ended", b))
	case !known.Fenced() && c.w.chance(4) && (!c.w.brokers[b].alive || c.w.chance(4)):
		c.request(controller.FenceBroker{ID: b, Epoch: known.Epoch}, fmt.Sprintf("fence b%d, refused, alive=%v", b, c.w.brokers[b].alive))
	}
}

// request decides req and queues its edit.
func (c *controllerNode) request(req controller.Request, why string) {
	out := c.machine.Step(c.w.now, req)
	if len(out.Records) > 0 {
		c.propose(out.Records, why, nil)
	}
}

func (c *controllerNode) propose(records []metadata.Record, why string, answer *message) {
	q := &queued{n: c.n + len(c.queue) + 1, edit: c.w.newEdit(c.id, c.epoch, records, why), answer: answer}
	c.queue = append(c.queue, q)
	c.w.logf("c%d (epoch %d) decides edit %d: %s: %s", c.id, c.epoch, q.n, why, show(state(c.machine.Image())))
}

func show(s metadata.PartitionState) string {
	return fmt.Sprintf("leader b%d e%d p%d isr %v elr %v", s.Leader, s.LeaderEpoch, s.PartitionEpoch, s.ISR, s.ELR)
}

// onAsk decides a leader's wish. The answer waits for its edit; one that needs none waits
// for proof that all this rests on is in the log (A3).
func (c *controllerNode) onAsk(m message) {
	if c.machine == nil {
		return
	}
	out := c.machine.Step(c.w.now, m.ask)
	a := out.Answer.(controller.PartitionsAltered)
	reply := message{kind: answer, to: m.from, brokerEpoch: m.brokerEpoch, wish: m.wish, leaderEpoch: m.leaderEpoch}
	if a.Err != nil {
		return // the wish is of a process that is gone, or not yet known
	}
	reply.altered = a.Partitions[0]
	if len(out.Records) > 0 {
		c.propose(out.Records, fmt.Sprintf("isr of b%d", m.from), &reply)
		return
	}
	proved := len(c.queue) == 0 && c.w.log.epoch == c.epoch
	if proved || c.w.is(AnswersAreInTheLog) {
		c.w.logf("c%d answers b%d: %v, %v", c.id, m.from, reply.altered.Code, reply.altered.State.ISR)
		c.w.send(reply)
	}
}

// send puts the head of the queue on its way: one in flight (A1).
func (c *controllerNode) send() {
	for i, q := range c.queue {
		if q.state != toSend || i > 0 && !c.w.is(OneAppendInFlight) {
			continue
		}
		q.state = inFlight
		c.w.log.inbox = append(c.w.log.inbox, create{c, c.term, q.n, q.edit})
		if !c.w.is(OneAppendInFlight) || c.w.chance(2) {
			return
		}
	}
}

// find is the queued edit that a create was about, if it is still waited for.
func (c *controllerNode) find(r create) *queued {
	if c.term != r.term {
		return nil
	}
	for _, q := range c.queue {
		if q.edit == r.edit && q.state == inFlight {
			return q
		}
	}
	return nil
}

func (c *controllerNode) unknown(r create) {
	if q := c.find(r); q != nil {
		q.state = outcomeUnknown
	}
}

func (c *controllerNode) reply(r create, there *edit, refused bool) {
	if q := c.find(r); q != nil {
		c.settled(q, there, refused)
	}
}

// settle resolves a lost reply: the same bytes again until something is known; that
// nothing is there yet proves nothing (A2).
func (c *controllerNode) settle() {
	for i, q := range c.queue {
		if q.state != outcomeUnknown {
			continue
		}
		switch there := c.w.log.at(q.n); {
		case there != nil:
			c.settled(q, there, false)
		case c.w.is(SameBytesUntilKnown):
			c.w.logf("c%d gives edit %d up: it is not there", c.id, q.n)
			c.queue = c.queue[:i]
			img := c.committed
			for k, x := range c.queue {
				img = apply(img, c.n+k+1, x.edit)
			}
			c.machine = controller.New(img, c.w.config())
		default:
			q.state = toSend
		}
		return
	}
}

func (c *controllerNode) settled(q *queued, there *edit, refused bool) {
	if refused {
		c.stepDown("refused")
		return
	}
	mine := there.id == q.edit.id
	if c.w.is(SameBytesUntilKnown) {
		mine = there.writer == q.edit.writer && there.epoch == q.edit.epoch
	}
	if !mine {
		c.stepDown("another edit stands there")
		return
	}
	q.state = written
	for len(c.queue) > 0 && c.queue[0].state == written {
		head := c.queue[0]
		c.queue = c.queue[1:]
		c.n = head.n
		c.committed = apply(c.committed, head.n, head.edit)
		if head.answer != nil {
			c.w.send(*head.answer)
		}
	}
}

// stepDown drops the machine and its speculative image (A4).
func (c *controllerNode) stepDown(why string) {
	c.w.logf("c%d steps down: %s", c.id, why)
	if c.w.is(SteppingDownForgets) {
		c.committed = c.machine.Image()
		c.n += len(c.queue)
	}
	c.machine, c.queue = nil, nil
	c.term++
}
