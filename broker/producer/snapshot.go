package producer

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"varve/broker/kafka"
)

const (
	snapshotVersion   = 1
	snapshotHead      = 2 + 4 + 4
	snapshotEntrySize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A CorruptError says why bytes are no snapshot.
type CorruptError struct{ Message string }

func (e *CorruptError) Error() string { return "producer snapshot: " + e.Message }

// MarshalSnapshot appends the state as a .snapshot file, ordered by producer id.
// Of each producer only the last batch is kept; the window fills again from the log.
func (s *State) MarshalSnapshot(dst []byte) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = binary.BigEndian.AppendUint32(dst, 0) // the checksum, below
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s.producers)))
	for _, pid := range s.ids() {
		p := s.producers[pid]
		last := batch{last: kafka.NoOffset}
		if p.n > 0 {
			last = p.newest()
		}
		dst = binary.BigEndian.AppendUint64(dst, uint64(pid))
		dst = binary.BigEndian.AppendUint16(dst, uint16(p.epoch))
		dst = binary.BigEndian.AppendUint32(dst, uint32(p.lastSeq()))
		dst = binary.BigEndian.AppendUint64(dst, uint64(last.last))
		dst = binary.BigEndian.AppendUint32(dst, uint32(last.delta))
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.seen))
		dst = binary.BigEndian.AppendUint32(dst, uint32(p.coordinatorEpoch))
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.txnFirst))
	}
	binary.BigEndian.PutUint32(dst[at+2:], crc32.Checksum(dst[at+6:], castagnoli))
	return dst
}

// UnmarshalSnapshot replaces the state by a snapshot's; a *CorruptError leaves it
// as it was.
func (s *State) UnmarshalSnapshot(b []byte) error {
	if len(b) < snapshotHead {
		return &CorruptError{fmt.Sprintf("%d bytes, want at least %d", len(b), snapshotHead)}
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return &CorruptError{fmt.Sprintf("version %d, want %d", v, snapshotVersion)}
	}
	if stored, sum := binary.BigEndian.Uint32(b[2:]), crc32.Checksum(b[6:], castagnoli); stored != sum {
		return &CorruptError{fmt.Sprintf("stored crc %d, computed crc %d", stored, sum)}
	}
	count := int64(int32(binary.BigEndian.Uint32(b[6:])))
	if rest := int64(len(b) - snapshotHead); count < 0 || rest != count*snapshotEntrySize {
		return &CorruptError{fmt.Sprintf("%d entries in %d bytes of %d each", count, rest, snapshotEntrySize)}
	}
	s.Reset()
	for b = b[snapshotHead:]; len(b) > 0; b = b[snapshotEntrySize:] {
		s.load(b)
	}
	return nil
}

func (s *State) load(b []byte) {
	pid := kafka.ProducerID(binary.BigEndian.Uint64(b))
	p := newProducer(kafka.ProducerEpoch(binary.BigEndian.Uint16(b[8:])))
	last := batch{
		lastSeq:   int32(binary.BigEndian.Uint32(b[10:])),
		last:      kafka.Offset(binary.BigEndian.Uint64(b[14:])),
		delta:     int32(binary.BigEndian.Uint32(b[22:])),
		timestamp: int64(binary.BigEndian.Uint64(b[26:])),
	}
	if last.last >= 0 {
		p.add(last)
	}
	p.seen = last.timestamp
	p.coordinatorEpoch = int32(binary.BigEndian.Uint32(b[34:]))
	p.txnFirst = kafka.Offset(binary.BigEndian.Uint64(b[38:]))
	if p.txnFirst >= 0 {
		s.open = insert(s.open, txn{pid: pid, first: p.txnFirst})
	} else {
		p.txnFirst = kafka.NoOffset
	}
	s.producers[pid] = p
	s.clock = max(s.clock, p.seen)
}
