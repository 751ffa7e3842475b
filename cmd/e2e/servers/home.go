package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// home is the folder of one running server.
type home struct {
	dir  string
	kept bool // the caller named it: its files stay
}

// newHome makes the folder of a server: dir if the caller chose one, else a new
// temporary one that goes with the server.
func newHome(kind, dir string) (home, error) {
	if dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return home{}, err
		}
		return home{abs, true}, os.MkdirAll(abs, 0o755)
	}
	root := filepath.Join(os.TempDir(), fmt.Sprintf("varve-servers-%d", os.Getuid()))
	if err := os.MkdirAll(root, 0o755); err != nil {
		return home{}, err
	}
	sweep(root)
	dir, err := os.MkdirTemp(root, kind+"-")
	if err != nil {
		return home{}, err
	}
	owner := strconv.Itoa(os.Getpid())
	return home{dir, false}, os.WriteFile(filepath.Join(dir, "owner"), []byte(owner), 0o644)
}

func (h home) Close() error {
	if h.kept {
		return nil
	}
	return os.RemoveAll(h.dir)
}

// sweep ends and removes, once for each program, the servers whose owner is
// gone.
func sweep(root string) { swept.Do(func() { sweepNow(root) }) }

var swept sync.Once

func sweepNow(root string) {
	owners, _ := filepath.Glob(filepath.Join(root, "*", "owner"))
	for _, file := range owners {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		owner, err := strconv.Atoi(string(b))
		if err != nil || syscall.Kill(owner, 0) != syscall.ESRCH {
			continue
		}
		dir := filepath.Dir(file)
		pids, _ := filepath.Glob(filepath.Join(dir, "*.pid"))
		for _, pid := range pids {
			endLeftover(pid, dir)
		}
		os.RemoveAll(dir)
	}
}
