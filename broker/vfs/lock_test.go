package vfs_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"varve/broker/vfs"
)

// Java's FileChannel.lock is a process lock of fcntl on the whole file, as lockf takes it.
func TestLockExcludesAProcessLock(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to take a process lock with")
	}
	name := filepath.Join(t.TempDir(), ".lock")
	try := func() string {
		out, err := exec.Command(python, "-c", "import fcntl,sys\nf=open(sys.argv[1],'r+')\ntry:\n fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)\n print('taken')\nexcept OSError:\n print('refused')", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	l, err := vfs.OS{}.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := try(); got != "refused" {
		t.Errorf("while it is held a process lock is %s", got)
	}
	l.Close()
	if got := try(); got != "taken" {
		t.Errorf("after it a process lock is %s", got)
	}
}
