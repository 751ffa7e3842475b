package broker

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"varve/broker/vfs"
	"varve/conf"
	"varve/ha/runner"
)

// historyFile, in each log dir, names the last metadata edit that the folder's logs have
// followed: a metadata log without it has gone back, or is another cluster's (A11).
//
//	version=0
//	edit=<number>
//	hash=<64 hex digits, of the edit's header>
const historyFile = "varve.metadata.seen"

// Seen is the newest edit that the log dirs of a configuration have followed; zero where
// they are new. Give it to the runner.
func Seen(fsys vfs.FS, c *conf.Config) (runner.Position, error) {
	var newest runner.Position
	for _, dir := range LogDirs(c) {
		name := path.Join(dir, historyFile)
		b, err := vfs.ReadFile(fsys, name)
		if err != nil {
			continue // a new folder, or one that fails: that is told when it is opened
		}
		p, err := parsePosition(b)
		if err != nil {
			return newest, fmt.Errorf("%s is damaged (%w): delete it if the metadata log is known to be this cluster's newest", name, err)
		}
		if p.N > newest.N {
			newest = p
		}
	}
	return newest, nil
}

func parsePosition(b []byte) (p runner.Position, err error) {
	var version int
	var hash string
	if _, err := fmt.Sscanf(string(b), "version=%d\nedit=%d\nhash=%64s\n", &version, &p.N, &hash); err != nil {
		return p, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(hash))
	switch {
	case err != nil:
		return p, err
	case version != 0:
		return p, fmt.Errorf("version is %d, want 0", version)
	case len(raw) != len(p.Hash) || p.N < 1:
		return p, fmt.Errorf("edit %d with a hash of %d bytes", p.N, len(raw))
	}
	copy(p.Hash[:], raw)
	return p, nil
}

func formatPosition(p runner.Position) []byte {
	return fmt.Appendf(nil, "version=0\nedit=%d\nhash=%x\n", p.N, p.Hash)
}

// noteHistory writes what has been followed into the log dirs in service.
func (b *Broker) noteHistory() {
	at := b.opt.Runner.Position()
	if at == b.noted {
		return
	}
	for _, d := range b.host.Dirs() {
		if d.Failed() != nil {
			continue
		}
		if err := vfs.WriteFile(b.opt.FS, path.Join(d.Path(), historyFile), formatPosition(at), true); err != nil {
			b.log.Warn("noting the last metadata edit failed; it is noted again", "dir", d.Path(), "err", err)
			return
		}
	}
	b.noted = at
}
