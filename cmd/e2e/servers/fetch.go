package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// fetch returns the class path of the set, fetching it where it is not there
// yet. Programs that want the same set at once fetch it once: the others wait
// for the lock and find it done.
func (s jarSet) fetch(ctx context.Context) (classPath string, err error) {
	dir, err := s.dir()
	if err != nil {
		return "", err
	}
	classPath = filepath.Join(dir, "lib", "*")
	if s.fetched() {
		return classPath, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("fetching %s: %w", s, err)
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("fetching %s: %w", s, err)
	}
	defer unlock()
	if s.fetched() {
		return classPath, nil
	}
	if err := s.fetchInto(ctx, dir); err != nil {
		return "", fmt.Errorf("fetching %s: %w", s, err)
	}
	return classPath, nil
}

// fetchInto lets Maven copy the jars into a folder beside dir and renames it,
// so that an interrupted fetch is never taken for a whole one.
func (s jarSet) fetchInto(ctx context.Context, dir string) error {
	Notice.Printf("fetching %s by Maven (once; kept in %s)", s, dir)
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "fetching-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.WriteFile(filepath.Join(tmp, "pom.xml"), s.pom(), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory=lib")
	cmd.Dir = tmp
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn dependency:copy-dependencies: %w\n%s", err, lastLines(out, 20))
	}
	if jars, _ := filepath.Glob(filepath.Join(tmp, "lib", "*.jar")); len(jars) == 0 {
		return errors.New("mvn dependency:copy-dependencies succeeded but brought no jar")
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// lock takes an exclusive lock on the file at path, made where it is missing.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, "the lock "+path, func(context.Context) error {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
