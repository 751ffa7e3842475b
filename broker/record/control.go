package record

import (
	"encoding/binary"
	"fmt"
)

// A ControlType says what a control record does; it is the second number of its key.
type ControlType int16

// The control records of transactions.
const (
	ControlAbort  ControlType = 0
	ControlCommit ControlType = 1
)

// An EndTxnMarker ends a transaction. As a record of a control batch:
//
//	key    version i16 = 0 | type i16 (0 abort, 1 commit)
//	value  version i16 = 0 | coordinator epoch i32
type EndTxnMarker struct {
	Commit           bool
	CoordinatorEpoch int32
}

// AppendEndTxn appends the control batch with m to dst, as the partition's leader
// writes it for the producer at time now (ms).
func AppendEndTxn(dst []byte, p Producer, m EndTxnMarker, now int64) []byte {
	var key [4]byte
	if m.Commit {
		binary.BigEndian.PutUint16(key[2:], uint16(ControlCommit))
	}
	var value [6]byte
	binary.BigEndian.PutUint32(value[2:], uint32(m.CoordinatorEpoch))
	p.Sequence = -1
	w := Builder{Producer: &p, Transactional: true, Control: true}
	w.Add(Record{Timestamp: now, Key: key[:], Value: value[:]})
	return w.AppendTo(dst)
}

// ControlType is the type of a control batch's record; ok is false where its key is
// not one.
func (b Batch) ControlType() (t ControlType, ok bool) {
	r, err := b.only()
	if err != nil || len(r.Key) < 4 {
		return 0, false
	}
	return ControlType(binary.BigEndian.Uint16(r.Key[2:])), true
}

// EndTxn reads the marker of a control batch. ok is false for a control record of
// another type, which is skipped by whoever does not know it.
func (b Batch) EndTxn() (m EndTxnMarker, ok bool, err error) {
	r, err := b.only()
	if err != nil {
		return m, false, err
	}
	if len(r.Key) < 4 {
		return m, false, &CorruptError{fmt.Sprintf("control record at offset %d has a key of %d bytes, want 4", r.Offset, len(r.Key))}
	}
	t := ControlType(binary.BigEndian.Uint16(r.Key[2:]))
	if t != ControlAbort && t != ControlCommit {
		return m, false, nil
	}
	if len(r.Value) < 6 {
		return m, false, &CorruptError{fmt.Sprintf("end marker at offset %d has a value of %d bytes, want 6", r.Offset, len(r.Value))}
	}
	m.Commit = t == ControlCommit
	m.CoordinatorEpoch = int32(binary.BigEndian.Uint32(r.Value[2:]))
	return m, true, nil
}

// only is the one record of a control batch.
func (b Batch) only() (Record, error) {
	var r Record
	it := b.Records(nil)
	if !it.Next(&r) {
		if it.Err() != nil {
			return r, it.Err()
		}
		return r, &CorruptError{fmt.Sprintf("control batch at offset %d has no record", b.BaseOffset())}
	}
	return r, nil
}
