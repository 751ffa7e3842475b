package local

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace fails with EEXIST where the target is there. File systems that
// do not know the flag say ENOTSUP; there link and unlink do it.
func renameNoReplace(from, to string) error {
	err := unix.RenamexNp(from, to, unix.RENAME_EXCL)
	if errors.Is(err, unix.ENOTSUP) {
		return linkAndUnlink(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
