package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OS is the operating system's file system.
type OS struct{}

var _ FS = OS{}

// osFile is an open file with its descriptor at hand.
type osFile struct {
	*os.File
	fd uintptr
}

// Fd is the descriptor; it is valid while the file is open.
func (f *osFile) Fd() (uintptr, bool) { return f.fd, true }

// Open implements FS.
func (o OS) Open(name string) (File, error) { return o.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile implements FS.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f, fd: f.Fd()}, nil
}

// Mkdir implements FS.
func (OS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }

// MkdirAll implements FS.
func (OS) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// RemoveAll implements FS.
func (OS) RemoveAll(name string) error { return os.RemoveAll(name) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// RenameNoReplace implements FS: the kernel's exclusive rename, and where the file
// system has none a hard link, which is as exclusive (files only).
func (OS) RenameNoReplace(from, to string) error {
	err := renameExclusive(from, to)
	if err == nil {
		return nil
	}
	if !unsupported(err) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// Stat implements FS.
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// SyncDir implements FS.
func (OS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// Space implements FS.
func (OS) Space(name string) (total, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	return int64(st.Blocks) * int64(st.Bsize), int64(st.Bavail) * int64(st.Bsize), nil
}

// Lock implements FS. A Java process holds a POSIX record lock on the whole file;
// ours conflicts with it, and with a second one of this process.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		if lockedElsewhere(err) {
			return nil, &LockedError{Name: name}
		}
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return &fileLock{f}, nil
}

// A LockedError says that another process, or another opener in this one, has the lock.
type LockedError struct{ Name string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by another process: a Kafka or a Varve uses this folder", e.Name)
}

// Is makes errors.Is(err, fs.ErrExist) hold.
func (e *LockedError) Is(target error) bool { return target == fs.ErrExist }

// fileLock is a held lock; the file stays, as Kafka's does.
type fileLock struct{ f *os.File }

// Close gives the lock back.
func (l *fileLock) Close() error {
	unlockFile(l.f)
	return l.f.Close()
}
