package partition

import (
	"errors"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/vfs"
	"varve/tier/archive"
)

// A Read is one partition's part of a fetch request by a consumer.
type Read struct {
	From      kafka.Offset
	Max       int  // bytes
	MinOne    bool // the first batch may be longer than Max
	Committed bool // below the last stable offset, with the aborted transactions
	Epoch     kafka.LeaderEpoch
	LastEpoch kafka.LeaderEpoch // of the record before From; NoEpoch skips the check (KIP-595)
	// Watcher's bit Index is marked when a Pending read is worth repeating; nil only looks.
	Watcher *Watcher
	Index   int
}

// A ReadResult is what a Read found. The Run must be released.
type ReadResult struct {
	Run      vfs.Run
	High     kafka.Offset
	Stable   kafka.Offset
	LogStart kafka.Offset
	Aborted  []producer.AbortedTxn // of a Committed read
	Diverged bool                  // the reader's log left ours: there are no records
	End      EpochEnd              // where, if Diverged
	Pending  bool                  // the tier is fetching the bytes
}

// An EpochEnd is where an epoch's records end.
type EpochEnd struct {
	Epoch kafka.LeaderEpoch
	End   kafka.Offset
}

// Refusals of reads. OFFSET_OUT_OF_RANGE makes a consumer reset, so nothing else may
// look like it.
var (
	errOutOfRange   = &kafka.Error{Code: kafka.OffsetOutOfRange}
	errFenced       = &kafka.Error{Code: kafka.FencedLeaderEpoch}
	errUnknownEpoch = &kafka.Error{Code: kafka.UnknownLeaderEpoch}
	errTierNotReady = &kafka.Error{Code: kafka.ReplicaNotAvailable, Message: "the tier's manifest is being loaded, or the broker runs without tier.url"}
)

// Read finds records. Errors are *kafka.Error, and r has no marks with one, as Kafka's
// answer has none. An epoch below 0 is none, as Kafka reads it in a fetch and nowhere
// else.
func (p *Partition) Read(q Read, r *ReadResult) error {
	*r = ReadResult{High: kafka.NoOffset, Stable: kafka.NoOffset, LogStart: kafka.NoOffset}
	l := p.lead.Load()
	if l == nil {
		return errNotLeader
	}
	if err := l.checkEpoch(max(q.Epoch, kafka.NoEpoch)); err != nil {
		return err
	}
	high := p.log.HighWatermark() // once: what is read is below what is told (KAFKA-9807)
	stable := min(p.LastStable(), high)
	if q.LastEpoch >= 0 {
		if err := p.diverged(q, r); err != nil {
			return err
		}
		if r.Diverged {
			r.High, r.Stable, r.LogStart = high, stable, p.log.Start()
			return nil
		}
	}
	bound := high
	if q.Committed {
		bound = stable
	}
	run, info, err := p.log.Read(q.From, q.Max, bound, q.MinOne)
	if err == nil {
		r.Run, r.High, r.Stable, r.LogStart = run, high, stable, info.LogStart
		if q.Committed && run.N > 0 {
			return p.aborted(info.First, info.Next, r)
		}
		return nil
	}
	if errors.Is(err, commitlog.ErrNotLocal) {
		r.High, r.Stable, r.LogStart = high, stable, info.LogStart
		return p.readTier(l, q, r)
	}
	if errors.Is(err, commitlog.ErrOffsetOutOfRange) {
		return errOutOfRange
	}
	return storage(err)
}

func (l *leadership) checkEpoch(epoch kafka.LeaderEpoch) error {
	switch {
	case l.shut.Load():
		return errTierNotReady
	case epoch == kafka.NoEpoch || epoch == l.epoch:
		return nil
	case epoch < l.epoch:
		return errFenced
	default:
		return errUnknownEpoch
	}
}

// diverged compares the reader's last epoch with our history of epochs (KIP-595).
func (p *Partition) diverged(q Read, r *ReadResult) error {
	if q.From < p.log.Start() {
		return errOutOfRange // also where the epochs part: KAFKA-12996
	}
	epochs, err := p.log.Epochs()
	if err != nil {
		return storage(err)
	}
	epoch, end := epochs.EndOffsetFor(q.LastEpoch, p.log.End())
	if epoch == kafka.NoEpoch {
		return errOutOfRange
	}
	if epoch < q.LastEpoch || end < q.From {
		r.Diverged, r.End = true, EpochEnd{epoch, end}
	}
	return nil
}

func (p *Partition) aborted(from, to kafka.Offset, r *ReadResult) error {
	a, err := p.log.Aborted(from, to)
	if err != nil {
		r.Run.Release()
		r.Run = vfs.Run{}
		return storage(err)
	}
	r.Aborted = a
	return nil
}

// readTier reads what is on this disk no more.
func (p *Partition) readTier(l *leadership, q Read, r *ReadResult) error {
	t := l.tier.Load()
	if t == nil {
		return errTierNotReady
	}
	var wake func()
	if q.Watcher != nil {
		w, i := q.Watcher, q.Index
		wake = func() { w.Mark(i, -1) }
	}
	f, err := t.Read(q.From, q.Max, q.MinOne, wake)
	switch {
	case errors.Is(err, archive.ErrNotReady):
		return errTierNotReady
	case err != nil:
		return &kafka.Error{Code: kafka.KafkaStorageError, Message: err.Error()}
	}
	r.Run, r.Pending = f.Run, f.Pending
	if q.Committed && f.Run.N > 0 {
		for _, a := range f.Aborted() {
			r.Aborted = append(r.Aborted, producer.AbortedTxn{PID: a.Producer, First: a.First, Last: a.Last})
		}
	}
	return nil
}

// EndOffsetFor answers OffsetForLeaderEpoch: the largest epoch at or below the one
// asked for, and where its records end.
func (p *Partition) EndOffsetFor(current, epoch kafka.LeaderEpoch) (EpochEnd, error) {
	none := EpochEnd{kafka.NoEpoch, kafka.NoOffset}
	l := p.lead.Load()
	if l == nil {
		return none, errNotLeader
	}
	if err := l.checkEpoch(current); err != nil {
		return none, err
	}
	epochs, err := p.log.Epochs()
	if err != nil {
		return none, storage(err)
	}
	e, end := epochs.EndOffsetFor(epoch, p.log.End())
	return EpochEnd{e, end}, nil
}
