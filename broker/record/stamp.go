package record

import (
	"encoding/binary"
	"hash/crc32"

	"varve/broker/kafka"
)

// castagnoli is CRC32C. The standard library computes it with SSE4.2 or the ARM
// instructions; BenchmarkCRC measures it against klauspost/crc32, which gains nothing here.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC is the checksum that the batch carries.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[17:]) }

// ValidCRC tells whether the batch's bytes match its checksum.
func (b Batch) ValidCRC() bool { return b.sum() == b.CRC() }

func (b Batch) sum() uint32 { return crc32.Checksum(b[crcStart:], castagnoli) }

// Stamp writes what the leader adds to a batch: where it lies and in whose epoch.
// Both lie outside the checksum.
func (b Batch) Stamp(base kafka.Offset, epoch kafka.LeaderEpoch) {
	binary.BigEndian.PutUint64(b, uint64(base))
	binary.BigEndian.PutUint32(b[12:], uint32(epoch))
}

// SetMaxTimestamp writes the highest timestamp in ms and whether it is the time of
// the append, and computes the checksum again if either is news.
func (b Batch) SetMaxTimestamp(ms int64, logAppend bool) {
	if b.MaxTimestamp() == ms && b.LogAppendTime() == logAppend {
		return
	}
	binary.BigEndian.PutUint64(b[35:], uint64(ms))
	b[22] &^= appendTimeBit
	if logAppend {
		b[22] |= appendTimeBit
	}
	binary.BigEndian.PutUint32(b[17:], b.sum())
}
