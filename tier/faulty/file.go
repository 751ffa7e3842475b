package faulty

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"varve/tier"
)

// Create makes a new file for writing; it is seen at once with what was written.
func (s *Store) Create(ctx context.Context, name string, _ tier.CreateOptions) (tier.Writer, error) {
	w := &writer{store: s, ctx: ctx, name: name, doing: "writing " + name}
	err := s.do(ctx, Create, name, w.doing, func() error {
		if err := s.freeLocked(name); err != nil {
			return err
		}
		w.node = &node{mode: 0o640, mod: s.now()}
		s.mu.nodes[name] = w.node
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// A writer is one file on its way; err is its first error.
type writer struct {
	store *Store
	ctx   context.Context
	name  string
	doing string
	node  *node
	err   error
	done  bool
}

func (w *writer) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.done {
		return 0, w.store.fail(w.doing, fs.ErrClosed)
	}
	f, err := w.store.enter(w.ctx, Write, w.name, w.doing)
	if err == nil {
		err = f.Err
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if err != nil {
		if keep := f.Cut - len(w.node.data); keep > 0 {
			w.node.data = append(w.node.data, b[:min(keep, len(b))]...)
		}
		w.err = w.store.fail(w.doing, err)
		return 0, w.err
	}
	w.node.data = append(w.node.data, b...)
	return len(b), nil
}

func (w *writer) Close() error {
	if w.done || w.err != nil {
		w.done = true
		return w.err
	}
	w.done = true
	w.err = w.store.do(w.ctx, Complete, w.name, w.doing, func() error {
		w.node.mode, w.node.mod = 0o440, w.store.now()
		return nil
	})
	return w.err
}

// Abort removes the file, unless the store is away or a fault keeps it.
func (w *writer) Abort() {
	if w.done && w.err == nil {
		return
	}
	w.done = true
	if w.err == nil {
		w.err = w.store.fail(w.doing, errors.New("given up"))
	}
	_ = w.store.Delete(context.WithoutCancel(w.ctx), w.name)
}

// Open opens a file for ranged reads. What it reads is what the file was at Open.
func (s *Store) Open(ctx context.Context, name string) (tier.Reader, error) {
	r := &reader{store: s, name: name, doing: "reading " + name}
	err := s.do(ctx, Open, name, r.doing, func() error {
		n := s.mu.nodes[name]
		if n == nil {
			return tier.ErrNotFound
		}
		if n.dir {
			return errors.New("is a folder")
		}
		r.data = n.data[:len(n.data):len(n.data)]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

type reader struct {
	store *Store
	name  string
	doing string
	data  []byte
}

func (r *reader) Size() int64  { return int64(len(r.data)) }
func (r *reader) Close() error { return nil }

// ReadAt has no context: a fault's Hold ends it, or nothing.
func (r *reader) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, r.store.fail(r.doing, errors.New("negative position"))
	}
	f, err := r.store.enter(context.Background(), Read, r.name, r.doing)
	if err == nil {
		err = f.Err
	}
	if off > int64(len(r.data)) {
		off = int64(len(r.data))
	}
	if err != nil {
		return copy(b[:min(f.Cut, len(b))], r.data[off:]), r.store.fail(r.doing, err)
	}
	n := copy(b, r.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
