package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"

	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/record"
	"varve/broker/segment"
	"varve/broker/vfs"
)

// refillBytes is how much of the log's end is read again for the producers' windows.
const refillBytes = 8 << 20

// keptSegments is how many of the last segments keep their snapshots.
const keptSegments = 2

// loadProducers makes the producers' state as of offset end: the newest good snapshot
// at or below it, then the batches behind that.
func (l *Log) loadProducers(end kafka.Offset) (*producer.State, error) {
	s := producer.New(producer.Params{Partition: l.tp, ExpireMs: l.cfg.Load().ProducerExpireMs})
	from, err := l.newestSnapshot(s, end)
	if err != nil {
		return nil, err
	}
	txns := int32(txnsNone)
	if s.OpenTxns() > 0 {
		txns = txnsSome
	}
	err = l.walk(from, end, func(b record.Batch) error {
		if b.Transactional() {
			txns = txnsSome
		}
		_, err := note(s, b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the producers of %v from offset %d: %w", l.tp, from, err)
	}
	if end == l.End() {
		l.txns.Store(txns)
	}
	return s, nil
}

// newestSnapshot loads the newest good snapshot at or below end into s; it returns the
// offset that the snapshot goes up to, or the local start if there is none.
func (l *Log) newestSnapshot(s *producer.State, end kafka.Offset) (kafka.Offset, error) {
	first := end
	if segs := l.View().segs; len(segs) > 0 {
		first = segs[0].Base
	}
	offsets, err := l.snapshots()
	if err != nil {
		return 0, err
	}
	for _, o := range slices.Backward(offsets) {
		if o > end || o < first {
			continue
		}
		b, err := vfs.ReadFile(l.dir.fs, l.home.File(o, segment.SnapshotSuffix))
		if err != nil {
			return 0, err
		}
		if b, err = l.refill(b, o); err != nil {
			return 0, err
		}
		var corrupt *producer.CorruptError
		switch err := s.UnmarshalSnapshot(b); {
		case err == nil:
			return o, l.refillWindows(s, o)
		case !errors.As(err, &corrupt):
			return 0, err
		}
		l.dir.log.Warn("producer snapshot is damaged and not used", "partition", l.tp.String(), "offset", int64(o), "error", err)
	}
	return first, nil
}

// A snapshot has only the last batch of each producer. The window of five, which a
// client's repetitions after a restart are held against, comes from the log's end:
// producers with batches there lose the snapshot's one, and get those of the log.
const (
	snapHead      = 10
	snapEntry     = 42
	snapEpochAt   = 8
	snapLastSeqAt = 10
	snapOffsetAt  = 14
)

// refill takes the last batch of the producers out of a snapshot that the log's end
// has batches of.
func (l *Log) refill(b []byte, o kafka.Offset) ([]byte, error) {
	if len(b) <= snapHead || (len(b)-snapHead)%snapEntry != 0 {
		return b, nil
	}
	if crc32.Checksum(b[6:], castagnoli) != binary.BigEndian.Uint32(b[2:]) {
		return b, nil // for UnmarshalSnapshot to refuse
	}
	from := l.nearEnd(o)
	for e := b[snapHead:]; len(e) > 0; e = e[snapEntry:] {
		if kafka.Offset(binary.BigEndian.Uint64(e[snapOffsetAt:])) >= from {
			binary.BigEndian.PutUint32(e[snapLastSeqAt:], ^uint32(0))
		}
	}
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b, nil
}

// refillWindows appends the batches of the log's end again, as far as they are of the
// producers' epochs.
func (l *Log) refillWindows(s *producer.State, o kafka.Offset) error {
	if s.Len() == 0 {
		return nil
	}
	epochs := map[kafka.ProducerID]kafka.ProducerEpoch{}
	for _, d := range s.Describe() {
		epochs[d.PID] = d.Epoch
	}
	return l.walk(l.nearEnd(o), o, func(b record.Batch) error {
		if epoch, ok := epochs[b.ProducerID()]; !ok || epoch != b.ProducerEpoch() || b.Control() {
			return nil
		}
		e := producer.EntryOf(b)
		e.Transactional = false // the snapshot knows what is open
		s.Append(e, b.BaseOffset(), b.LastOffset())
		return nil
	})
}

// nearEnd is an offset at most refillBytes of log below o.
func (l *Log) nearEnd(o kafka.Offset) kafka.Offset {
	segs := l.View().segs
	left := int64(refillBytes)
	for _, s := range slices.Backward(segs) {
		if s.Base >= o {
			continue
		}
		if s.Size() > left {
			return s.Near(s.Size() - left)
		}
		left -= s.Size()
	}
	if len(segs) == 0 {
		return o
	}
	return segs[0].Base
}

// walk visits the batches in [from, end).
func (l *Log) walk(from, end kafka.Offset, visit func(record.Batch) error) error {
	errEnd := errors.New("end")
	for _, s := range l.View().segs {
		if s.Next() <= from || s.Base >= end {
			continue
		}
		err := s.Walk(from, func(b record.Batch) error {
			if b.BaseOffset() >= end {
				return errEnd
			}
			if b.BaseOffset() < from {
				return nil
			}
			return visit(b)
		})
		if err != nil && !errors.Is(err, errEnd) {
			return err
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// snapshots lists the offsets of the snapshot files, in order.
func (l *Log) snapshots() ([]kafka.Offset, error) {
	entries, err := l.dir.fs.ReadDir(l.home.Path())
	if err != nil {
		return nil, err
	}
	var out []kafka.Offset
	for _, e := range entries {
		if o, suffix, ok := segment.ParseName(e.Name()); ok && suffix == segment.SnapshotSuffix {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return out, nil
}

// dropSnapshots removes the snapshots below the last two segments; end is the newest.
func (l *Log) dropSnapshots(end kafka.Offset) {
	segs := l.View().segs
	keep := segs[max(0, len(segs)-keptSegments)].Base
	offsets, err := l.snapshots()
	if err != nil {
		return
	}
	bases := map[kafka.Offset]bool{end: true}
	for _, s := range segs {
		bases[s.Base] = true
	}
	for _, o := range offsets {
		// One that is no segment's was written at rest or at a stop, and is older.
		if o < keep && !l.cfg.Load().Remote || o < end && !bases[o] {
			l.removeSnapshot(o)
		}
	}
}

func (l *Log) removeSnapshot(o kafka.Offset) {
	if err := l.dir.fs.Remove(l.home.File(o, segment.SnapshotSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.dir.log.Warn("removing a producer snapshot", "partition", l.tp.String(), "error", err)
	}
}

// FirstUnstable is the last stable offset under the high watermark hw.
func (l *Log) FirstUnstable(hw kafka.Offset) (kafka.Offset, error) {
	if l.txns.Load() == txnsNone {
		return hw, nil
	}
	var stable kafka.Offset
	err := l.withProducers(func(s *producer.State) {
		s.Revealed(hw)
		stable = s.FirstUnstable(hw)
		if s.OpenTxns() == 0 && hw >= l.End() { // every marker is below
			l.txns.Store(txnsNone)
		}
	})
	return stable, err
}

// withProducers shows the producers' state under the log's lock, read for the occasion
// where the log is at rest.
func (l *Log) withProducers(see func(*producer.State)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hot != nil {
		see(l.hot.producers)
		return nil
	}
	s, err := l.loadProducers(l.End())
	if err != nil {
		return err
	}
	see(s)
	return nil
}

// Producers describes the producers of the log.
func (l *Log) Producers() (out []producer.Description, err error) {
	err = l.withProducers(func(s *producer.State) { out = s.Describe() })
	return out, err
}

// Aborted lists the aborted transactions that overlap [from, to), in order of their
// markers, as far as the markers are in the log.
func (l *Log) Aborted(from, to kafka.Offset) ([]producer.AbortedTxn, error) {
	var out []producer.AbortedTxn
	for _, s := range l.View().segs {
		if s.Next() <= from {
			continue
		}
		all, err := l.abortedIn(s)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			if t.Last >= from && t.First < to {
				out = append(out, t)
			}
			if t.LastStable >= to {
				return out, nil // what comes after began behind the range
			}
		}
	}
	return out, nil
}

func (l *Log) abortedIn(s *segment.Segment) ([]producer.AbortedTxn, error) {
	name := l.home.File(s.Base, segment.TxnSuffix)
	b, err := vfs.ReadFile(l.dir.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []producer.AbortedTxn
	for ; len(b) >= producer.AbortedSize; b = b[producer.AbortedSize:] {
		t, err := producer.DecodeAborted(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, t)
	}
	return out, nil
}
