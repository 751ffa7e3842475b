package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"varve/tier"
)

// linkAndUnlink moves a file: link refuses to overwrite. A crash between the two
// leaves both names for one complete file, which is harmless: the target counts,
// the source is a leftover.
func linkAndUnlink(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: errors.New("this file system cannot move a folder without overwriting")}
	}
	if err := os.Link(from, to); err != nil {
		return err
	}
	if err := os.Remove(from); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", tier.ErrUnsettled, err)
	}
	return nil
}
