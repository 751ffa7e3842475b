package archive

import (
	"io"
	"time"

	"varve/broker/kafka"
	"varve/tier/container"
)

// A Log is what the archive asks of a partition's log on this broker. Its methods are
// safe for concurrent use and do not call back.
type Log interface {
	// Offsets is one consistent look.
	Offsets() Offsets
	// Segments are the local segments in order; the last is the active one.
	Segments() []Segment
	// Epochs is the history of leader epochs, from the log start on.
	Epochs() []kafka.EpochStart
	// Config is how the topic is to be kept now.
	Config() Config
	// Begin makes a log that ends below the tier's run begin behind it, with what the
	// seed says, before anything is appended (T12).
	Begin(s Seed) error
	// Export holds the local files and gives what a container of exactly that range
	// needs. The range begins and ends at batch boundaries and below the LSO.
	Export(r kafka.Range) (*Export, error)
	// Roll closes the active segment, if it has records.
	Roll() error
	// SetTiered tells where the tier's gap-free run ends now: what followers and
	// ListOffsets -5 are told. It may come down once, with a new leadership.
	SetTiered(next kafka.Offset)
	// SetLogStart raises the log start; lower values are ignored (§3-9).
	SetLogStart(o kafka.Offset) error
	// DropLocal removes local segments that end at or before upTo, never the active
	// one: the local start rises before files go.
	DropLocal(upTo kafka.Offset) (segments int, bytes int64, err error)
}

// Offsets are the marks of a log.
type Offsets struct {
	LogStart, LocalStart, HighWatermark, LastStable, End kafka.Offset
}

// A Segment is one local segment.
type Segment struct {
	Base, Next     kafka.Offset // [Base, Next)
	Size           int64        // bytes
	FirstTimestamp int64        // ms, of its first batch; -1 not known
	MaxTimestamp   int64        // ms
}

// Config is how a topic is kept. Limits below 0 are none; local ones are resolved (-2
// has become the total).
type Config struct {
	RetentionMs, RetentionBytes           int64
	LocalRetentionMs, LocalRetentionBytes int64
	CopyDisabled                          bool          // remote.log.copy.disable (KIP-950)
	UploadInterval                        time.Duration // tier.upload.interval.ms; 0 = never roll for it
}

// An Export is the content of one container.
type Export struct {
	LogSize  int64                               // bytes
	WriteLog func(w io.Writer, buf []byte) error // in pieces of len(buf)
	Epochs   []kafka.EpochStart                  // of the records; the first is clamped to the range
	Parts    container.Parts
	Release  func() // lets the local files go
}
