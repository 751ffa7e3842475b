// Package tier is the contract of remote storage: what a Store must promise, and
// the names under a tier root.
//
//	<root>/<cluster>/topics/<topic>/<topic id>/<partition>/
//	    segments/<base 20>-<end 20>-<epoch>-<uuid>.seg     containers: complete, never changed
//	    manifest/<version 20>.json                          the chain; the highest counts
//	    _inprogress/…                                       being written
//
// Everything that publishes is a rename that refuses to overwrite: that is the
// compare-and-swap under the manifest chain (protocols.md T). Stores are local/
// (a directory) and hdfs/; tiertest holds the suite that both pass.
package tier

import (
	"context"
	"errors"
	"io"
	"time"
)

// Errors that callers decide on. A Store wraps them with what was being done to
// what; test with errors.Is.
var (
	// ErrNotFound: the file or folder is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists: the target of a rename or create is there already.
	ErrExists = errors.New("already exists")
	// ErrUnsettled: the outcome is not known and could not be settled in time;
	// whatever the call names must not be deleted (T1).
	ErrUnsettled = errors.New("outcome unknown")
	// ErrUnavailable: the store is away, in safe mode, or slow; try again later.
	ErrUnavailable = errors.New("store unavailable")
	// ErrFull: no space or a quota is exceeded; keep local data, try again later.
	ErrFull = errors.New("store full")
	// ErrDenied: no permission; an operator is needed.
	ErrDenied = errors.New("permission denied")
)

// A FileInfo is what a listing or a stat tells of one file or folder.
type FileInfo struct {
	Name    string // last element
	Size    int64  // bytes; 0 for a folder
	Dir     bool
	ModTime time.Time
	Hosts   []string // hosts of the first block, where a listing with locations was asked for
}

// CreateOptions say what is known of a file before it is written.
type CreateOptions struct {
	// Size is the most bytes that will come, and close to their number: stores with
	// blocks take a block of that size rounded up to their checksum chunk. A longer
	// file is refused, a shorter one is for the caller to notice. 0 = not known.
	Size int64
}

// A Store keeps files under one root. Names are slash-separated, relative to the
// root, without ".." or empty elements. Methods are safe for concurrent use, and
// return when ctx ends (with ErrUnsettled where a change may have happened).
type Store interface {
	// Create makes a new file for writing; its folder must exist (ErrNotFound),
	// the file must not (ErrExists). The file is complete and durable when Close
	// of the Writer returned nil, and only then.
	Create(ctx context.Context, name string, opt CreateOptions) (Writer, error)
	// Open opens a complete file for ranged reads.
	Open(ctx context.Context, name string) (Reader, error)
	// Rename moves a file without overwriting: ErrExists if the target is there,
	// ErrNotFound if the source or the target's folder is not. An unknown outcome
	// is settled inside (same call again, or by looking); only what cannot be
	// settled is ErrUnsettled.
	Rename(ctx context.Context, from, to string) error
	// Delete removes a file or an empty folder; absent is no error.
	Delete(ctx context.Context, name string) error
	// DeleteAll removes a folder and all in it; absent is no error.
	DeleteAll(ctx context.Context, name string) error
	// Mkdir makes one folder (0750) whose parent must exist; there already is no error.
	Mkdir(ctx context.Context, name string) error
	// MkdirAll makes a folder and its parents.
	MkdirAll(ctx context.Context, name string) error
	// Stat looks at one name.
	Stat(ctx context.Context, name string) (FileInfo, error)
	// List lists a folder in order of names. ErrNotFound if it is not there.
	List(ctx context.Context, dir string) ([]FileInfo, error)
	// LiveReplicas tells how many replicas each block of the file has at least now,
	// and how many there are to be (T11). A store without replicas says 1, 1.
	LiveReplicas(ctx context.Context, name string) (live, want int, err error)
	// URL is the root as an operator writes it, for messages.
	URL() string
	// Grace is how long a committed file must have been there before local copies
	// may go: 60 s where close does not sync the disks, 0 where fsync is ours.
	Grace() time.Duration
	// Close ends the store's connections.
	Close() error
}

// A Sharer is a Store that can let others than a folder's owner read what will be made
// in it. Share is called when a topic's folder is made, before anything is in it, and may
// be called again.
type Sharer interface {
	Share(ctx context.Context, dir string) error
}

// A Writer writes one file from its start to its end. After an error of Write or
// Close the file is not there as far as anyone is concerned; Abort removes it as
// well as it can.
type Writer interface {
	io.Writer
	// Close completes the file: durable, of the length written.
	Close() error
	// Abort gives the file up. After Close it does nothing.
	Abort()
}

// A Reader reads ranges of one file; safe for concurrent use.
type Reader interface {
	io.ReaderAt
	Size() int64
	Close() error
}
