package vfs_test

import (
	"errors"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"varve/broker/vfs"
)

func both(t *testing.T, f func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { f(t, vfs.OS{}, t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := vfs.NewMem()
		if err := m.MkdirAll("/a/b", 0o755); err != nil {
			t.Fatal(err)
		}
		f(t, m, "/a/b")
	})
}

func write(t *testing.T, fsys vfs.FS, name, text string, durable bool) {
	t.Helper()
	if err := vfs.WriteFile(fsys, name, []byte(text), durable); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRenameNoReplaceKeepsTheTarget(t *testing.T) {
	both(t, func(t *testing.T, fsys vfs.FS, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		write(t, fsys, a, "one", true)
		write(t, fsys, b, "two", true)
		if err := fsys.RenameNoReplace(a, b); !errors.Is(err, fs.ErrExist) {
			t.Fatalf("got %v, want fs.ErrExist", err)
		}
		if got := read(t, fsys, b); got != "two" {
			t.Fatalf("target is %q, want two", got)
		}
		if err := fsys.Rename(a, b); err != nil {
			t.Fatal(err)
		}
		if got := read(t, fsys, b); got != "one" {
			t.Fatalf("target is %q after Rename, want one", got)
		}
		if _, err := fsys.Stat(a); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("source: %v, want fs.ErrNotExist", err)
		}
	})
}

func TestLockExcludesASecondOpenerOfTheSameProcess(t *testing.T) {
	both(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, ".lock")
		l, err := fsys.Lock(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fsys.Lock(name); !errors.Is(err, fs.ErrExist) {
			t.Fatalf("second lock: %v, want fs.ErrExist", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, err = fsys.Lock(name)
		if err != nil {
			t.Fatalf("lock after release: %v", err)
		}
		l.Close()
	})
}

func TestPowerCutKeepsWhatWasSyncedAndNothingElse(t *testing.T) {
	m := vfs.NewMem()
	write(t, m, "/durable", "yes", true)
	write(t, m, "/loose", "no", false)
	f, err := m.OpenFile("/durable", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("NO!!"), 0); err != nil {
		t.Fatal(err)
	}
	cut := m.PowerCut(nil)
	if got := read(t, cut, "/durable"); got != "yes" {
		t.Errorf("durable holds %q, want yes", got)
	}
	if _, err := cut.Stat("/loose"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("loose: %v, want fs.ErrNotExist", err)
	}
	killed := m.Kill()
	if got := read(t, killed, "/durable"); got != "NO!!" {
		t.Errorf("after kill durable holds %q, want NO!!", got)
	}
	for seed := range int64(20) { // a torn cut still has what was synced and not overwritten
		torn := m.PowerCut(rand.New(rand.NewSource(seed)))
		if got := read(t, torn, "/durable"); len(got) < 3 {
			t.Errorf("seed %d: durable holds %q", seed, got)
		}
	}
}

func TestFullDiskWritesWhatFitsAndSaysSo(t *testing.T) {
	m := vfs.NewMem()
	f, err := m.OpenFile("/x", os.O_RDWR|os.O_CREATE, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.SetFree(5)
	n, err := f.WriteAt([]byte("12345678"), 0)
	if n != 5 || !vfs.Full(err) {
		t.Fatalf("wrote %d, %v; want 5, ENOSPC", n, err)
	}
	if n, err := f.WriteAt([]byte("abc"), 1); n != 3 || err != nil {
		t.Fatalf("overwriting wrote %d, %v; want 3, nil", n, err)
	}
}

func TestRuleFailsWritesInPart(t *testing.T) {
	m := vfs.NewMem()
	f, err := m.OpenFile("/x", os.O_RDWR|os.O_CREATE, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.Rule(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			return &vfs.ShortWrite{Keep: 2, Err: syscall.EIO}
		}
		return nil
	})
	n, err := f.WriteAt([]byte("abcd"), 0)
	if n != 2 || !errors.Is(err, syscall.EIO) {
		t.Fatalf("wrote %d, %v; want 2, EIO", n, err)
	}
	m.Rule(nil)
	if got := read(t, m, "/x"); got != "ab" {
		t.Fatalf("file holds %q, want ab", got)
	}
}
