package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"varve/tier"
)

// Create makes a new file for writing.
func (s *Store) Create(ctx context.Context, name string, _ tier.CreateOptions) (tier.Writer, error) {
	doing := "writing " + name
	path, err := s.path(ctx, doing, name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, writingMode)
	if err != nil {
		return nil, s.fail(doing, err)
	}
	return &writer{store: s, ctx: ctx, doing: doing, path: path, file: f}, nil
}

// A writer is one file on its way. err is the first error; after it nothing more
// is written and Close fails.
type writer struct {
	store *Store
	ctx   context.Context
	doing string
	path  string
	file  *os.File
	err   error
	done  bool
}

func (w *writer) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.done {
		return 0, w.fail(fs.ErrClosed)
	}
	if err := w.ctx.Err(); err != nil {
		w.err = w.store.failAs(tier.ErrUnavailable, w.doing, err)
		return 0, w.err
	}
	n, err := w.file.Write(b)
	if err != nil {
		return n, w.fail(err)
	}
	return n, nil
}

// Close makes the file read-only, syncs it, then its folder (H1).
func (w *writer) Close() error {
	if w.done {
		return w.err
	}
	w.done = true
	defer w.file.Close()
	if w.err != nil {
		return w.err
	}
	if err := w.file.Chmod(fileMode); err != nil {
		return w.fail(err)
	}
	if err := w.file.Sync(); err != nil {
		return w.fail(err)
	}
	if err := w.file.Close(); err != nil {
		return w.fail(err)
	}
	if err := syncFolder(filepath.Dir(w.path)); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *writer) fail(err error) error {
	w.err = w.store.fail(w.doing, err)
	return w.err
}

// Abort removes a file that Close did not complete.
func (w *writer) Abort() {
	if w.done && w.err == nil {
		return
	}
	w.done = true
	if w.err == nil {
		w.err = w.store.fail(w.doing, errors.New("given up"))
	}
	w.file.Close()
	os.Remove(w.path)
}

// Open opens a file for ranged reads.
func (s *Store) Open(ctx context.Context, name string) (tier.Reader, error) {
	doing := "reading " + name
	path, err := s.path(ctx, doing, name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, s.fail(doing, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("is a folder")
	}
	if err != nil {
		f.Close()
		return nil, s.fail(doing, err)
	}
	return &reader{file: f, size: info.Size(), doing: doing, store: s}, nil
}

// A reader reads with pread: no shared position.
type reader struct {
	store *Store
	doing string
	file  *os.File
	size  int64
}

func (r *reader) Size() int64  { return r.size }
func (r *reader) Close() error { return r.file.Close() }

// ReadAt returns io.EOF itself at the end of the file.
func (r *reader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.file.ReadAt(b, off)
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = r.store.fail(fmt.Sprintf("%s at %d", r.doing, off), err)
	}
	return n, err
}
