package commitlog

import (
	"fmt"
	"math"
	"math/rand/v2"

	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/record"
	"varve/broker/segment"
	"varve/broker/vfs"
)

// Appended says where a batch lies.
type Appended struct {
	Base      kafka.Offset
	Next      kafka.Offset
	Timestamp int64 // of a duplicate: as it was appended
	Duplicate bool  // it was there already; nothing was written
	Rolled    bool  // it begins a segment
}

// An Origin says who made a batch.
type Origin struct {
	Internal bool // a coordinator of this broker: sequences are not checked
	Verified bool // a client of transactions version 2
}

// Append writes a client's batch at the end of the log. The batch has been validated;
// it gets its offset and epoch in place. now is in ms. Errors are *kafka.Error (the
// producer's sequence or epoch does not fit), *StorageError, ErrClosed. A batch that
// the flush policy wants durable is durable when Append returns.
func (l *Log) Append(b record.Batch, now int64) (Appended, error) {
	return l.AppendFrom(b, Origin{}, now)
}

// AppendFrom is Append for batches that are not a plain client's.
func (l *Log) AppendFrom(b record.Batch, o Origin, now int64) (Appended, error) {
	l.mu.Lock()
	a, flush, err := l.append(b, o, now)
	l.mu.Unlock()
	if err == nil && flush != nil {
		err = l.syncTo(flush, a.Next)
	}
	return a, err
}

// append decides and writes; flush is set where the policy asks for an fsync.
func (l *Log) append(b record.Batch, o Origin, now int64) (a Appended, flush *hot, err error) {
	h, err := l.wake(now)
	if err != nil {
		return a, nil, err
	}
	base := l.End()
	if dup, err := l.check(h, b, base, o); dup != nil || err != nil {
		if err != nil {
			return a, nil, err
		}
		return Appended{Base: dup.Base, Next: dup.Last + 1, Timestamp: dup.Timestamp, Duplicate: true}, nil, nil
	}
	epoch := kafka.LeaderEpoch(l.epoch.Load())
	b.Stamp(base, epoch)
	if a.Rolled, err = l.rollFor(h, b, now); err != nil {
		return a, nil, err
	}
	if err := l.write(h, b, now); err != nil {
		return a, nil, err
	}
	a.Base, a.Next = base, b.NextOffset()
	if h.flushNow(l.cfg.Load(), int64(b.LastOffsetDelta())+1, now) {
		flush = h
	}
	return a, flush, nil
}

// flushNow counts records against the flush policy.
func (h *hot) flushNow(c *Config, records, now int64) bool {
	h.unflushed += int(records)
	if c.FlushMs > 0 && h.flushDue == 0 {
		h.flushDue = now + c.FlushMs
	}
	return c.FlushMessages > 0 && int64(h.unflushed) >= c.FlushMessages
}

// check asks the producers' state.
func (l *Log) check(h *hot, b record.Batch, base kafka.Offset, o Origin) (*producer.Appended, error) {
	if b.ProducerID() < 0 {
		return nil, nil
	}
	if b.Control() {
		m, ok, err := markerOf(b)
		if !ok || err != nil {
			return nil, err
		}
		m.Offset = base
		if err := h.producers.CheckMarker(m); err != nil {
			return nil, err
		}
		return nil, nil
	}
	e := producer.EntryOf(b)
	e.FirstOffset, e.Verified = base, o.Verified
	dup, kerr := h.producers.Check(e, !o.Internal)
	if kerr != nil {
		return nil, kerr
	}
	return dup, nil
}

// write puts a stamped batch behind the last one and takes note of it everywhere.
func (l *Log) write(h *hot, b record.Batch, now int64) error {
	if epochs := l.epochs.Load(); h.epochsDue || epochs.Latest() < b.LeaderEpoch() {
		if err := l.enterEpoch(h, epochs, b); err != nil {
			return err
		}
	}
	if h.writer.Empty() {
		h.firstTS = b.MaxTimestamp()
	}
	if err := h.writer.Append(b); err != nil {
		return l.fail(opAppend, err)
	}
	if err := l.noteProducer(h, b); err != nil {
		return l.fail("appending to the transaction index", err)
	}
	h.touched, h.trimmed = now, false
	l.end.Store(int64(b.NextOffset()))
	return nil
}

// enterEpoch brings the epoch of a batch into the checkpoint before its first record.
func (l *Log) enterEpoch(h *hot, epochs *Epochs, b record.Batch) error {
	next := epochs.assign(b.LeaderEpoch(), b.BaseOffset())
	if err := l.writeEpochs(next, false); err != nil {
		return l.fail(opEpochs, err)
	}
	l.epochs.Store(next)
	h.epochsDue = false
	return nil
}

// noteProducer enters a batch that lies in the log into the producers' state.
func (l *Log) noteProducer(h *hot, b record.Batch) error {
	aborted, err := note(h.producers, b)
	if err != nil {
		return nil // a control batch of an unknown kind says nothing of transactions
	}
	if b.Transactional() {
		l.txns.Store(txnsSome)
	}
	if aborted == nil {
		return nil
	}
	return h.writer.AppendTxn(producer.EncodeAborted(nil, *aborted))
}

