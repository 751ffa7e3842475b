package log4j

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Hierarchy is the tree of loggers. Its zero value is not usable; see New.
type Hierarchy struct {
	stdout, stderr io.Writer
	start          time.Time
	warnedNone     atomic.Bool

	mu struct {
		sync.Mutex
		root      *node
		nodes     map[string]*node   // by name, without the root
		appenders map[*appender]bool // those in use
		threshold Level
		closed    bool
	}
}

// node is a logger. What a line needs is in the atomics; the rest is guarded
// by the hierarchy's lock.
type node struct {
	name    string
	enabled atomic.Int64 // lowest level that is logged
	route   atomic.Pointer[[]*appender]

	parent    *node // nil for the root
	level     *Level
	additive  bool
	appenders []*appender
}

// RootName is what people call the root logger.
const RootName = "root"

// New returns a hierarchy as log4j begins: root at DEBUG, no appender. stdout
// and stderr are where console appenders write; log4j's own messages go to
// stderr. nil is the process's.
func New(stdout, stderr io.Writer) *Hierarchy {
	h := &Hierarchy{stdout: stdout, stderr: stderr, start: time.Now()}
	if stdout == nil {
		h.stdout = os.Stdout
	}
	if stderr == nil {
		h.stderr = os.Stderr
	}
	level := Debug
	h.mu.root = &node{name: RootName, level: &level, additive: true}
	h.mu.nodes = map[string]*node{}
	h.mu.appenders = map[*appender]bool{}
	h.mu.threshold = All
	h.refresh()
	return h
}

// Logger returns the logger of a name, RootName or "" the root. The first
// call makes it exist.
func (h *Hierarchy) Logger(name string) *slog.Logger {
	return slog.New(h.Handler(name))
}

// Handler is the handler of a logger.
func (h *Hierarchy) Handler(name string) *Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Handler{hierarchy: h, node: h.node(name)}
}

// node finds or makes a logger; the lock is held.
func (h *Hierarchy) node(name string) *node {
	if name == "" || name == RootName {
		return h.mu.root
	}
	if n := h.mu.nodes[name]; n != nil {
		return n
	}
	n := &node{name: name, additive: true, parent: h.ancestor(name)}
	h.mu.nodes[name] = n
	for _, child := range h.mu.nodes {
		if strings.HasPrefix(child.name, name+".") && child.parent == n.parent {
			child.parent = n
		}
	}
	h.refresh()
	return n
}

func (h *Hierarchy) ancestor(name string) *node {
	for {
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			return h.mu.root
		}
		name = name[:dot]
		if n := h.mu.nodes[name]; n != nil {
			return n
		}
	}
}

// refresh computes what lines need of every logger; the lock is held.
func (h *Hierarchy) refresh() {
	h.mu.root.refresh(h.mu.threshold)
	for _, n := range h.mu.nodes {
		n.refresh(h.mu.threshold)
	}
}

func (n *node) refresh(threshold Level) {
	n.enabled.Store(int64(max(n.effective(), threshold)))
	var route []*appender
	for at := n; at != nil; at = at.parent {
		route = append(route, at.appenders...)
		if !at.additive {
			break
		}
	}
	n.route.Store(&route)
}

// effective is the level of the nearest logger upwards that has one.
func (n *node) effective() Level {
	for ; n.parent != nil; n = n.parent {
		if n.level != nil {
			return *n.level
		}
	}
	return *n.level
}

// LoggerLevel is a logger that exists.
type LoggerLevel struct {
	Name  string
	Level Level // effective
}

// Loggers lists the loggers that exist, the root among them, by name.
func (h *Hierarchy) Loggers() []LoggerLevel {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []LoggerLevel{{RootName, *h.mu.root.level}}
	for _, n := range h.mu.nodes {
		all = append(all, LoggerLevel{n.name, n.effective()})
	}
	slices.SortFunc(all, func(a, b LoggerLevel) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Level is the effective level of a logger; exists says whether anybody asked
// for it before.
func (h *Hierarchy) Level(name string) (l Level, exists bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if name == "" || name == RootName {
		return *h.mu.root.level, true
	}
	if n := h.mu.nodes[name]; n != nil {
		return n.effective(), true
	}
	return h.ancestor(name).effective(), false
}

// SetLevel changes a logger's level while the process runs, and makes it where
// it does not exist.
func (h *Hierarchy) SetLevel(name string, l Level) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.node(name).level = &l
	h.refresh()
}

var errRootLevel = errors.New("removing the log level of the root logger is not allowed")

// InheritLevel takes a logger's own level away. The root must keep its own.
func (h *Hierarchy) InheritLevel(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.node(name)
	if n.parent == nil {
		return errRootLevel
	}
	n.level = nil
	h.refresh()
	return nil
}

// Flush waits until the lines that were logged before it are written, or for
// timeout; it reports whether they are.
func (h *Hierarchy) Flush(timeout time.Duration) bool {
	deadline := time.Now().Add(timeout)
	ok := true
	for _, a := range h.snapshot() {
		ok = a.out.flush(time.Until(deadline)) && ok
	}
	return ok
}

// Close writes what there is to write, waits for that no longer than timeout,
// and closes the files. Lines logged afterwards are dropped.
func (h *Hierarchy) Close(timeout time.Duration) {
	h.mu.Lock()
	h.mu.closed = true
	h.mu.Unlock()
	deadline := time.Now().Add(timeout)
	for _, a := range h.snapshot() {
		a.out.close(time.Until(deadline))
	}
}

// Dropped counts the lines that could not be written since the start.
func (h *Hierarchy) Dropped() int64 {
	var n int64
	for _, a := range h.snapshot() {
		n += a.out.dropped.Load()
	}
	return n
}

func (h *Hierarchy) snapshot() []*appender {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*appender, 0, len(h.mu.appenders))
	for a := range h.mu.appenders {
		all = append(all, a)
	}
	return all
}

// complain is log4j's own voice: one line to stderr.
func (h *Hierarchy) complain(severity, format string, args ...any) {
	fmt.Fprintf(h.stderr, "log4j:"+severity+" "+format+"\n", args...)
}
