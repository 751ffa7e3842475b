package filejournal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"varve/broker/vfs"
	"varve/ha/journal"
)

const snapshotMagic = "VARVESNP"

// SaveSnapshot implements journal.Term.
func (t *term) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	defer t.j.done()
	name := t.j.path("snapshot-", s.N, ".img")
	body := binary.BigEndian.AppendUint64(nil, uint64(s.N))
	body = append(append(body, s.Hash[:]...), s.Image...)
	if err := vfs.WriteFile(t.j.fs, name, seal(snapshotMagic, body), true); err != nil {
		return t.j.fail(fmt.Errorf("writing %s: %w", name, err))
	}
	return t.j.trim() // the snapshot and its name are durable
}

// trim deletes all snapshots but two, and record files whose edits the older of these
// covers. The last file stays, and the last edit with it.
func (j *Journal) trim() error {
	snapshots, err := j.list("snapshot-", ".img")
	if err != nil || len(snapshots) < 2 {
		return err
	}
	keep := snapshots[len(snapshots)-2:]
	for _, n := range snapshots[:len(snapshots)-2] {
		if err := j.fs.Remove(j.path("snapshot-", n, ".img")); err != nil {
			return err
		}
	}
	j.mu.Lock()
	var gone []*recordFile
	for len(j.mu.files) > 1 && j.mu.files[0].next()-1 <= keep[0] {
		gone = append(gone, j.mu.files[0])
		j.mu.files = slices.Delete(slices.Clone(j.mu.files), 0, 1)
	}
	if gone != nil {
		j.wake()
	}
	j.mu.Unlock()
	for _, f := range gone { // oldest first: a crash leaves no hole
		if err := j.fs.Remove(f.name); err != nil {
			return err
		}
		if err := j.fs.SyncDir(j.dir); err != nil {
			return err
		}
	}
	return nil
}

// LoadSnapshot implements journal.Journal. Where the newest snapshot is damaged and the
// edits after the one before it are all there, that one serves.
func (j *Journal) LoadSnapshot(ctx context.Context) (journal.Snapshot, error) {
	for ctx.Err() == nil {
		s, err := j.newestSnapshot()
		if !errors.Is(err, fs.ErrNotExist) { // else it was replaced while we looked
			return s, err
		}
	}
	return journal.Snapshot{}, ctx.Err()
}

func (j *Journal) newestSnapshot() (journal.Snapshot, error) {
	numbers, err := j.list("snapshot-", ".img")
	if err != nil {
		return journal.Snapshot{}, err
	}
	var damage error
	for _, n := range slices.Backward(numbers) {
		s, err := j.readSnapshot(n)
		switch {
		case err == nil && damage != nil && !j.holds(s.N+1):
			return journal.Snapshot{}, damage
		case err == nil:
			return s, nil
		case !errors.Is(err, journal.ErrDamaged):
			return journal.Snapshot{}, err
		}
		j.log.Error("a snapshot is damaged, trying the one before it", "err", err)
		damage = errors.Join(damage, err)
	}
	return journal.Snapshot{}, damage
}

// holds tells whether edits from n on are all here.
func (j *Journal) holds(n journal.Number) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.mu.files) > 0 && j.mu.files[0].first <= n
}

func (j *Journal) readSnapshot(n journal.Number) (journal.Snapshot, error) {
	name := j.path("snapshot-", n, ".img")
	b, err := vfs.ReadFile(j.fs, name)
	if err != nil {
		return journal.Snapshot{}, err
	}
	body, err := unseal(name, snapshotMagic, b)
	if err != nil {
		return journal.Snapshot{}, err
	}
	if len(body) < 40 || journal.Number(binary.BigEndian.Uint64(body)) != n {
		return journal.Snapshot{}, fmt.Errorf("%w: %s is of another edit", journal.ErrDamaged, name)
	}
	s := journal.Snapshot{N: n, Image: body[40:]}
	copy(s.Hash[:], body[8:])
	return s, nil
}
