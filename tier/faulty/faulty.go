// Package faulty is a tier.Store in memory that fails by rule, for tests of what
// stands on a Store:
//
//	s := faulty.New()
//	s.Inject(faulty.Fault{Op: faulty.Rename, Name: "manifest/", Err: tier.ErrUnsettled, After: true})
//
// A fault says which calls it hits and what happens to them: an error before the
// effect, an error after it (a lost reply), an effect that lands later (Land), a
// wait, a file cut off in the middle. Without faults it passes the suite of
// tiertest. Files can be damaged in place (Damage, Truncate), replicas and the
// clock set by hand.
package faulty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"varve/tier"
)

// A Store is a tree of files in memory.
type Store struct {
	// Now is the clock of modification times; nil is time.Now. Set it before use.
	Now func() time.Time

	mu struct {
		sync.Mutex
		nodes    map[string]*node // by name; "" is the root
		faults   []*Fault
		calls    map[Op]int
		late     []func() // effects that land later
		away     bool
		live     int // replicas of files that have none of their own
		want     int
		replicas map[string][2]int
	}
}

var _ tier.Store = (*Store)(nil)

// A node is a file or a folder. The bytes of a complete file are never changed in
// place, so that readers may hold them.
type node struct {
	dir  bool
	mode fs.FileMode
	mod  time.Time
	data []byte
}

// New makes an empty store with one replica of everything and no grace.
func New() *Store {
	s := &Store{}
	s.mu.nodes = map[string]*node{"": {dir: true, mode: 0o750}}
	s.mu.calls = map[Op]int{}
	s.mu.replicas = map[string][2]int{}
	s.mu.live, s.mu.want = 1, 1
	return s
}

// URL names the store in messages.
func (s *Store) URL() string { return "faulty:///" }

// Grace is none.
func (s *Store) Grace() time.Duration { return 0 }

// Close does nothing; the files stay.
func (s *Store) Close() error { return nil }

// Rename moves a file or a folder with all in it, without overwriting.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	return s.do(ctx, Rename, from, "renaming "+from+" to "+to, func() error {
		if err := tier.CheckName(to); err != nil {
			return err
		}
		return s.renameLocked(from, to)
	})
}

func (s *Store) renameLocked(from, to string) error {
	if s.mu.nodes[from] == nil {
		return fmt.Errorf("%s: %w", from, tier.ErrNotFound)
	}
	if err := s.freeLocked(to); err != nil {
		return err
	}
	if strings.HasPrefix(to, from+"/") {
		return errors.New("a folder does not go into itself")
	}
	moved := map[string]*node{}
	for name, n := range s.mu.nodes {
		if name == from || strings.HasPrefix(name, from+"/") {
			moved[to+name[len(from):]] = n
			delete(s.mu.nodes, name)
		}
	}
	for name, n := range moved {
		s.mu.nodes[name] = n
	}
	return nil
}

// freeLocked tells whether name can be made: its folder is there, it is not.
func (s *Store) freeLocked(name string) error {
	if s.mu.nodes[name] != nil {
		return fmt.Errorf("%s: %w", name, tier.ErrExists)
	}
	dir, _ := tier.Parent(name)
	if p := s.mu.nodes[dir]; p == nil || !p.dir {
		return fmt.Errorf("folder %s: %w", dir, tier.ErrNotFound)
	}
	return nil
}

// Delete removes a file or an empty folder.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.do(ctx, Delete, name, "deleting "+name, func() error {
		if name == "" {
			return errors.New("the root is not deleted")
		}
		for other := range s.mu.nodes {
			if strings.HasPrefix(other, name+"/") {
				return errors.New("folder is not empty")
			}
		}
		delete(s.mu.nodes, name)
		return nil
	})
}

// DeleteAll removes a folder and all in it.
func (s *Store) DeleteAll(ctx context.Context, name string) error {
	return s.do(ctx, DeleteAll, name, "deleting "+name, func() error {
		if name == "" {
			return errors.New("the root is not deleted")
		}
		for other := range s.mu.nodes {
			if other == name || strings.HasPrefix(other, name+"/") {
				delete(s.mu.nodes, other)
			}
		}
		return nil
	})
}

