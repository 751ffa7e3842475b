package local

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace fails with EEXIST where the target is there. File systems that
// do not know the flag say EINVAL or ENOSYS; there link and unlink do it.
func renameNoReplace(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkAndUnlink(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
