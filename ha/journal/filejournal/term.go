package filejournal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"path"

	"varve/broker/kafka"
	"varve/broker/vfs"
	"varve/ha/journal"
)

const (
	epochName  = "epoch"
	epochMagic = "VARVEEPO"
)

// Take implements journal.Journal: the new epoch is durable before any edit of it.
func (j *Journal) Take(ctx context.Context, who string) (journal.Term, error) {
	if err := j.begin(ctx); err != nil {
		return nil, err
	}
	defer j.done()
	j.mu.Lock()
	epoch := j.mu.epoch
	j.mu.Unlock()
	if epoch == math.MaxInt32 {
		return nil, errors.New("taking the journal: controller epochs are used up")
	}
	epoch++
	body := binary.BigEndian.AppendUint32(nil, uint32(epoch))
	if err := vfs.WriteFile(j.fs, path.Join(j.dir, epochName), seal(epochMagic, append(body, who...)), true); err != nil {
		return nil, j.fail(fmt.Errorf("writing epoch %d: %w", epoch, err))
	}
	j.mu.Lock()
	j.mu.epoch = epoch
	j.mu.Unlock()
	return &term{j: j, epoch: epoch}, nil
}

func (j *Journal) readEpoch() (_ kafka.ControllerEpoch, known bool, _ error) {
	name := path.Join(j.dir, epochName)
	b, err := vfs.ReadFile(j.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	body, err := unseal(name, epochMagic, b)
	if err != nil {
		return 0, false, err
	}
	if len(body) < 4 {
		return 0, false, fmt.Errorf("%w: %s is cut short", journal.ErrDamaged, name)
	}
	return kafka.ControllerEpoch(binary.BigEndian.Uint32(body)), true, nil
}

// seal puts magic, version and checksum before body.
func seal(magic string, body []byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte(magic), version)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...)
}

// unseal proves what seal made.
func unseal(name, magic string, b []byte) ([]byte, error) {
	if len(b) < 16 || !bytes.Equal(b[:8], []byte(magic)) || crc32.Checksum(b[16:], castagnoli) != binary.BigEndian.Uint32(b[12:]) {
		return nil, fmt.Errorf("%w: %s is not what was written", journal.ErrDamaged, name)
	}
	if v := binary.BigEndian.Uint32(b[8:]); v != version {
		return nil, fmt.Errorf("%s has version %d of the format, this varve knows %d", name, v, version)
	}
	return b[16:], nil
}

// begin waits for the right to write and refuses where there is none any more.
func (j *Journal) begin(ctx context.Context) error {
	select {
	case j.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.mu.failed
	if j.mu.closed {
		err = fs.ErrClosed
	}
	if err != nil {
		<-j.writing
	}
	return err
}

func (j *Journal) done() { <-j.writing }

// fail ends all writing: what the disk holds is not known any more (H1).
func (j *Journal) fail(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.failed == nil {
		j.mu.failed = fmt.Errorf("journal %s takes no more edits: %w", j.dir, err)
	}
	return j.mu.failed
}

// A term is one taking of the journal.
type term struct {
	j     *Journal
	epoch kafka.ControllerEpoch
	count uint64 // edits tried; under writing
	over  bool   // resigned; under writing
}

func (t *term) Epoch() kafka.ControllerEpoch { return t.epoch }

// begin is the right to write in this term.
func (t *term) begin(ctx context.Context) error {
	if err := t.j.begin(ctx); err != nil {
		return err
	}
	t.j.mu.Lock()
	newest := t.j.mu.epoch
	t.j.mu.Unlock()
	if newest != t.epoch || t.over {
		t.j.done()
		return journal.ErrFenced
	}
	return nil
}

// Append implements journal.Term.
func (t *term) Append(ctx context.Context, payload []byte) (journal.Edit, error) {
	if len(payload) > journal.MaxPayload {
		panic(fmt.Sprintf("filejournal: payload of %d bytes, at most %d", len(payload), journal.MaxPayload))
	}
	if err := t.begin(ctx); err != nil {
		return journal.Edit{}, err
	}
	defer t.j.done()
	t.count++
	e, err := t.j.append(journal.Edit{
		ID: journal.EditID{Writer: uint64(t.epoch), Count: t.count}, Epoch: t.epoch, Payload: payload,
	})
	if err != nil {
		return journal.Edit{}, t.j.fail(err)
	}
	return e, nil
}

// append writes e behind the last edit and syncs it; then readers see it.
func (j *Journal) append(e journal.Edit) (journal.Edit, error) {
	j.mu.Lock()
	n, previous := j.end()
	j.mu.Unlock()
	e.N = n + 1
	b, hash := appendRecord(nil, e, previous)
	e.Hash = hash
	f, err := j.room(e.N, previous, int64(len(b)))
	if err != nil {
		return e, err
	}
	if _, err := j.active.WriteAt(b, f.tail); err != nil {
		return e, fmt.Errorf("writing edit %d to %s at offset %d: %w", e.N, f.name, f.tail, err)
	}
	if err := j.active.Sync(); err != nil {
		return e, fmt.Errorf("syncing edit %d of %s: %w", e.N, f.name, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	f.add(e, int64(len(b)))
	j.wake()
	return e, nil
}

// room returns the file that has space for n bytes, a new one if need be.
func (j *Journal) room(next journal.Number, previous [32]byte, n int64) (*recordFile, error) {
	j.mu.Lock()
	var f *recordFile
	if len(j.mu.files) > 0 {
		f = j.mu.files[len(j.mu.files)-1]
	}
	j.mu.Unlock()
	if f != nil && f.tail+n <= f.size {
		return f, nil
	}
	f, w, err := j.createRecords(next, previous, n)
	if err != nil {
		return nil, err
	}
	if j.active != nil {
		j.active.Close()
	}
	j.active = w
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.files = append(j.mu.files, f)
	return f, nil
}

// Check implements journal.Term (A3). The folder's lock is held for as long as the
// journal is open, so only this process can have taken a later term.
func (t *term) Check(ctx context.Context) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.j.done()
	return nil
}

// Resign implements journal.Term.
func (t *term) Resign() {
	t.j.writing <- struct{}{}
	t.over = true
	t.j.done()
}