// note enters a batch of the log into a state.
func note(s *producer.State, b record.Batch) (*producer.AbortedTxn, error) {
	if b.ProducerID() < 0 {
		return nil, nil
	}
	if !b.Control() {
		s.Append(producer.EntryOf(b), b.BaseOffset(), b.LastOffset())
		return nil, nil
	}
	m, ok, err := markerOf(b)
	if !ok || err != nil {
		return nil, err
	}
	return s.Marker(m), nil
}

func markerOf(b record.Batch) (producer.Marker, bool, error) {
	m, ok, err := b.EndTxn()
	if !ok || err != nil {
		return producer.Marker{}, false, err
	}
	return producer.Marker{
		PID: b.ProducerID(), Epoch: b.ProducerEpoch(), Commit: m.Commit, Offset: b.BaseOffset(),
		CoordinatorEpoch: m.CoordinatorEpoch, Timestamp: b.MaxTimestamp(),
	}, true, nil
}

// AppendAsFollower writes what a leader sent: whole batches that carry offsets and
// epochs, all of the leader's segment that begins at segmentBase. A segment begins here
// where the leader's did (T8), and nowhere by a rule of our own but the index's.
func (l *Log) AppendAsFollower(bytes []byte, segmentBase kafka.Offset, now int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, err := l.wake(now)
	if err != nil {
		return err
	}
	for len(bytes) > 0 {
		b, rest, err := record.Parse(bytes)
		if err != nil {
			return fmt.Errorf("replicating to %v at offset %d: %w", l.tp, l.End(), err)
		}
		if !b.ValidCRC() || b.BaseOffset() < l.End() || b.LastOffsetDelta() < 0 {
			return fmt.Errorf("replicating to %v at offset %d: %v does not follow, or is damaged", l.tp, l.End(), b)
		}
		active := l.active()
		begins := segmentBase == b.BaseOffset() && segmentBase != active.Base
		if begins || h.writer.IndexFull() || b.LastOffset()-active.Base > math.MaxInt32 {
			if err := l.roll(h, b.BaseOffset(), now); err != nil {
				return err
			}
		}
		if err := l.write(h, b, now); err != nil {
			return err
		}
		bytes = rest
	}
	return nil
}

// active is the last segment; a hot log has one.
func (l *Log) active() *segment.Segment {
	segs := l.view.Load().segs
	return segs[len(segs)-1]
}

// wake makes the log ready to append; mu is held.
func (l *Log) wake(now int64) (*hot, error) {
	if e := l.failed.Load(); e != nil {
		return nil, e
	}
	if err := l.dir.Failed(); err != nil {
		return nil, err
	}
	if l.hot != nil {
		return l.hot, nil
	}
	if l.view.Load() == closedView {
		return nil, ErrClosed
	}
	h := &hot{touched: now}
	e, err := l.Epochs()
	if err != nil {
		return nil, err
	}
	h.epochsDue = e.Latest() == kafka.LeaderEpoch(l.epoch.Load())
	if h.producers, err = l.loadProducers(l.End()); err != nil {
		return nil, fmt.Errorf("waking %v: %w", l.tp, err)
	}
	if err := l.openActive(h, now); err != nil {
		if vfs.Full(err) {
			return nil, &StorageError{Op: "opening a segment", Path: l.home.Path(), Err: err}
		}
		return nil, l.fail("opening a segment", err)
	}
	l.hot = h
	l.dir.warm(l)
	return h, nil
}

// openActive opens the last segment, or begins the first.
func (l *Log) openActive(h *hot, now int64) error {
	v := l.view.Load()
	if len(v.segs) == 0 {
		s := segment.New(&l.home, segment.Facts{Base: l.End(), Next: l.End(), MaxTimestamp: segment.NoTimestamp, TimestampSet: true})
		w, err := segment.OpenWriter(s, l.cfg.Load().options())
		if err != nil {
			return err
		}
		l.publish([]*segment.Segment{s}, v.LogStart, v.LocalStart)
		h.newNames = true
		l.begin(h, w, now)
		return nil
	}
	s := v.segs[len(v.segs)-1]
	w, err := segment.OpenWriter(s, l.cfg.Load().options())
	if err != nil {
		return err
	}
	l.begin(h, w, now)
	return s.First(func(b record.Batch) { h.firstTS = b.MaxTimestamp() })
}

// begin makes w the writer of the active segment.
func (l *Log) begin(h *hot, w *segment.Writer, now int64) {
	h.writer, h.firstTS, h.touched, h.trimmed, h.jitter = w, now, now, false, 0
	if j := l.cfg.Load().SegmentJitterMs; j > 0 {
		h.jitter = rand.Int64N(min(j, l.cfg.Load().segmentMs()))
	}
}

// What a log was at when the disk failed it.
const (
	opAppend = "appending"
	opRoll   = "beginning a segment"
	opEpochs = "writing the leader epochs"
)
