// Package local is a tier.Store on a directory: a local disk, or a mounted file
// system that several brokers share.
//
//	<root>/…/         folders  0750
//	<root>/…/<file>   files    0640 while being written, 0440 once complete
//
// A file counts when it and its folder are on the disk: Close syncs the file, then
// the folder; Rename never overwrites and syncs both folders before it returns
// (protocols.md H1). A failed sync is never tried again.
//
// A call that the kernel holds up (a dead mount) is not cut short by its context:
// the context is looked at before each step.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"varve/tier"
)

const (
	folderMode  fs.FileMode = 0o750
	writingMode fs.FileMode = 0o640
	fileMode    fs.FileMode = 0o440
)

// A Store is a tier.Store on one directory.
type Store struct {
	root string // absolute
}

var _ tier.Store = (*Store)(nil)

// Open makes the directory, and its parents, where they are not there.
func Open(dir string) (*Store, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the tier in %s: %w", dir, err)
	}
	s := &Store{root: root}
	if err := s.makeFolders(filepath.Dir(root), root); err != nil {
		return nil, fmt.Errorf("opening the tier in %s: %w", root, kind(err))
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("opening the tier in %s: %w", root, kind(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("opening the tier in %s: not a folder", root)
	}
	return s, nil
}

// URL is file:// and the directory.
func (s *Store) URL() string { return "file://" + filepath.ToSlash(s.root) }

// Grace is 0: what Close and Rename return for is on the disk.
func (s *Store) Grace() time.Duration { return 0 }

// Close does nothing: the store holds nothing open.
func (s *Store) Close() error { return nil }

// Rename moves a file or folder without overwriting.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	doing := fmt.Sprintf("renaming %s to %s", from, to)
	src, err := s.path(ctx, doing, from)
	if err != nil {
		return err
	}
	dst, err := s.path(ctx, doing, to)
	if err != nil {
		return err
	}
	if err := renameNoReplace(src, dst); err != nil {
		return s.fail(doing, err)
	}
	// H1: the new name is durable before it counts. A sync that fails leaves the
	// outcome to the next power cut.
	if err := errors.Join(syncFolder(filepath.Dir(dst)), syncFolder(filepath.Dir(src))); err != nil {
		return s.failAs(tier.ErrUnsettled, doing, err)
	}
	return nil
}

// Delete removes a file or an empty folder.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.remove(ctx, name, os.Remove)
}

// DeleteAll removes a folder and all in it.
func (s *Store) DeleteAll(ctx context.Context, name string) error {
	return s.remove(ctx, name, os.RemoveAll)
}

func (s *Store) remove(ctx context.Context, name string, remove func(string) error) error {
	doing := "deleting " + name
	path, err := s.path(ctx, doing, name)
	if err != nil {
		return err
	}
	if name == "" {
		return s.fail(doing, errors.New("the root is not deleted"))
	}
	if err := remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.fail(doing, err)
	}
	if err := syncFolder(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.failAs(tier.ErrUnsettled, doing, err)
	}
	return nil
}

// Mkdir makes one folder.
func (s *Store) Mkdir(ctx context.Context, name string) error {
	doing := "making the folder " + name
	path, err := s.path(ctx, doing, name)
	if err != nil {
		return err
	}
	if err := makeFolder(path); err != nil {
		return s.fail(doing, err)
	}
	return nil
}

// MkdirAll makes a folder and its parents up to the root.
func (s *Store) MkdirAll(ctx context.Context, name string) error {
	doing := "making the folder " + name
	path, err := s.path(ctx, doing, name)
	if err != nil {
		return err
	}
	if err := s.makeFolders(s.root, path); err != nil {
		return s.fail(doing, err)
	}
	return nil
}

// makeFolders makes path and what is missing above it. Folders from under on are
// ours and get our mode; what lies above keeps what the umask gives.
func (s *Store) makeFolders(under, path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if path == under || path == filepath.Dir(path) {
		return os.MkdirAll(path, folderMode)
	}
	if err := s.makeFolders(under, filepath.Dir(path)); err != nil {
		return err
	}
	return makeFolder(path)
}

// makeFolder makes one folder, durable, 0750 whatever the umask; a folder that is
// there already is left as it is.
func makeFolder(path string) error {
	err := os.Mkdir(path, folderMode)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(path, folderMode); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// Stat looks at one name.
func (s *Store) Stat(ctx context.Context, name string) (tier.FileInfo, error) {
	doing := "looking at " + name
	path, err := s.path(ctx, doing, name)
	if err != nil {
		return tier.FileInfo{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return tier.FileInfo{}, s.fail(doing, err)
	}
	_, base := tier.Parent(name)
	return fileInfo(base, info), nil
}

// List lists a folder in order of names.
func (s *Store) List(ctx context.Context, dir string) ([]tier.FileInfo, error) {
	doing := "listing " + dir
	path, err := s.path(ctx, doing, dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, s.fail(doing, err)
	}
	list := make([]tier.FileInfo, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since the listing
		}
		if err != nil {
			return nil, s.fail(doing, err)
		}
		list = append(list, fileInfo(e.Name(), info))
	}
	return list, nil
}

func fileInfo(name string, info fs.FileInfo) tier.FileInfo {
	f := tier.FileInfo{Name: name, Dir: info.IsDir(), ModTime: info.ModTime()}
	if !f.Dir {
		f.Size = info.Size()
	}
	return f
}

// LiveReplicas says 1, 1 for every file that is there.
func (s *Store) LiveReplicas(ctx context.Context, name string) (live, want int, err error) {
	if _, err := s.Stat(ctx, name); err != nil {
		return 0, 0, err
	}
	return 1, 1, nil
}

// path is where name lies; an error if the name is none or ctx has ended.
func (s *Store) path(ctx context.Context, doing, name string) (string, error) {
	if err := tier.CheckName(name); err != nil {
		return "", s.fail(doing, err)
	}
	if err := ctx.Err(); err != nil {
		return "", s.failAs(tier.ErrUnavailable, doing, err)
	}
	return filepath.Join(s.root, filepath.FromSlash(name)), nil
}

// fail says what was being done and gives the error its kind. A root that is gone
// (an unmounted disk) is a store that is away, not a file that is not there.
func (s *Store) fail(doing string, err error) error {
	err = kind(err)
	if errors.Is(err, tier.ErrNotFound) {
		if _, rootErr := os.Stat(s.root); rootErr != nil {
			return s.failAs(tier.ErrUnavailable, doing, rootErr)
		}
	}
	return fmt.Errorf("%s in %s: %w", doing, s.URL(), err)
}

func (s *Store) failAs(kind error, doing string, err error) error {
	return fmt.Errorf("%s in %s: %w: %w", doing, s.URL(), kind, err)
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// FromURL gives the directory that a file: URL names: file:///dir or file:/dir.
func FromURL(url string) (dir string, ok bool) {
	rest, ok := strings.CutPrefix(url, "file:")
	if !ok {
		return "", false
	}
	if host, found := strings.CutPrefix(rest, "//"); found {
		rest = strings.TrimPrefix(host, "localhost")
	}
	return rest, strings.HasPrefix(rest, "/")
}
