package controller

import (
	"varve/broker/kafka"
	"varve/broker/metadata"
)

// beginTerm opens a term. Fencing is not framed: a failover may have cut it after
// "fenced" and before the last partition, so it is finished here (A15).
func (c *Machine) beginTerm(req BeginTerm) Outcome {
	out := Outcome{Answer: TermBegun{c.spec.ClusterID()}}
	if c.spec.ClusterID() == "" {
		out.Records = append(out.Records, metadata.Cluster{ID: req.ClusterID})
		out.Answer = TermBegun{req.ClusterID}
	}
	out.Records = append(out.Records, metadata.ControllerChange{Epoch: req.Epoch, Who: req.Who})
	after := c.spec.Apply(c.spec.N(), out.Records) // what a frame left open is gone
	for _, b := range after.Brokers() {
		if b.Fenced() {
			records := c.withdraw(after, b.ID)
			out.Records = append(out.Records, records...)
			after = after.Apply(after.N(), records)
		}
	}
	return out
}

// fenceBroker fences first and then moves what the broker led (A13, A15).
func (c *Machine) fenceBroker(req FenceBroker) Outcome {
	b, ok := c.spec.Broker(req.ID)
	switch {
	case !ok:
		return Outcome{Answer: BrokerFenced{kafka.Refuse(kafka.BrokerIDNotRegistered, "No broker registration found for broker id %d", req.ID)}}
	case req.Epoch < b.Epoch: // A13: it is about a process that is gone
		return Outcome{Answer: BrokerFenced{kafka.Refuse(kafka.StaleBrokerEpoch, "Expected broker epoch %d, but got broker epoch %d", b.Epoch, req.Epoch)}}
	case b.Fenced():
		return Outcome{Answer: BrokerFenced{}}
	}
	fence := []metadata.Record{metadata.BrokerFence{ID: req.ID, Epoch: req.Epoch}}
	after := c.spec.Apply(c.spec.N(), fence)
	return Outcome{Records: append(fence, c.withdraw(after, req.ID)...), Answer: BrokerFenced{}}
}

// withdraw takes a fenced broker out of every ISR and leadership.
func (c *Machine) withdraw(img *metadata.Image, id kafka.BrokerID) []metadata.Record {
	changes := newChanges()
	for t := range img.ByBroker(id) {
		for p, state := range t.Of(id) {
			set, before := t.Slot(p)
			if !before.ISR.Has(set.Place(id)) && state.Leader != id {
				continue
			}
			after := elect(set, c.leave(t, set, before, id, false), img.Live)
			if after, ok := settle(before, after); ok {
				changes.add(t, after)
			}
		}
	}
	return changes.records()
}

func (c *Machine) registerBroker(req RegisterBroker) Outcome {
	refused := func(code kafka.Code, format string, args ...any) Outcome {
		return Outcome{Answer: BrokerRegistered{Err: kafka.Refuse(code, format, args...)}}
	}
	if id := c.spec.ClusterID(); req.ClusterID != "" && req.ClusterID != id {
		return refused(kafka.InconsistentClusterID, "Expected cluster ID %s, but got cluster ID %s", id, req.ClusterID)
	}
	old, known := c.spec.Broker(req.ID)
	if known && !old.Fenced() && old.Incarnation == req.Incarnation && req.Epoch <= old.Epoch {
		return Outcome{Answer: BrokerRegistered{Epoch: old.Epoch}}
	}
	if known && !old.Fenced() && req.Folder != old.Folder && req.Folder != [16]byte{} && old.Folder != [16]byte{} {
		return refused(kafka.DuplicateBrokerRegistration, "Another broker is registered with that broker id. If the broker "+
			"was recently restarted this should self-resolve once the heartbeat manager expires the broker's session.")
	}
	epoch := req.Epoch
	if epoch == 0 {
		epoch = c.nextBrokerEpoch()
	} else if known && epoch <= old.Epoch { // A13
		return refused(kafka.StaleBrokerEpoch, "Expected broker epoch above %d, but got broker epoch %d", old.Epoch, epoch)
	}
	records := c.replace(req.ID, req.Unclean)
	records = append(records, metadata.BrokerRegistration{
		ID: req.ID, Epoch: epoch, Incarnation: req.Incarnation, Folder: req.Folder,
		Listeners: req.Listeners, Rack: req.Rack, Unclean: req.Unclean,
	})
	return Outcome{Records: records, Answer: BrokerRegistered{Epoch: epoch}}
}

// nextBrokerEpoch is above every broker epoch of the log, as the log is long.
func (c *Machine) nextBrokerEpoch() kafka.BrokerEpoch {
	epoch := kafka.BrokerEpoch(c.spec.N())
	for _, b := range c.spec.Brokers() {
		epoch = max(epoch, b.Epoch, b.FencedAt)
	}
	return epoch + 1
}

// replace ends what the broker's process before this one held: every ISR seat beside
// others goes, every leadership moves (A5). What it leads alone stays and is not
// written: the fold of the registration raises those epochs. Partitions that wait
// for this broker get it back.
func (c *Machine) replace(id kafka.BrokerID, unclean bool) []metadata.Record {
	live := func(b kafka.BrokerID) bool { return b == id || c.spec.Live(b) }
	changes := newChanges()
	for t := range c.spec.ByBroker(id) {
		for p, state := range t.Of(id) {
			set, before := t.Slot(p)
			place := set.Place(id)
			alone := before.ISR == metadata.Members(0).With(place) && before.ELR == 0
			if state.Leader == id && alone {
				continue // A5, A7: raised, and RECOVERING if unclean, by the fold
			}
			after := before
			if before.ISR.Has(place) || before.ELR.Has(place) {
				after = c.leave(t, set, before, id, unclean)
			}
			after = elect(set, after, live)
			if after, ok := settle(before, after); ok {
				changes.add(t, after)
			}
		}
	}
	return changes.records()
}
