package producer

import (
	"encoding/binary"
	"fmt"
	"slices"

	"varve/broker/kafka"
)

// A txn is one transaction on this partition.
type txn struct {
	pid    kafka.ProducerID
	first  kafka.Offset
	marker kafka.Offset // of a decided one
}

func insert(txns []txn, t txn) []txn {
	i, _ := slices.BinarySearchFunc(txns, t, func(a, b txn) int { return int(min(1, max(-1, a.first-b.first))) })
	return slices.Insert(txns, i, t)
}

// A Marker is the end of a transaction, as a control batch in the log says it.
type Marker struct {
	PID              kafka.ProducerID
	Epoch            kafka.ProducerEpoch
	Commit           bool
	Offset           kafka.Offset // of the marker
	CoordinatorEpoch int32
	Timestamp        int64 // ms
	// Version is the transactions' version that the coordinator spoke: with 2 a marker
	// carries the bumped epoch (KIP-890). Only CheckMarker looks at it.
	Version int
}

// CheckMarker decides whether a coordinator may write a marker: not for an epoch
// that has passed, and not in an older term than another's before it
// (protocols §3-13). A repetition by version 2, with nothing open, is allowed.
func (s *State) CheckMarker(m Marker) *kafka.Error {
	p := s.producers[m.PID]
	if p == nil {
		return nil
	}
	stale := m.Epoch < p.epoch
	if m.Version >= 2 {
		again := m.Epoch == p.epoch && p.txnFirst == kafka.NoOffset
		stale = m.Epoch <= p.epoch && !again
	}
	if stale {
		return s.refuseEpoch(m.PID, m.Offset, m.Epoch, p.epoch, m.Version)
	}
	if m.CoordinatorEpoch < p.coordinatorEpoch {
		return kafka.Refuse(kafka.TransactionCoordinatorFenced, "Invalid coordinator epoch for producerId %d at offset %d in partition %v: "+
			"%d (zombie), %d (current)", m.PID, m.Offset, s.params.Partition, m.CoordinatorEpoch, p.coordinatorEpoch)
	}
	return nil
}

// Marker takes note of a marker that lies in the log. It returns what the index of
// aborted transactions must keep, or nil: the transaction was committed, or there
// was none.
func (s *State) Marker(m Marker) *AbortedTxn {
	s.clock = max(s.clock, m.Timestamp)
	p := s.producers[m.PID]
	if p == nil {
		p = newProducer(m.Epoch)
		s.producers[m.PID] = p
	}
	p.setEpoch(m.Epoch)
	p.seen = s.clock
	p.coordinatorEpoch = m.CoordinatorEpoch
	if p.txnFirst == kafka.NoOffset {
		return nil
	}
	t := txn{m.PID, p.txnFirst, m.Offset}
	p.txnFirst = kafka.NoOffset
	s.open = slices.DeleteFunc(s.open, func(o txn) bool { return o.pid == m.PID })
	s.decided = insert(s.decided, t)
	if m.Commit {
		return nil
	}
	stable := m.Offset + 1
	if len(s.open) > 0 {
		stable = s.open[0].first
	}
	return &AbortedTxn{m.PID, t.first, t.marker, stable}
}

// FirstUnstable is the last stable offset under the high watermark hw: readers of
// committed records see what is below. It is held back by transactions that are
// open and by those whose marker is not below hw, since a new leader may lack that
// marker (KAFKA-5121).
func (s *State) FirstUnstable(hw kafka.Offset) kafka.Offset {
	stable := hw
	if len(s.open) > 0 {
		stable = min(stable, s.open[0].first)
	}
	for _, t := range s.decided {
		if t.marker >= hw {
			return min(stable, t.first)
		}
	}
	return stable
}

// Revealed forgets the transactions that were decided below the high watermark hw.
func (s *State) Revealed(hw kafka.Offset) {
	if len(s.decided) > 0 {
		s.decided = slices.DeleteFunc(s.decided, func(t txn) bool { return t.marker < hw })
	}
}

// OpenTxns is the number of transactions that are open.
func (s *State) OpenTxns() int { return len(s.open) }

// An AbortedTxn says that the records of PID in [First, Last] are void. Last is the
// marker's offset; LastStable is where the last stable offset stood with it.
type AbortedTxn struct {
	PID                     kafka.ProducerID
	First, Last, LastStable kafka.Offset
}

// AbortedSize is the bytes of an entry of a .txnindex file.
const AbortedSize = 34

// EncodeAborted appends t as an entry of a .txnindex file.
func EncodeAborted(dst []byte, t AbortedTxn) []byte {
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.PID))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.First))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.Last))
	return binary.BigEndian.AppendUint64(dst, uint64(t.LastStable))
}

// DecodeAborted reads the entry at the start of b.
func DecodeAborted(b []byte) (AbortedTxn, error) {
	var t AbortedTxn
	if len(b) < AbortedSize {
		return t, fmt.Errorf("transaction index: entry of %d bytes, want %d", len(b), AbortedSize)
	}
	if v := binary.BigEndian.Uint16(b); v != 0 {
		return t, fmt.Errorf("transaction index: entry of version %d, want 0", v)
	}
	t.PID = kafka.ProducerID(binary.BigEndian.Uint64(b[2:]))
	t.First = kafka.Offset(binary.BigEndian.Uint64(b[10:]))
	t.Last = kafka.Offset(binary.BigEndian.Uint64(b[18:]))
	t.LastStable = kafka.Offset(binary.BigEndian.Uint64(b[26:]))
	if t.First < 0 || t.Last < t.First {
		return t, fmt.Errorf("transaction index: entry of producer %d from %d to %d", t.PID, t.First, t.Last)
	}
	return t, nil
}
