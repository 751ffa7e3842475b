package vfs_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"varve/broker/vfs"
)

// lockProbe names the file that this test's program, run as another process, tries to
// lock as Java's FileChannel.lock does: a process lock of fcntl on the whole file.
const lockProbe = "VARVE_TEST_LOCK_PROBE"

func TestLockExcludesAProcessLock(t *testing.T) {
	if name := os.Getenv(lockProbe); name != "" {
		fmt.Println("probe:", tryProcessLock(name))
		return
	}
	name := filepath.Join(t.TempDir(), ".lock")
	try := func() string {
		probe := exec.Command(os.Args[0], "-test.run=^TestLockExcludesAProcessLock$")
		probe.Env = append(os.Environ(), lockProbe+"="+name)
		out, err := probe.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(string(out), "probe: ")
		said, _, _ = strings.Cut(said, "\n")
		return said
	}
	l, err := vfs.OS{}.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := try(); got != "refused" {
		t.Errorf("while it is held a process lock is %q", got)
	}
	l.Close()
	if got := try(); got != "taken" {
		t.Errorf("after it a process lock is %q", got)
	}
}

func tryProcessLock(name string) string {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	switch {
	case err == nil:
		return "taken"
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return "refused"
	}
	return err.Error()
}
