// Package filejournal keeps the edit log in a folder of one machine, for standalone.
//
//	epoch                              the newest controller epoch and its taker
//	edits-00000000000000000001.log     edits from that number on
//	snapshot-00000000000000001000.img  the image up to that edit
//	.lock                              held while the journal is open
//
// A record file is a header of 64 bytes, then records on multiples of 8 bytes, then
// zeros: it is written full of them first, because an append into space that is there
// syncs in half the time. Numbers are big-endian.
//
//	file:    "VARVEJNL" | version u32 | CRC32C of the rest u32 | first edit u64 | hash before it [32] | 0 [8]
//	record:  edit header [68] (journal.AppendHeader) | CRC32C of it u32 | payload | 0 to a multiple of 8
//	epoch, snapshot: "VARVEEPO" or "VARVESNP" | version u32 | CRC32C of the rest u32 | fields
//
// Only the last record may be torn (H1): a bad one is the end of the log if nothing
// valid of a higher number follows it, else damage, which Open refuses with the file
// and the offset. What a torn append left is overwritten with zeros before anything
// else is written. A failed write or sync ends the journal for this process: nothing is
// tried again. New files are written aside, synced, renamed, and their folder synced,
// before anything rests on them; a snapshot is durable before edits go; two stay.
package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"varve/broker/kafka"
	"varve/broker/vfs"
	"varve/ha/journal"
)

// Options of a journal; the zero value is the default.
type Options struct {
	FileBytes int          // size of a record file; 0 is 1 MiB
	Log       *slog.Logger // nil discards
}

// A Journal is the edit log in a folder. It is safe for concurrent use.
type Journal struct {
	fs   vfs.FS
	dir  string
	size int64
	log  *slog.Logger
	lock io.Closer
	// writing is held by whoever writes to the folder: one append at a time (A1).
	writing chan struct{}

	mu struct {
		sync.Mutex
		files  []*recordFile // by first edit; the last is appended to
		epoch  kafka.ControllerEpoch
		failed error // the first failed write: the end of all writing
		closed bool
		grown  chan struct{} // closed and replaced when the log grows, is trimmed or closed
	}
	active vfs.File // the last of files, open for writing; under writing
}

// Open opens the journal in dir, making it where there is none.
func Open(fsys vfs.FS, dir string, o Options) (*Journal, error) {
	if o.FileBytes == 0 {
		o.FileBytes = 1 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	j := &Journal{fs: fsys, dir: dir, size: int64(o.FileBytes), log: o.Log, writing: make(chan struct{}, 1)}
	j.mu.grown = make(chan struct{})
	if err := makeDir(fsys, dir); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(path.Join(dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("locking the journal %s: %w", dir, err)
	}
	j.lock = lock
	if err := j.recover(); err != nil {
		j.Close()
		return nil, fmt.Errorf("opening the journal %s: %w", dir, err)
	}
	return j, nil
}

// makeDir makes the folder and its name durable.
func makeDir(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); err == nil {
		return nil
	}
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the journal's folder: %w", err)
	}
	return fsys.SyncDir(path.Dir(dir))
}

// Close ends the journal's use. Terms of it are over.
func (j *Journal) Close() error {
	j.writing <- struct{}{}
	defer func() { <-j.writing }()
	j.mu.Lock()
	done := j.mu.closed
	j.mu.closed = true
	if !done {
		j.wake()
	}
	j.mu.Unlock()
	if done {
		return nil
	}
	var err error
	if j.active != nil {
		err = j.active.Close()
	}
	return errors.Join(err, j.lock.Close())
}

// wake lets Wait look again; under mu.
func (j *Journal) wake() {
	close(j.mu.grown)
	j.mu.grown = make(chan struct{})
}

