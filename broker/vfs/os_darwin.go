package vfs

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

func renameExclusive(from, to string) error { return unix.RenamexNp(from, to, unix.RENAME_EXCL) }

func unsupported(err error) bool { return errors.Is(err, unix.ENOTSUP) }

// held are the files that this process has locked: a process lock does not exclude
// a second opener in the same process, so that is ours to see.
var held struct {
	sync.Mutex
	files []os.FileInfo
}

func lockFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	held.Lock()
	defer held.Unlock()
	for _, h := range held.files {
		if os.SameFile(h, info) {
			return unix.EAGAIN
		}
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}); err != nil {
		return err
	}
	held.files = append(held.files, info)
	return nil
}

func unlockFile(f *os.File) {
	info, err := f.Stat()
	if err != nil {
		return
	}
	held.Lock()
	defer held.Unlock()
	for i, h := range held.files {
		if os.SameFile(h, info) {
			held.files = append(held.files[:i], held.files[i+1:]...)
			break
		}
	}
	unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Whence: io.SeekStart})
}

func lockedElsewhere(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES)
}
