package servers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// VarveOptions chooses what StartVarve starts.
type VarveOptions struct {
	Dir        string            // where it lives; default a temporary folder that goes with it
	Binary     string            // default: $E2E_BINARY (one with -race, say), or built from this module, once for each program
	Properties map[string]string // keys given with -D
	Tier       string            // URL of the tier; default file:// in Dir
	Args       []string          // further arguments of varve standalone
}

// Varve is one standalone broker in a process of its own. Its daemon may be killed,
// paused and started again; addresses and data stay.
type Varve struct {
	Addr    string // HOST:PORT for clients: the bootstrap server
	HTTP    string // HOST:PORT of the pages
	Dir     string
	DataDir string
	TierDir string // of the default tier
	*Daemon
	home home
}

// StartVarve starts a standalone broker and waits until it says that it serves.
func StartVarve(ctx context.Context, o VarveOptions) (*Varve, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	v, err := NewVarve(ctx, o)
	if err == nil {
		if err = v.Start(ctx); err != nil {
			v.home.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("varve: %w", err)
	}
	return v, nil
}

// NewVarve prepares a broker that has not started: for tests of the start.
func NewVarve(ctx context.Context, o VarveOptions) (*Varve, error) {
	binary := cmp.Or(o.Binary, os.Getenv("E2E_BINARY"))
	if binary == "" {
		var err error
		if binary, err = buildVarve(ctx); err != nil {
			return nil, err
		}
	}
	h, err := newHome("varve", o.Dir)
	if err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(2)
	if err != nil {
		h.Close()
		return nil, err
	}
	v := &Varve{Addr: addrs[0], HTTP: addrs[1], Dir: h.dir, DataDir: filepath.Join(h.dir, "data"), TierDir: filepath.Join(h.dir, "tier"), home: h}
	v.Daemon = &Daemon{Name: "varve", Dir: h.dir, argv: append([]string{binary}, v.arguments(o)...),
		ready: func(context.Context) error { return v.logged(" bootstrap=") }}
	return v, nil
}

func (v *Varve) arguments(o VarveOptions) []string {
	tier := o.Tier
	if tier == "" {
		tier = "file://" + v.TierDir
	}
	args := []string{"standalone", "-data-dir", v.DataDir, "-listener", v.Addr, "-http", v.HTTP, "-tier", tier}
	for _, key := range slices.Sorted(maps.Keys(o.Properties)) {
		args = append(args, "-D", key+"="+o.Properties[key])
	}
	return append(args, o.Args...)
}

// Close ends the broker and removes its files, unless the caller chose where.
func (v *Varve) Close() error {
	v.Kill()
	return v.home.Close()
}

// VarveFor starts a broker that ends with the test.
func VarveFor(t testing.TB, o VarveOptions) *Varve {
	t.Helper()
	v, err := StartVarve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, v.Close, v.Daemon)
	return v
}

var built struct {
	once sync.Once
	path string
	err  error
}

// buildVarve builds the binary from the module that this file belongs to.
func buildVarve(ctx context.Context) (string, error) {
	built.once.Do(func() {
		_, file, _, _ := runtime.Caller(0)
		root := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(file))))
		h, err := newHome("binary", "")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(h.dir, "varve")
		cmd := exec.CommandContext(ctx, "go", "build", "-o", built.path, "./cmd/varve")
		cmd.Dir, cmd.Env = root, os.Environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("building it: %w\n%s", err, out)
		}
	})
	return built.path, built.err
}