// recover reads the folder: epoch, then every record file.
func (j *Journal) recover() error {
	if err := j.sweep(); err != nil {
		return err
	}
	names, err := j.list("edits-", ".log")
	if err != nil {
		return err
	}
	epoch, known, err := j.readEpoch()
	switch {
	case err != nil:
		return err
	case !known && len(names) > 0:
		return fmt.Errorf("%w: %s is gone but there are edits", journal.ErrDamaged, path.Join(j.dir, epochName))
	}
	j.mu.epoch = epoch
	for i, first := range names {
		f, err := j.openRecords(first, i == len(names)-1)
		if err != nil {
			return err
		}
		if n := len(j.mu.files); n > 0 {
			if before := j.mu.files[n-1]; before.next() != f.first || before.last != f.before {
				return fmt.Errorf("%w: %s begins at edit %d after %s, which ends before %d or has another history",
					journal.ErrDamaged, f.name, f.first, before.name, before.next())
			}
		}
		if f.epoch > j.mu.epoch {
			return fmt.Errorf("%w: %s holds an edit of epoch %d, the newest taken is %d", journal.ErrDamaged, f.name, f.epoch, j.mu.epoch)
		}
		j.mu.files = append(j.mu.files, f)
	}
	return j.openActive()
}

// openActive opens the last record file for appending.
func (j *Journal) openActive() error {
	if len(j.mu.files) == 0 {
		return nil
	}
	f, err := j.fs.OpenFile(j.mu.files[len(j.mu.files)-1].name, openReadWrite, 0o644)
	if err != nil {
		return err
	}
	j.active = f
	return nil
}

// sweep deletes what was being written aside when the process before ended.
func (j *Journal) sweep() error {
	entries, err := j.fs.ReadDir(j.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if err := j.fs.Remove(path.Join(j.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// list finds the numbers in file names of this form, rising.
func (j *Journal) list(prefix, suffix string) ([]journal.Number, error) {
	entries, err := j.fs.ReadDir(j.dir)
	if err != nil {
		return nil, err
	}
	var out []journal.Number
	for _, e := range entries {
		name := e.Name()
		digits, ok := strings.CutPrefix(name, prefix)
		if digits, ok2 := strings.CutSuffix(digits, suffix); ok && ok2 && len(digits) == 20 {
			if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
				out = append(out, journal.Number(n))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

func (j *Journal) path(prefix string, n journal.Number, suffix string) string {
	return path.Join(j.dir, fmt.Sprintf("%s%020d%s", prefix, n, suffix))
}

// end is the last edit's number and hash, 0 for an empty log; under mu.
func (j *Journal) end() (journal.Number, [32]byte) {
	if len(j.mu.files) == 0 {
		return 0, [32]byte{}
	}
	f := j.mu.files[len(j.mu.files)-1]
	return f.next() - 1, f.last
}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, n journal.Number, max int) ([]journal.Edit, error) {
	files, err := j.filesFrom(n)
	if err != nil {
		return nil, err
	}
	var out []journal.Edit
	size := 0
	for _, f := range files {
		more, full, err := f.read(j.fs, n, max-size, len(out) == 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, journal.ErrTrimmed // it went while we looked
		}
		if err != nil {
			return nil, err
		}
		for _, e := range more {
			size += len(e.Payload)
		}
		out = append(out, more...)
		n += journal.Number(len(more))
		if full {
			break
		}
	}
	return out, ctx.Err()
}

// filesFrom returns copies of the record files from the one that holds n on, as long
// as they are now.
func (j *Journal) filesFrom(n journal.Number) ([]recordFile, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.closed {
		return nil, fs.ErrClosed
	}
	if len(j.mu.files) == 0 {
		return nil, nil
	}
	if n < j.mu.files[0].first {
		return nil, journal.ErrTrimmed
	}
	var out []recordFile
	for _, f := range j.mu.files {
		if n < f.next() {
			out = append(out, *f)
		}
	}
	return out, nil
}

// Wait implements journal.Journal.
func (j *Journal) Wait(ctx context.Context, n journal.Number) error {
	for {
		j.mu.Lock()
		grown := j.mu.grown
		end, _ := j.end()
		trimmed := len(j.mu.files) > 0 && n < j.mu.files[0].first
		closed := j.mu.closed
		j.mu.Unlock()
		switch {
		case closed:
			return fs.ErrClosed
		case trimmed:
			return journal.ErrTrimmed
		case n <= end:
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
