package vfs

import (
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory for tests. It keeps, beside what a process sees,
// what a disk would have: the contents at the last Sync and the names at the last
// SyncDir. PowerCut and Kill make clones of either. A rule may fail any operation.
type Mem struct {
	mu   sync.Mutex
	root *node
	rule func(Op) error
	free int64 // bytes that may still be written; <0: no limit
	now  int64 // a clock of operations, for modification times
}

// An Op is an operation on its way to a Mem.
type Op struct {
	Kind OpKind
	Name string
	To   string // the target of a rename
	N    int    // bytes of a write
}

// An OpKind names what an Op does.
type OpKind string

// The operations that a rule sees. Reads are seen, too, as OpRead and OpOpen.
const (
	OpOpen     OpKind = "open"
	OpCreate   OpKind = "create"
	OpRead     OpKind = "read"
	OpWrite    OpKind = "write"
	OpTruncate OpKind = "truncate"
	OpSync     OpKind = "sync"
	OpRename   OpKind = "rename"
	OpRemove   OpKind = "remove"
	OpMkdir    OpKind = "mkdir"
	OpSyncDir  OpKind = "syncdir"
)

// Changes tells whether the operation alters what a power cut would leave.
func (o Op) Changes() bool { return o.Kind != OpOpen && o.Kind != OpRead }

// A ShortWrite, returned by a rule, lets the first Keep bytes of a write through.
type ShortWrite struct {
	Keep int
	Err  error
}

func (e *ShortWrite) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *ShortWrite) Unwrap() error { return e.Err }

// node is a file or a folder.
type node struct {
	dir     bool
	data    []byte
	synced  []byte // contents at the last Sync
	entries map[string]*node
	durable map[string]*node // names at the last SyncDir
	locked  bool
	mod     time.Time
}

var _ FS = (*Mem)(nil)

// NewMem returns an empty file system with a root that is durable.
func NewMem() *Mem {
	return &Mem{root: newDir(), free: -1, now: 1}
}

func newDir() *node {
	return &node{dir: true, entries: map[string]*node{}, durable: map[string]*node{}}
}

// Rule sets the function that every operation asks first, outside of Mem's lock:
// its error fails the operation. nil takes the rule away.
func (m *Mem) Rule(rule func(Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rule = rule
}

// SetFree limits how many bytes files may still grow; what is more fails with ENOSPC.
func (m *Mem) SetFree(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = n
}

// Kill returns a clone as a killed process leaves it: all that was written is there.
func (m *Mem) Kill() *Mem {
	return m.clone(func(n *node) ([]byte, map[string]*node) { return n.data, n.entries })
}

// PowerCut returns a clone as a power cut leaves it: what was synced is there; what
// was not is gone, or, if r is given, is there by chance: a file's sectors one by
// one, a folder's names all or none.
func (m *Mem) PowerCut(r *rand.Rand) *Mem {
	return m.clone(func(n *node) ([]byte, map[string]*node) {
		if r == nil {
			return n.synced, n.durable
		}
		names := n.durable
		if r.Intn(2) == 0 {
			names = n.entries
		}
		return tear(r, n.synced, n.data), names
	})
}

// tear mixes two contents of a file by sectors.
func tear(r *rand.Rand, old, now []byte) []byte {
	const sector = 512
	size := len(old)
	if r.Intn(2) == 0 {
		size = len(now)
	}
	out := make([]byte, size)
	copy(out, old)
	for at := 0; at < size && at < len(now); at += sector {
		if r.Intn(2) == 0 {
			copy(out[at:min(at+sector, size)], now[at:])
		}
	}
	return out
}

func (m *Mem) clone(pick func(*node) ([]byte, map[string]*node)) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[*node]*node{}
	var copyNode func(n *node) *node
	copyNode = func(n *node) *node {
		if c := seen[n]; c != nil {
			return c
		}
		c := &node{dir: n.dir, mod: n.mod}
		seen[n] = c
		data, entries := pick(n)
		if !n.dir {
			c.data = append([]byte(nil), data...)
			c.synced = append([]byte(nil), data...)
			return c
		}
		c.entries, c.durable = map[string]*node{}, map[string]*node{}
		for _, name := range sortedNames(entries) {
			e := copyNode(entries[name])
			c.entries[name], c.durable[name] = e, e
		}
		return c
	}
	return &Mem{root: copyNode(m.root), free: -1, now: m.now}
}

func sortedNames(entries map[string]*node) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// ask lets the rule speak.
func (m *Mem) ask(op Op) error {
	m.mu.Lock()
	rule := m.rule
	m.mu.Unlock()
	if rule == nil {
		return nil
	}
	return rule(op)
}

func clean(name string) string { return strings.Trim(path.Clean("/"+name), "/") }

// find walks to a name; the lock is held.
func (m *Mem) find(name string) *node {
	n := m.root
	name = clean(name)
	if name == "" {
		return n
	}
	for _, part := range strings.Split(name, "/") {
		if n == nil || !n.dir {
			return nil
		}
		n = n.entries[part]
	}
	return n
}

