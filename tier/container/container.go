// Package container is the format of an offloaded segment: one file, the log first.
//
//	log bytes            record batches, byte for byte as on the broker's disk
//	offset index         8 bytes each: u32 last offset - base, u32 position   (.index)
//	time index           12 bytes each: i64 timestamp, u32 offset - base      (.timeindex)
//	txn index            34 bytes each, aborted transactions whose marker is here (.txnindex)
//	producers            the producer snapshot at end+1                       (.snapshot)
//	leader epochs        "0\n<n>\n<epoch> <start>\n…", all up to end+1
//	aborted              34 bytes each as in the txn index: every aborted transaction
//	                     that overlaps the container, wherever its marker is (T6)
//	sums                 u32 each: CRC32C of each MiB of the log bytes
//	footer               JSON, see Footer
//	u32                  CRC32C of the footer
//	u32                  length of the footer in bytes
//	"VARVSEG1"           8 bytes
//
// All numbers are big endian. Whatever reads Kafka's logs reads the prefix; what reads
// containers begins with the last 16 bytes. Positions are 64-bit everywhere but in the
// offset index, which is Kafka's: a container's log is below 4 GiB. There is no host,
// path or cluster in the file: copied elsewhere it is read where it lies.
//
// Batch readers need no other part than log and aborted. A broker reads everything
// behind the log in one go, then ranges of the log, whose bytes it holds to sums.
package container

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"varve/broker/kafka"
)

const (
	// TrailerSize is what stands behind the footer: its CRC, its length, the magic.
	TrailerSize = 16
	// SumBytes is how many bytes of the log one entry of sums covers.
	SumBytes = 1 << 20
	// SplitBytes is about how far apart the entries of the split table are.
	SplitBytes = 64 << 20
	// LogMax is the length in bytes that a container's log stays below.
	LogMax = 1 << 32

	footerMax = 16 << 20
	magic     = "VARVSEG1"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Part is one of the stretches of a container, in the order in which they lie.
type Part int

// The parts.
const (
	Log Part = iota
	OffsetIndex
	TimeIndex
	TxnIndex
	Producers
	Epochs
	Aborted
	Sums
	parts
)

var partNames = [parts]string{"log", "offsetIndex", "timeIndex", "txnIndex", "producers", "epochs", "aborted", "sums"}

func (p Part) String() string { return partNames[p] }

// An Extent is where a part lies and what it sums to.
type Extent struct {
	Pos  int64  `json:"pos"`
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
}

// End is the position after the part.
func (e Extent) End() int64 { return e.Pos + e.Size }

// A Split is a place in the log where a reader may begin: the first byte of the batch
// whose base offset is Offset.
type Split struct {
	Pos    int64        `json:"pos"`
	Offset kafka.Offset `json:"offset"`
}

// An Epoch is a leader epoch of the container's records.
type Epoch struct {
	Epoch kafka.LeaderEpoch `json:"epoch"`
	Start kafka.Offset      `json:"start"`
}

// A Footer says what is in a container and where.
type Footer struct {
	Requires     []string          `json:"requires,omitempty"` // features without which it cannot be read
	ID           string            `json:"id"`                 // uuid of the upload
	Topic        string            `json:"topic"`
	TopicID      string            `json:"topicId"`
	Partition    int32             `json:"partition"`
	Base         kafka.Offset      `json:"base"` // first offset
	End          kafka.Offset      `json:"end"`  // last offset, inclusive
	LeaderEpoch  kafka.LeaderEpoch `json:"leaderEpoch"`
	Broker       kafka.BrokerID    `json:"broker"`
	Epochs       []Epoch           `json:"epochs"` // of its records; the first is clamped to Base
	MaxTimestamp int64             `json:"maxTs"`
	Batches      int64             `json:"batches"`
	Records      int64             `json:"records"` // control records included
	Splits       []Split           `json:"splits"`  // the first is the log's start
	Parts        [parts]Extent     `json:"-"`
	Extents      map[string]Extent `json:"parts"` // Parts by name, as it is written
}

// features are those that this reader knows; there are none yet.
var features []string

// A FeatureError says which feature of a container this reader lacks.
type FeatureError struct{ Feature string }

func (e *FeatureError) Error() string {
	return fmt.Sprintf("the container requires %q, which this version cannot read", e.Feature)
}

// A CorruptError says what in a container is not as its writer left it.
type CorruptError struct {
	Part string
	Err  error
}

func (e *CorruptError) Error() string { return fmt.Sprintf("corrupt %s: %v", e.Part, e.Err) }

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

func corrupt(part string, format string, args ...any) error {
	return &CorruptError{Part: part, Err: fmt.Errorf(format, args...)}
}

// ErrMore is the kind of a MoreError.
var ErrMore = errors.New("more of the file's end is needed")

// A MoreError says how many bytes of the file's end DecodeFooter wants to see.
type MoreError struct{ Need int64 }

func (e *MoreError) Error() string {
	return fmt.Sprintf("the footer needs the file's last %d bytes", e.Need)
}

// Unwrap makes errors.Is(err, ErrMore) true.
func (e *MoreError) Unwrap() error { return ErrMore }

// appendTo writes footer and trailer.
func (f *Footer) appendTo(dst []byte) []byte {
	f.Extents = make(map[string]Extent, parts)
	for p, e := range f.Parts {
		f.Extents[Part(p).String()] = e
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("container: footer cannot be written: %v", err))
	}
	dst = append(dst, b...)
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(b, castagnoli))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, magic...)
}

