package container

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"varve/broker/kafka"
	"varve/broker/record"
)

// A Writer streams one container: the log by Write, as often as it takes, then Finish.
// It reads the batches as they pass, so that what the footer says is counted, not
// told, and a batch that its CRC does not fit never leaves the broker.
type Writer struct {
	w      io.Writer
	footer Footer
	pos    int64
	crc    uint32
	sum    uint32 // of the current MiB
	sums   []byte
	batch  walker
	err    error
}

// NewWriter begins a container. Of f it takes what the writer knows: ID, topic,
// partition, Base, End, LeaderEpoch, Broker, Epochs; the rest is counted.
func NewWriter(w io.Writer, f Footer) *Writer {
	f.Splits, f.Batches, f.Records, f.MaxTimestamp = nil, 0, 0, math.MinInt64
	return &Writer{w: w, footer: f, batch: walker{next: f.Base}}
}

// Write takes the next bytes of the log.
func (w *Writer) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.err = w.batch.walk(b, w.pos, &w.footer); w.err != nil {
		return 0, w.err
	}
	for rest := b; len(rest) > 0; {
		n := min(len(rest), SumBytes-int(w.pos%SumBytes))
		w.sum = crc32.Update(w.sum, castagnoli, rest[:n])
		w.crc = crc32.Update(w.crc, castagnoli, rest[:n])
		if w.pos += int64(n); w.pos%SumBytes == 0 {
			w.endSum()
		}
		rest = rest[n:]
	}
	_, w.err = w.w.Write(b)
	return len(b), w.err
}

func (w *Writer) endSum() {
	w.sums = binary.BigEndian.AppendUint32(w.sums, w.sum)
	w.sum = 0
}

// Parts are the small parts of a container, as they are written.
type Parts struct {
	OffsetIndex, TimeIndex, TxnIndex, Producers, Epochs, Aborted []byte
}

// Finish writes what follows the log and gives the footer. The log must have ended
// with the last byte of the batch that holds offset End.
func (w *Writer) Finish(p Parts) (*Footer, error) {
	if w.err != nil {
		return nil, w.err
	}
	if err := w.batch.end(w.footer.End); err != nil {
		return nil, err
	}
	if w.pos >= LogMax {
		return nil, fmt.Errorf("a container's log stays below %d bytes, this has %d", int64(LogMax), w.pos)
	}
	if w.pos%SumBytes != 0 {
		w.endSum()
	}
	w.footer.Parts[Log] = Extent{0, w.pos, w.crc}
	all := [parts][]byte{OffsetIndex: p.OffsetIndex, TimeIndex: p.TimeIndex, TxnIndex: p.TxnIndex,
		Producers: p.Producers, Epochs: p.Epochs, Aborted: p.Aborted, Sums: w.sums}
	var rest []byte
	for part := OffsetIndex; part < parts; part++ {
		b := all[part]
		w.footer.Parts[part] = Extent{w.pos + int64(len(rest)), int64(len(b)), crc32.Checksum(b, castagnoli)}
		rest = append(rest, b...)
	}
	rest = w.footer.appendTo(rest)
	if _, err := w.w.Write(rest); err != nil {
		return nil, err
	}
	w.pos += int64(len(rest))
	return &w.footer, nil
}

// Size is the number of bytes written so far.
func (w *Writer) Size() int64 { return w.pos }

// SizeEstimate is an upper bound of a container's length, for stores that allocate
// blocks before they are written: log bytes, small parts, a footer.
func SizeEstimate(log int64, p Parts, epochs int) int64 {
	n := log + int64(len(p.OffsetIndex)+len(p.TimeIndex)+len(p.TxnIndex)+len(p.Producers)+len(p.Epochs)+len(p.Aborted))
	n += 4 * (log/SumBytes + 1)
	return n + 2048 + 64*int64(epochs) + 64*(log/SplitBytes+1)
}

// A walker follows the batches of a log through pieces cut anywhere.
type walker struct {
	next   kafka.Offset // base offset that the next batch has at least
	base   kafka.Offset // of the batch under way
	last   kafka.Offset
	head   [record.HeaderSize]byte
	have   int   // bytes of head that are there
	left   int64 // bytes of the batch that are still to come
	sum    uint32
	want   uint32
	splits int64 // position from which on the next split is due
}

// walk takes the next bytes, which begin at pos.
func (k *walker) walk(b []byte, pos int64, f *Footer) error {
	for len(b) > 0 {
		if k.left == 0 {
			n := copy(k.head[k.have:], b)
			k.have += n
			pos += int64(n)
			b = b[n:]
			if k.have < record.HeaderSize {
				return nil
			}
			if err := k.begin(pos-record.HeaderSize, f); err != nil {
				return err
			}
		}
		n := min(int64(len(b)), k.left)
		k.sum = crc32.Update(k.sum, castagnoli, b[:n])
		k.left -= n
		pos += n
		b = b[n:]
		if k.left == 0 {
			if k.sum != k.want {
				return corrupt("log", "batch at offset %d: CRC32C is %08x, want %08x", k.base, k.sum, k.want)
			}
			k.have, k.next = 0, k.last+1
		}
	}
	return nil
}

// begin reads the header of the batch at pos.
func (k *walker) begin(pos int64, f *Footer) error {
	b := record.Batch(k.head[:])
	size := record.SizeOf(b)
	k.base, k.last = b.BaseOffset(), b.LastOffset()
	switch {
	case b[16] != 2:
		return corrupt("log", "batch at position %d has magic %d, want 2", pos, b[16])
	case size < record.HeaderSize:
		return corrupt("log", "batch at position %d is said to have %d bytes", pos, size)
	case k.base < k.next || k.last < k.base || b.Count() < 0 || k.last > f.End:
		return corrupt("log", "batch at position %d has offsets %d to %d, want them within %d to %d", pos, k.base, k.last, k.next, f.End)
	}
	if pos >= k.splits {
		f.Splits = append(f.Splits, Split{pos, k.base})
		k.splits = pos + SplitBytes
	}
	f.Batches++
	f.Records += int64(b.Count())
	f.MaxTimestamp = max(f.MaxTimestamp, b.MaxTimestamp())
	k.left = size - record.HeaderSize
	k.want, k.sum = b.CRC(), crc32.Checksum(b[21:], castagnoli)
	return nil
}

// end holds the log's end to the last offset it is to have.
func (k *walker) end(last kafka.Offset) error {
	switch {
	case k.left > 0 || k.have > 0:
		return corrupt("log", "it ends inside the batch at offset %d", k.base)
	case k.next != last+1:
		return corrupt("log", "it ends at offset %d, want %d", k.next-1, last)
	}
	return nil
}
