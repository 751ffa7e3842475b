// Package journal is the contract of the edit log: an ordered series of edits,
// each a batch of metadata records, written by one controller at a time and read
// by every broker and controller.
//
//	edit n: header{n, edit id, controller epoch, length, CRC32C, hash of the header of n-1} payload
//	payload: codec byte, then metadata records, zstd above 4 KiB (Pack, Unpack)
//
// filejournal/ keeps it in a folder, zkjournal/ in ZooKeeper; journaltest holds
// the suite that both pass. The rules are protocols.md A1–A4, A11, A12, H1.
package journal

import (
	"context"
	"errors"

	"varve/broker/kafka"
)

// A Number is the place of an edit in the log; the first is 1, 0 is "before all".
type Number int64

// An EditID names one attempt of one writer: writer in the high half, a counter in
// the low. A repeated append carries the same id (A2).
type EditID struct{ Writer, Count uint64 }

// An Edit is one entry of the log.
type Edit struct {
	N       Number
	ID      EditID
	Epoch   kafka.ControllerEpoch
	Hash    [32]byte // of this edit's header, which holds the hash before it (A11)
	Payload []byte   // packed metadata records, at most MaxPayload bytes
}

// MaxPayload bounds one edit's payload in bytes.
const MaxPayload = 512 << 10

// Errors that callers decide on.
var (
	// ErrFenced: another controller has taken the log; step down at once and keep
	// nothing (A4).
	ErrFenced = errors.New("journal: fenced by a later controller epoch")
	// ErrTrimmed: the edit asked for is gone; load a snapshot.
	ErrTrimmed = errors.New("journal: trimmed")
	// ErrDamaged: the log is not what was written; refuse to go on (H1).
	ErrDamaged = errors.New("journal: damaged")
)

// A Journal is one edit log.
type Journal interface {
	// Take begins a controller term: fences every older writer and returns the
	// term with the new epoch. After it the end of the log stands still for all
	// but the taker.
	Take(ctx context.Context, who string) (Term, error)
	// Read returns edits from n on, at least one, at most max bytes of payload;
	// none and no error at the end of the log. ErrTrimmed if n was trimmed.
	Read(ctx context.Context, n Number, max int) ([]Edit, error)
	// Wait returns when edit n is there, or with ErrTrimmed, or with ctx's error.
	Wait(ctx context.Context, n Number) error
	// LoadSnapshot returns the newest complete snapshot and the number of the last
	// edit it covers; 0, nil, nil where there is none.
	LoadSnapshot(ctx context.Context) (Snapshot, error)
	// Close ends the journal's use.
	Close() error
}

// A Snapshot is an image up to and including edit N.
type Snapshot struct {
	N     Number
	Hash  [32]byte // of edit N's header
	Image []byte   // packed as Pack does
}

// A Term is a controller's right to append. One append is in flight at a time (A1).
type Term interface {
	Epoch() kafka.ControllerEpoch
	// Append writes payload as the next edit and returns when it is durable. Any
	// error ends the term: ErrFenced, or the world's (a failed fsync ends it too).
	Append(ctx context.Context, payload []byte) (Edit, error)
	// Check proves that the term is still the newest (A3).
	Check(ctx context.Context) error
	// SaveSnapshot stores an image up to n durably and trims edits older than the
	// last two snapshots; the last edit is never trimmed.
	SaveSnapshot(ctx context.Context, s Snapshot) error
	// Resign ends the term without a successor.
	Resign()
}
