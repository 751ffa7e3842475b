package vfs

import (
	"errors"
	"io"
	"os"
	"path"
	"syscall"
)

// ReadFile reads a whole file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return b[:n], err
}

// WriteFile puts a file in place whole: written aside, renamed. With durable set it
// and its name are on disk when WriteFile returns; without, after a power cut the
// name may hold anything, so contents must be checked when read.
func WriteFile(fsys FS, name string, b []byte, durable bool) error {
	tmp := name + ".tmp"
	f, err := fsys.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		fsys.Remove(tmp)
		return err
	}
	if !durable {
		return nil
	}
	return fsys.SyncDir(path.Dir(name))
}

// Full tells whether an error means that something is full which may have room again
// while the process runs: the disk, a quota, the table of open files. None of them says
// that the disk is broken.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
