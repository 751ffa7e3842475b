// Package vfs is the seam to the file system: the operating system's (OS), and one
// in memory for tests (Mem) that can be cloned as a power cut would leave it and
// that fails by rule. Nothing else of Varve's log opens files.
package vfs

import (
	"io"
	"io/fs"
)

// An FS is a file system. Names are slash-separated and absolute, or relative to
// the process. Errors are *fs.PathError or *os.LinkError as the OS gives them.
type FS interface {
	// Open opens for reading, OpenFile as os.OpenFile does.
	Open(name string) (File, error)
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	MkdirAll(name string, perm fs.FileMode) error
	Remove(name string) error
	RemoveAll(name string) error
	// Rename replaces the target, as POSIX does.
	Rename(from, to string) error
	// RenameNoReplace fails with fs.ErrExist where the target is there (H1).
	RenameNoReplace(from, to string) error
	Stat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(name string) error
	// Lock takes the file's exclusive lock as Java's FileChannel.lock does (fcntl);
	// fs.ErrExist-like error naming the holder's file if another process has it.
	Lock(name string) (io.Closer, error)
	// Space tells the bytes in all and the bytes free to us where name lies.
	Space(name string) (total, free int64, err error)
}

// A File is an open file. ReadAt and WriteAt are safe for concurrent use.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Reader
	io.Writer
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Sync makes contents and size durable.
	Sync() error
	// Fd is the descriptor for sendfile and mmap; ok is false where there is none.
	Fd() (fd uintptr, ok bool)
}

// A Run is a stretch of record bytes on its way to a reader: N bytes of File from
// Pos, or Bytes. Owner, if any, is released once when the bytes are sent.
type Run struct {
	File  File
	Pos   int64
	N     int
	Bytes []byte
	Owner Releaser
}

// A Releaser counts uses; Release gives one back.
type Releaser interface{ Release() }

// Release gives the run's owner back; safe on the zero Run.
func (r *Run) Release() {
	if r.Owner != nil {
		r.Owner.Release()
		r.Owner = nil
	}
}
