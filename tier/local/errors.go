package local

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"varve/tier"
)

// kinds maps what the operating system says to what a caller decides on. The first
// line that fits counts.
var kinds = []struct{ os, tier error }{
	{syscall.ENOSPC, tier.ErrFull},
	{syscall.EDQUOT, tier.ErrFull},
	{syscall.EROFS, tier.ErrDenied},
	{fs.ErrPermission, tier.ErrDenied},
	{syscall.ENOTEMPTY, nil}, // some systems count it as "exists"
	{fs.ErrExist, tier.ErrExists},
	{fs.ErrNotExist, tier.ErrNotFound},
	{syscall.ENOTDIR, tier.ErrNotFound},
	{syscall.EIO, tier.ErrUnavailable},
	{syscall.ESTALE, tier.ErrUnavailable},
	{syscall.ETIMEDOUT, tier.ErrUnavailable},
	{syscall.ENOTCONN, tier.ErrUnavailable},
	{syscall.EMFILE, tier.ErrUnavailable},
	{syscall.ENFILE, tier.ErrUnavailable},
}

func kind(err error) error {
	for _, k := range kinds {
		if !errors.Is(err, k.os) {
			continue
		}
		if k.tier == nil {
			return err
		}
		return fmt.Errorf("%w: %w", k.tier, err)
	}
	return err
}