// parent walks to the folder of a name; the lock is held.
func (m *Mem) parent(name string) (*node, string) {
	name = clean(name)
	dir, base := path.Split(name)
	p := m.find(dir)
	if p == nil || !p.dir {
		return nil, base
	}
	return p, base
}

func (m *Mem) tick() time.Time {
	m.now++
	return time.Unix(1_700_000_000, m.now)
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile implements FS.
func (m *Mem) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	m.mu.Lock()
	there := m.find(name) != nil
	m.mu.Unlock()
	kind := OpOpen
	if !there && flag&os.O_CREATE != 0 {
		kind = OpCreate
	}
	if err := m.ask(Op{Kind: kind, Name: name}); err != nil {
		return nil, pathError("open", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, pathError("open", name, fs.ErrNotExist)
	case n == nil:
		p, base := m.parent(name)
		if p == nil {
			return nil, pathError("open", name, fs.ErrNotExist)
		}
		n = &node{mod: m.tick()}
		p.entries[base] = n
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, pathError("open", name, fs.ErrExist)
	case n.dir && flag&(os.O_WRONLY|os.O_RDWR) != 0:
		return nil, pathError("open", name, syscall.EISDIR)
	case flag&os.O_TRUNC != 0:
		n.data, n.mod = nil, m.tick()
	}
	return &memFile{m: m, n: n, name: name, writes: flag&(os.O_WRONLY|os.O_RDWR) != 0}, nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string, _ fs.FileMode) error {
	if err := m.ask(Op{Kind: OpMkdir, Name: name}); err != nil {
		return pathError("mkdir", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, base := m.parent(name)
	switch {
	case p == nil:
		return pathError("mkdir", name, fs.ErrNotExist)
	case p.entries[base] != nil:
		return pathError("mkdir", name, fs.ErrExist)
	}
	d := newDir()
	d.mod = m.tick()
	p.entries[base] = d
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string, perm fs.FileMode) error {
	at := ""
	for _, part := range strings.Split(clean(name), "/") {
		at += "/" + part
		m.mu.Lock()
		n := m.find(at)
		m.mu.Unlock()
		if n != nil && n.dir {
			continue
		}
		if err := m.Mkdir(at, perm); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error { return m.remove(name, false) }

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error { return m.remove(name, true) }

func (m *Mem) remove(name string, all bool) error {
	if err := m.ask(Op{Kind: OpRemove, Name: name}); err != nil {
		return pathError("remove", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, base := m.parent(name)
	if p == nil || p.entries[base] == nil {
		if all {
			return nil
		}
		return pathError("remove", name, fs.ErrNotExist)
	}
	if n := p.entries[base]; n.dir && len(n.entries) > 0 && !all {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	delete(p.entries, base)
	return nil
}

// Rename implements FS.
func (m *Mem) Rename(from, to string) error { return m.rename(from, to, true) }

// RenameNoReplace implements FS.
func (m *Mem) RenameNoReplace(from, to string) error { return m.rename(from, to, false) }

func (m *Mem) rename(from, to string, replace bool) error {
	fail := func(err error) error { return &os.LinkError{Op: "rename", Old: from, New: to, Err: err} }
	if err := m.ask(Op{Kind: OpRename, Name: from, To: to}); err != nil {
		return fail(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	fp, fb := m.parent(from)
	tp, tb := m.parent(to)
	if fp == nil || tp == nil || fp.entries[fb] == nil {
		return fail(fs.ErrNotExist)
	}
	n, old := fp.entries[fb], tp.entries[tb]
	if old != nil && (!replace || old.dir && len(old.entries) > 0) {
		return fail(fs.ErrExist)
	}
	delete(fp.entries, fb)
	tp.entries[tb] = n
	return nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return nil, pathError("stat", name, fs.ErrNotExist)
	}
	return n.info(path.Base(name)), nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := m.ask(Op{Kind: OpOpen, Name: name}); err != nil {
		return nil, pathError("open", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil || !n.dir {
		return nil, pathError("open", name, fs.ErrNotExist)
	}
	var out []fs.DirEntry
	for _, e := range sortedNames(n.entries) {
		out = append(out, fs.FileInfoToDirEntry(n.entries[e].info(e)))
	}
	return out, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	if err := m.ask(Op{Kind: OpSyncDir, Name: name}); err != nil {
		return pathError("sync", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil || !n.dir {
		return pathError("sync", name, fs.ErrNotExist)
	}
	n.durable = make(map[string]*node, len(n.entries))
	for k, v := range n.entries {
		n.durable[k] = v
	}
	return nil
}

// Space implements FS.
func (m *Mem) Space(string) (total, free int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.free < 0 {
		return 1 << 40, 1 << 40, nil
	}
	return 1 << 40, m.free, nil
}

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := f.(*memFile).n
	if n.locked {
		return nil, &LockedError{Name: name}
	}
	n.locked = true
	return &memLock{m, n}, nil
}

// memLock is a held lock.
type memLock struct {
	m *Mem
	n *node
}

// Close gives the lock back.
func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.n.locked = false
	return nil
}
