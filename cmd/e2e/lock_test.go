package e2e

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"varve/cmd/e2e/servers"
)

// TestAFolderIsJavasOrVarves: Kafka locks a log folder by a FileChannel, and so do we,
// so that two brokers never write one folder.
func TestAFolderIsJavasOrVarves(t *testing.T) {
	servers.Need(t, "java")
	v, err := servers.NewVarve(t.Context(), servers.VarveOptions{Properties: brisk})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	dir := filepath.Join(v.DataDir, "log")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	said, letGo := javaLock(t, dir)
	if said != "taken" {
		t.Fatalf("Java's lock of a free folder: %q", said)
	}
	if err := v.Start(within(t)); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, ".lock")+" is locked by another process") {
		t.Errorf("starting on a folder that Java holds: %v, want a refusal that names the lock", err)
	}
	letGo()

	start(t, v)
	if said, letGo = javaLock(t, dir); said != "refused" {
		t.Errorf("Java's lock of a folder that Varve holds: %q, want it refused", said)
	}
	letGo()
	if err := v.Stop(); err != nil {
		t.Fatal(err)
	}
	if said, letGo = javaLock(t, dir); said != "taken" {
		t.Errorf("Java's lock after Varve has stopped: %q, want it taken", said)
	}
	letGo()
}

// javaLock has a Java process try the folder's lock and returns what became of it. It
// holds the lock until letGo, and is killed where the test ends before.
func javaLock(t *testing.T, dir string) (said string, letGo func()) {
	t.Helper()
	cmd := servers.JavaCommand(within(t), filepath.Join("testdata", "Lock.java"), filepath.Join(dir, ".lock"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	letGo = func() {
		in.Close()
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the Java that held the lock: %v", err)
		}
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("what Java says: %q, %v", line, err)
	}
	return strings.TrimSpace(line), letGo
}