// Mkdir makes one folder.
func (s *Store) Mkdir(ctx context.Context, name string) error {
	return s.do(ctx, Mkdir, name, "making the folder "+name, func() error { return s.mkdirLocked(name) })
}

// MkdirAll makes a folder and its parents.
func (s *Store) MkdirAll(ctx context.Context, name string) error {
	return s.do(ctx, Mkdir, name, "making the folder "+name, func() error {
		for i, c := range name {
			if c == '/' {
				if err := s.mkdirLocked(name[:i]); err != nil {
					return err
				}
			}
		}
		return s.mkdirLocked(name)
	})
}

func (s *Store) mkdirLocked(name string) error {
	if n := s.mu.nodes[name]; n != nil && n.dir {
		return nil
	}
	if err := s.freeLocked(name); err != nil {
		return err
	}
	s.mu.nodes[name] = &node{dir: true, mode: 0o750, mod: s.now()}
	return nil
}

// Stat looks at one name.
func (s *Store) Stat(ctx context.Context, name string) (info tier.FileInfo, err error) {
	err = s.do(ctx, Stat, name, "looking at "+name, func() error {
		n := s.mu.nodes[name]
		if n == nil {
			return tier.ErrNotFound
		}
		info = n.info(name)
		return nil
	})
	return info, err
}

// List lists a folder in order of names.
func (s *Store) List(ctx context.Context, dir string) (list []tier.FileInfo, err error) {
	err = s.do(ctx, List, dir, "listing "+dir, func() error {
		list = nil
		if n := s.mu.nodes[dir]; n == nil || !n.dir {
			return tier.ErrNotFound
		}
		for name, n := range s.mu.nodes {
			if parent, _ := tier.Parent(name); name != "" && parent == dir {
				list = append(list, n.info(name))
			}
		}
		slices.SortFunc(list, func(a, b tier.FileInfo) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return list, err
}

func (n *node) info(name string) tier.FileInfo {
	_, base := tier.Parent(name)
	return tier.FileInfo{Name: base, Size: int64(len(n.data)), Dir: n.dir, ModTime: n.mod}
}

// LiveReplicas tells what SetReplicas said of the file, or of all.
func (s *Store) LiveReplicas(ctx context.Context, name string) (live, want int, err error) {
	err = s.do(ctx, Replicas, name, "counting the replicas of "+name, func() error {
		if s.mu.nodes[name] == nil {
			return tier.ErrNotFound
		}
		live, want = s.mu.live, s.mu.want
		if r, ok := s.mu.replicas[name]; ok {
			live, want = r[0], r[1]
		}
		return nil
	})
	return live, want, err
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Mode tells the permissions of a name, 0 if it is not there.
func (s *Store) Mode(name string) fs.FileMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.mu.nodes[name]; n != nil {
		return n.mode
	}
	return 0
}

// Damage flips one bit of the byte at pos of a file.
func (s *Store) Damage(name string, pos int) {
	s.replace(name, func(b []byte) []byte { b[pos] ^= 1; return b })
}

// Truncate cuts a file to n bytes.
func (s *Store) Truncate(name string, n int) {
	s.replace(name, func(b []byte) []byte { return b[:n] })
}

// Put stores a complete file beside all rules, with the folders that it needs.
func (s *Store) Put(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range name {
		if c == '/' && s.mu.nodes[name[:i]] == nil {
			s.mu.nodes[name[:i]] = &node{dir: true, mode: 0o750, mod: s.now()}
		}
	}
	s.mu.nodes[name] = &node{mode: 0o440, mod: s.now(), data: bytes.Clone(data)}
}

// Names lists every file (no folders) in order.
func (s *Store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, n := range s.mu.nodes {
		if !n.dir {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *Store) replace(name string, change func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.mu.nodes[name]
	if n == nil || n.dir {
		panic("faulty: no file " + name)
	}
	n.data = change(bytes.Clone(n.data))
}

// SetReplicas sets what LiveReplicas says of a file; name "" sets it for all that
// have nothing of their own.
func (s *Store) SetReplicas(name string, live, want int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" {
		s.mu.live, s.mu.want = live, want
		return
	}
	s.mu.replicas[name] = [2]int{live, want}
}
