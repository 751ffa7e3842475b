package container

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"
	"strconv"

	"varve/broker/kafka"
)

// A Tail is everything of a container behind its log, held to its checksums.
type Tail struct {
	*Footer
	bytes []byte // from the end of the log to the footer
}

// DecodeTail reads what stands behind the log: tail is the end of a file of size
// bytes. It answers a MoreError where tail does not reach back to the log.
func DecodeTail(tail []byte, size int64) (*Tail, error) {
	f, err := DecodeFooter(tail, size)
	if err != nil {
		return nil, err
	}
	need := size - f.Parts[Log].Size
	if int64(len(tail)) < need {
		return nil, &MoreError{need}
	}
	t := &Tail{Footer: f, bytes: tail[int64(len(tail))-need : int64(len(tail))-need+f.Parts[Sums].End()-f.Parts[Log].Size]}
	for p := OffsetIndex; p < parts; p++ {
		if err := f.Verify(p, t.Part(p)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Part is the bytes of a part other than the log.
func (t *Tail) Part(p Part) []byte {
	e := t.Parts[p]
	at := e.Pos - t.Parts[Log].Size
	return t.bytes[at : at+e.Size]
}

// Bytes is the memory that the tail holds on to.
func (t *Tail) Bytes() int64 { return int64(len(t.bytes)) + 1024 }

// Position is where to begin looking for offset o: the start of a batch at or before
// the one that holds it.
func (t *Tail) Position(o kafka.Offset) int64 {
	ix := t.Part(OffsetIndex)
	n := len(ix) / 8
	i := sort.Search(n, func(i int) bool {
		return t.Base+kafka.Offset(binary.BigEndian.Uint32(ix[8*i:])) > o
	})
	if i == 0 {
		return 0
	}
	return int64(binary.BigEndian.Uint32(ix[8*(i-1)+4:]))
}

// OffsetForTime is where to begin looking for the first record with a timestamp of at
// least ts: all records before that offset are older.
func (t *Tail) OffsetForTime(ts int64) kafka.Offset {
	ix := t.Part(TimeIndex)
	n := len(ix) / 12
	i := sort.Search(n, func(i int) bool { return int64(binary.BigEndian.Uint64(ix[12*i:])) >= ts })
	if i == 0 {
		return t.Base
	}
	return t.Base + kafka.Offset(binary.BigEndian.Uint32(ix[12*(i-1)+8:])) + 1
}

// CheckChunk holds bytes of the log that begin at pos, a multiple of SumBytes, to the
// sums. b ends at a multiple of SumBytes or at the log's end.
func (t *Tail) CheckChunk(pos int64, b []byte) error {
	sums := t.Part(Sums)
	for len(b) > 0 {
		n := min(len(b), SumBytes)
		want := binary.BigEndian.Uint32(sums[4*(pos/SumBytes):])
		if got := crc32.Checksum(b[:n], castagnoli); got != want {
			return corrupt("log", "bytes %d to %d: CRC32C is %08x, want %08x", pos, pos+int64(n), got, want)
		}
		pos, b = pos+int64(n), b[n:]
	}
	return nil
}

// abortedSize is the length in bytes of one entry of txn index and aborted.
const abortedSize = 34

// An AbortedTxn is a transaction whose records a reader of committed ones skips: those
// of Producer with offsets First to Last, the abort marker's.
type AbortedTxn struct {
	Producer    kafka.ProducerID
	First, Last kafka.Offset
	LastStable  kafka.Offset
}

// AppendAborted writes entries as Kafka's txn index has them.
func AppendAborted(dst []byte, txns []AbortedTxn) []byte {
	for _, t := range txns {
		dst = binary.BigEndian.AppendUint16(dst, 0)
		dst = binary.BigEndian.AppendUint64(dst, uint64(t.Producer))
		dst = binary.BigEndian.AppendUint64(dst, uint64(t.First))
		dst = binary.BigEndian.AppendUint64(dst, uint64(t.Last))
		dst = binary.BigEndian.AppendUint64(dst, uint64(t.LastStable))
	}
	return dst
}

// DecodeAborted reads the entries of an aborted part or a txn index.
func DecodeAborted(b []byte) ([]AbortedTxn, error) {
	if len(b)%abortedSize != 0 {
		return nil, corrupt("aborted", "%d bytes are no multiple of %d", len(b), abortedSize)
	}
	be := binary.BigEndian
	out := make([]AbortedTxn, 0, len(b)/abortedSize)
	for ; len(b) > 0; b = b[abortedSize:] {
		if v := be.Uint16(b); v != 0 {
			return nil, corrupt("aborted", "entry of version %d, want 0", v)
		}
		out = append(out, AbortedTxn{kafka.ProducerID(be.Uint64(b[2:])), kafka.Offset(be.Uint64(b[10:])),
			kafka.Offset(be.Uint64(b[18:])), kafka.Offset(be.Uint64(b[26:]))})
	}
	return out, nil
}

// AppendEpochs writes leader epochs as Kafka's leader-epoch-checkpoint has them.
func AppendEpochs(dst []byte, epochs []kafka.EpochStart) []byte {
	dst = fmt.Appendf(dst, "0\n%d\n", len(epochs))
	for _, e := range epochs {
		dst = fmt.Appendf(dst, "%d %d\n", e.Epoch, e.Start)
	}
	return dst
}

// DecodeEpochs reads an epochs part.
func DecodeEpochs(b []byte) ([]kafka.EpochStart, error) {
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	if len(lines) < 2 || string(lines[0]) != "0" || string(lines[1]) != strconv.Itoa(len(lines)-2) {
		return nil, corrupt("epochs", "no leader-epoch checkpoint of version 0: %.40q", b)
	}
	out := make([]kafka.EpochStart, 0, len(lines)-2)
	for _, l := range lines[2:] {
		e, s, ok := bytes.Cut(l, []byte(" "))
		epoch, err1 := strconv.ParseInt(string(e), 10, 32)
		start, err2 := strconv.ParseInt(string(s), 10, 64)
		if !ok || err1 != nil || err2 != nil || epoch < 0 || start < 0 {
			return nil, corrupt("epochs", "line %q", l)
		}
		out = append(out, kafka.EpochStart{Epoch: kafka.LeaderEpoch(epoch), Start: kafka.Offset(start)})
	}
	return out, nil
}

// Cut is the last start of a batch after from and at or before to that the index
// knows, with an offset that no record before it reaches; the log's end is one too.
// ok is false where there is none.
func (t *Tail) Cut(from, to int64) (pos int64, upper kafka.Offset, ok bool) {
	if end := t.Parts[Log].Size; to >= end && from < end {
		return end, t.End + 1, true
	}
	ix := t.Part(OffsetIndex)
	i := sort.Search(len(ix)/8, func(i int) bool { return int64(binary.BigEndian.Uint32(ix[8*i+4:])) > to })
	if i == 0 {
		return 0, 0, false
	}
	e := ix[8*(i-1):]
	pos = int64(binary.BigEndian.Uint32(e[4:]))
	return pos, t.Base + kafka.Offset(binary.BigEndian.Uint32(e)), pos > from
}