// DecodeFooter reads the footer from tail, the last bytes of a file of size bytes. It
// answers a MoreError where tail is too short.
func DecodeFooter(tail []byte, size int64) (*Footer, error) {
	if int64(len(tail)) > size {
		return nil, corrupt("footer", "%d bytes of a file of %d", len(tail), size)
	}
	if size < TrailerSize {
		return nil, corrupt("footer", "a file of %d bytes cannot hold one", size)
	}
	if len(tail) < TrailerSize {
		return nil, &MoreError{TrailerSize}
	}
	t := tail[len(tail)-TrailerSize:]
	if string(t[8:]) != magic {
		return nil, corrupt("footer", "the file ends with %q, want %q: truncated, or no container", t[8:], magic)
	}
	n := int64(binary.BigEndian.Uint32(t[4:]))
	if n > footerMax || n > size-TrailerSize {
		return nil, corrupt("footer", "its length is said to be %d in a file of %d", n, size)
	}
	if int64(len(tail)) < n+TrailerSize {
		return nil, &MoreError{n + TrailerSize}
	}
	b := tail[int64(len(tail))-TrailerSize-n : len(tail)-TrailerSize]
	if got, want := crc32.Checksum(b, castagnoli), binary.BigEndian.Uint32(t); got != want {
		return nil, corrupt("footer", "CRC32C is %08x, want %08x", got, want)
	}
	f := new(Footer)
	if err := json.Unmarshal(b, f); err != nil {
		return nil, corrupt("footer", "%w", err)
	}
	for _, r := range f.Requires {
		if !slices.Contains(features, r) {
			return nil, &FeatureError{r}
		}
	}
	return f, f.check(size - TrailerSize - n)
}

// check holds a footer to the file it was read from, whose parts end at end.
func (f *Footer) check(end int64) error {
	at := int64(0)
	for p := range parts {
		e, ok := f.Extents[p.String()]
		if !ok || e.Pos != at || e.Size < 0 || e.Size > end-at {
			return corrupt("footer", "part %s lies at %d with %d bytes, want it from %d up to %d at most", p, e.Pos, e.Size, at, end)
		}
		f.Parts[p], at = e, e.End()
	}
	log := f.Parts[Log].Size
	switch {
	case at != end:
		return corrupt("footer", "the parts end at %d, the footer begins at %d", at, end)
	case log == 0 || log >= LogMax:
		return corrupt("footer", "%d bytes of log", log)
	case f.Base < 0 || f.End < f.Base:
		return corrupt("footer", "offsets %d to %d", f.Base, f.End)
	case f.Parts[Sums].Size != 4*((log+SumBytes-1)/SumBytes):
		return corrupt("footer", "%d bytes of sums for %d bytes of log", f.Parts[Sums].Size, log)
	case len(f.Epochs) == 0:
		return corrupt("footer", "no leader epochs")
	case len(f.Splits) == 0 || f.Splits[0].Pos != 0:
		return corrupt("footer", "the splits do not begin at the log's start")
	}
	for i, s := range f.Splits {
		if i > 0 && (s.Pos <= f.Splits[i-1].Pos || s.Offset <= f.Splits[i-1].Offset) || s.Pos >= log || s.Offset > f.End {
			return corrupt("footer", "split %d at %d, offset %d", i, s.Pos, s.Offset)
		}
	}
	return nil
}

// Size is the length in bytes of the whole file.
func (f *Footer) Size() int64 {
	return f.Parts[Sums].End() + int64(len(f.appendTo(nil)))
}

// Verify holds the bytes of a whole part to the footer.
func (f *Footer) Verify(p Part, b []byte) error {
	e := f.Parts[p]
	if int64(len(b)) != e.Size {
		return corrupt(p.String(), "%d bytes, want %d", len(b), e.Size)
	}
	if got := crc32.Checksum(b, castagnoli); got != e.CRC {
		return corrupt(p.String(), "CRC32C is %08x, want %08x", got, e.CRC)
	}
	return nil
}
