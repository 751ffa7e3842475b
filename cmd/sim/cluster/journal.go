package cluster

import (
	"fmt"
	"slices"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/ha/controller"
)

// An edit is one entry of the log as its bytes.
type edit struct {
	id      int
	writer  int
	epoch   kafka.ControllerEpoch
	payload []byte
	why     string
}

// editLog is the part of ZooKeeper that matters: edits by number, the controller epoch
// that fences them, and brokers' ephemeral nodes.
type editLog struct {
	edits []*edit // edit n is edits[n-1]; nil is a hole (only without A1)
	epoch kafka.ControllerEpoch
	czxid kafka.BrokerEpoch
	nodes [brokers]node
	inbox []create

	image  *metadata.Image // fold of the first folded edits
	folded int
}

// A node is a broker's ephemeral node; czxid 0 is none.
type node struct {
	czxid       kafka.BrokerEpoch
	incarnation [16]byte
	unclean     bool
}

// A create is a request on its way to the log.
type create struct {
	from *controllerNode
	term int
	n    int
	edit *edit
}

func (w *World) newEdit(writer int, epoch kafka.ControllerEpoch, records []metadata.Record, why string) *edit {
	w.ids++
	return &edit{w.ids, writer, epoch, metadata.Encode(nil, records), why}
}

// at is edit n, nil where there is none.
func (l *editLog) at(n int) *edit {
	if n < 1 || n > len(l.edits) {
		return nil
	}
	return l.edits[n-1]
}

func (l *editLog) put(n int, e *edit) {
	for len(l.edits) < n {
		l.edits = append(l.edits, nil)
	}
	l.edits[n-1] = e
}

// fold brings the image to the end of the log.
func (l *editLog) fold() {
	if l.image == nil {
		l.image = metadata.Empty()
	}
	for e := l.at(l.folded + 1); e != nil; e = l.at(l.folded + 1) {
		l.folded++
		l.image = apply(l.image, l.folded, e)
	}
}

// apply reads an edit as every follower of the log does.
func apply(img *metadata.Image, n int, e *edit) *metadata.Image {
	records, err := metadata.Decode(e.payload)
	if err != nil {
		panic(fmt.Sprintf("edit %d does not decode: %v", n, err))
	}
	return img.Apply(int64(n), records)
}

// registration is what a controller asks of itself on seeing broker b's node.
func (l *editLog) registration(b kafka.BrokerID) controller.RegisterBroker {
	x := l.nodes[b]
	return controller.RegisterBroker{ID: b, Incarnation: x.incarnation, Epoch: x.czxid, Unclean: x.unclean}
}

// serve does one create: it may be lost, be done with its reply lost, or come late
// after its writer has heard of a cut.
func (l *editLog) serve(w *World) {
	if len(l.inbox) == 0 {
		return
	}
	i := w.rng.IntN(len(l.inbox))
	q := l.inbox[i]
	lostRequest, lostReply := w.chance(10), w.chance(6)
	if lostReply && w.chance(2) {
		q.from.unknown(q)
		return // it stays on its way
	}
	l.inbox = slices.Delete(l.inbox, i, i+1)
	if lostRequest {
		w.logf("edit %d of c%d is never seen", q.n, q.from.id)
		q.from.unknown(q)
		return
	}
	there, refused := l.create(w, q)
	if lostReply {
		q.from.unknown(q)
		return
	}
	q.from.reply(q, there, refused)
}

// create is the multi: check the epoch, check the predecessor, create (A1).
func (l *editLog) create(w *World, q create) (there *edit, refused bool) {
	switch {
	case q.edit.epoch != l.epoch:
		return nil, true
	case l.at(q.n) != nil:
		return l.at(q.n), false
	case l.at(q.n-1) == nil && q.n > 1 && !w.is(OneAppendInFlight):
		return nil, true
	}
	l.put(q.n, q.edit)
	w.logf("the log holds edit %d of c%d epoch %d: %s", q.n, q.from.id, q.edit.epoch, q.edit.why)
	return q.edit, false
}
