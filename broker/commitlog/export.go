package commitlog

import (
	"fmt"

	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/record"
	"varve/broker/segment"
	"varve/broker/vfs"
)

// An Export is a range of a log as the tier takes it. It holds the files open until
// Release, whatever retention does meanwhile.
type Export struct {
	// Range is what was asked for, its end moved down to the end of a batch. The bytes
	// begin with the batch that holds Range.Start; Base is that batch's base offset.
	Range        kafka.Range
	Base         kafka.Offset
	Runs         []vfs.Run // the batches, in order
	Size         int64     // bytes of all runs
	OffsetIndex  []byte    // as a .index of a segment that begins at Base
	TimeIndex    []byte    // as a .timeindex, with the entry that ends it
	TxnIndex     []byte    // as a .txnindex: transactions aborted by a marker in the range
	Snapshot     []byte    // producers as of Range.End
	Epochs       []kafka.EpochStart
	Aborted      []producer.AbortedTxn // all that overlap the range, wherever the marker is (T6)
	MaxTimestamp int64
}

// Release lets the files go.
func (e *Export) Release() {
	for i := range e.Runs {
		e.Runs[i].Release()
	}
}

// Export opens a range of local records for copying. The end may lie inside a segment
// (T7); the range must be below the last stable offset for Aborted to be complete.
func (l *Log) Export(r kafka.Range) (*Export, error) {
	e, err := l.export(r)
	if err != nil {
		if e != nil {
			e.Release()
		}
		return nil, fmt.Errorf("exporting %v %v: %w", l.tp, r, err)
	}
	return e, nil
}

func (l *Log) export(r kafka.Range) (*Export, error) {
	v := l.View()
	switch {
	case r.Empty() || r.Start < v.LogStart || r.End > l.End():
		return nil, ErrOffsetOutOfRange
	case r.Start < v.LocalStart:
		return nil, ErrNotLocal
	}
	e := &Export{Range: r, Base: kafka.NoOffset, MaxTimestamp: segment.NoTimestamp}
	ix := segment.NewIndexer(l.cfg.Load().options())
	for _, s := range v.segs {
		if s.Next() <= r.Start || s.Base >= r.End {
			continue
		}
		st, err := s.Stretch(r, ix)
		if err != nil {
			return e, err
		}
		if st.Run.N == 0 {
			continue
		}
		e.Runs = append(e.Runs, st.Run)
		e.Size += int64(st.Run.N)
		if e.Base == kafka.NoOffset {
			e.Base = st.First
		}
		e.Range.End = st.Next
	}
	if len(e.Runs) == 0 {
		return e, fmt.Errorf("no whole batch in it: %w", ErrOffsetOutOfRange)
	}
	e.OffsetIndex, e.TimeIndex, e.MaxTimestamp = ix.Finish()
	return e, l.exportRest(e)
}

// exportRest adds what is beside the bytes.
func (l *Log) exportRest(e *Export) error {
	s, err := l.loadProducers(e.Range.End)
	if err != nil {
		return err
	}
	e.Snapshot = s.MarshalSnapshot(nil)
	epochs, err := l.Epochs()
	if err != nil {
		return err
	}
	e.Epochs = epochs.upTo(e.Range.End).list
	all, err := l.Aborted(e.Base, l.End())
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.First < e.Range.End {
			e.Aborted = append(e.Aborted, t)
		}
		if t.Last < e.Range.End {
			e.TxnIndex = producer.EncodeAborted(e.TxnIndex, t)
		}
	}
	return nil
}

// Walk visits the whole batches in [from, end), for the tools and the tests.
func (l *Log) Walk(from, end kafka.Offset, visit func(record.Batch) error) error {
	return l.walk(from, end, visit)
}
