package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// memFile is an open file of a Mem.
type memFile struct {
	m      *Mem
	n      *node
	name   string
	pos    int64 // of Read and Write
	writes bool
	closed bool
}

// ready refuses closed files; the lock is held.
func (f *memFile) ready(op string) error {
	if f.closed {
		return pathError(op, f.name, fs.ErrClosed)
	}
	return nil
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.m.ask(Op{Kind: OpRead, Name: f.name, N: len(p)}); err != nil {
		return 0, pathError("read", f.name, err)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("read"); err != nil {
		return 0, err
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Read implements File.
func (f *memFile) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := f.ReadAt(p, f.pos)
	f.pos += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// WriteAt implements File.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.m.ask(Op{Kind: OpWrite, Name: f.name, N: len(p)})
	var short *ShortWrite
	if errors.As(err, &short) {
		p = p[:min(short.Keep, len(p))]
	} else if err != nil {
		return 0, pathError("write", f.name, err)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("write"); err != nil {
		return 0, err
	}
	if !f.writes {
		return 0, pathError("write", f.name, syscall.EBADF)
	}
	n, werr := f.write(p, off)
	if err == nil {
		err = werr
	}
	if err != nil {
		return n, pathError("write", f.name, err)
	}
	return n, nil
}

// write puts bytes into the file as far as there is space; the lock is held.
func (f *memFile) write(p []byte, off int64) (int, error) {
	var full error
	grow := off + int64(len(p)) - int64(len(f.n.data))
	if grow > 0 && f.m.free >= 0 {
		if grow > f.m.free {
			p = p[:max(0, int64(len(p))-(grow-f.m.free))]
			full = syscall.ENOSPC
			grow = max(0, f.m.free)
		}
		f.m.free -= grow
	}
	if end := off + int64(len(p)); end > int64(len(f.n.data)) {
		f.n.data = append(f.n.data, make([]byte, end-int64(len(f.n.data)))...)
	}
	copy(f.n.data[off:], p)
	f.n.mod = f.m.tick()
	return len(p), full
}

// Write implements File.
func (f *memFile) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.pos)
	f.pos += int64(n)
	return n, err
}

// Close implements File.
func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("close"); err != nil {
		return err
	}
	f.closed = true
	return nil
}

// Name implements File.
func (f *memFile) Name() string { return f.name }

// Stat implements File.
func (f *memFile) Stat() (fs.FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("stat"); err != nil {
		return nil, err
	}
	return f.n.info(path.Base(f.name)), nil
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	if err := f.m.ask(Op{Kind: OpTruncate, Name: f.name}); err != nil {
		return pathError("truncate", f.name, err)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("truncate"); err != nil {
		return err
	}
	if n := int64(len(f.n.data)); size <= n {
		if f.m.free >= 0 {
			f.m.free += n - size
		}
		f.n.data = append([]byte(nil), f.n.data[:size]...)
	} else {
		f.n.data = append(f.n.data, make([]byte, size-n)...)
	}
	f.n.mod = f.m.tick()
	return nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	if err := f.m.ask(Op{Kind: OpSync, Name: f.name}); err != nil {
		return pathError("sync", f.name, err)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("sync"); err != nil {
		return err
	}
	f.n.synced = append(f.n.synced[:0:0], f.n.data...)
	return nil
}

// Fd implements File: there is none.
func (f *memFile) Fd() (uintptr, bool) { return 0, false }

// info is a node's fs.FileInfo.
func (n *node) info(name string) fs.FileInfo {
	i := memInfo{name: name, size: int64(len(n.data)), mod: n.mod, mode: 0o644}
	if n.dir {
		i.mode = 0o755 | os.ModeDir
	}
	return i
}

// memInfo implements fs.FileInfo.
type memInfo struct {
	name string
	size int64
	mode fs.FileMode
	mod  time.Time
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return i.mod }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
