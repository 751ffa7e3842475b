package local_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"varve/tier"
	"varve/tier/local"
	"varve/tier/tiertest"
)

func open(t *testing.T, dir string) *local.Store {
	t.Helper()
	s, err := local.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func root(s tier.Store) string { return strings.TrimPrefix(s.URL(), "file://") }

func TestStore(t *testing.T) {
	old := syscall.Umask(0o077) // modes are ours whatever it is
	defer syscall.Umask(old)
	tiertest.Run(t, tiertest.Harness{
		Open: func(t *testing.T) tier.Store { return open(t, filepath.Join(t.TempDir(), "tier")) },
		Peer: func(t *testing.T, s tier.Store) tier.Store { return open(t, root(s)) },
		Mode: func(t *testing.T, s tier.Store, name string) fs.FileMode {
			info, err := os.Stat(filepath.Join(root(s), name))
			if err != nil {
				t.Fatal(err)
			}
			return info.Mode()
		},
	})
}

func TestRootThatIsGoneIsAStoreThatIsAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mount")
	s := open(t, dir)
	if _, err := s.Stat(t.Context(), "f"); !errors.Is(err, tier.ErrNotFound) {
		t.Fatalf("Stat of a missing file = %v, want %v", err, tier.ErrNotFound)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "f"); !errors.Is(err, tier.ErrUnavailable) || errors.Is(err, tier.ErrNotFound) {
		t.Fatalf("Stat under a missing root = %v, want %v", err, tier.ErrUnavailable)
	}
}

func TestRootThatIsAFileIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Open(name); err == nil || !strings.Contains(err.Error(), name) {
		t.Fatalf("Open of a file = %v, want an error that names it", err)
	}
}

func TestFileURLsNameADirectory(t *testing.T) {
	for url, want := range map[string]string{
		"file:///a/b": "/a/b", "file:/a": "/a", "file://localhost/a": "/a",
		"file://other/a": "", "file:a": "", "hdfs://h/a": "", "/a": "",
	} {
		if dir, ok := local.FromURL(url); ok != (want != "") || ok && dir != want {
			t.Errorf("FromURL(%q) = %q, %v, want %q", url, dir, ok, want)
		}
	}
}
