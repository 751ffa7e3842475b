package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"varve/tier"
)

func TestErrorsOfTheSystemHaveAKind(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{
		syscall.ENOSPC: tier.ErrFull, syscall.EDQUOT: tier.ErrFull, syscall.EACCES: tier.ErrDenied, syscall.EPERM: tier.ErrDenied,
		syscall.EROFS: tier.ErrDenied, syscall.EEXIST: tier.ErrExists, syscall.ENOENT: tier.ErrNotFound, syscall.ENOTDIR: tier.ErrNotFound,
		syscall.EIO: tier.ErrUnavailable, syscall.ESTALE: tier.ErrUnavailable, syscall.EMFILE: tier.ErrUnavailable,
	} {
		err := kind(&fs.PathError{Op: "write", Path: "f", Err: errno})
		if !errors.Is(err, want) || !errors.Is(err, errno) {
			t.Errorf("%v is %v, want %v", errno, err, want)
		}
	}
	if err := kind(syscall.ENOTEMPTY); errors.Is(err, tier.ErrExists) {
		t.Errorf("a folder that is not empty is %v", err)
	}
}

// The way for file systems that cannot refuse to overwrite in one call.
func TestLinkAndUnlinkDoesNotOverwrite(t *testing.T) {
	dir := t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	for i := range 2 {
		if err := os.WriteFile(name(i), []byte{byte(i)}, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := linkAndUnlink(name(0), name(1)); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("onto a file: %v, want %v", err, fs.ErrExist)
	}
	if err := linkAndUnlink(name(0), name(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name(0)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the source after the move: %v, want %v", err, fs.ErrNotExist)
	}
	if err := linkAndUnlink(dir, dir+"2"); err == nil {
		t.Fatal("a folder was moved")
	}
}

func TestFullDiskIsErrFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{store: &Store{root: t.TempDir()}, ctx: t.Context(), doing: "writing f", path: filepath.Join(t.TempDir(), "f"), file: f}
	if _, err := w.Write([]byte("x")); !errors.Is(err, tier.ErrFull) {
		t.Fatalf("Write on a full disk = %v, want %v", err, tier.ErrFull)
	}
	if err := w.Close(); !errors.Is(err, tier.ErrFull) {
		t.Fatalf("Close after a failed write = %v, want %v", err, tier.ErrFull)
	}
}
