// Package chain reads and publishes the manifest chain of one partition on a Store.
// What a version may say is decided by manifest; here is only how it gets there.
//
// Commit, and where it can stop:
//
//	write _inprogress/<version>-<epoch>-<broker>-<uuid>.json, close
//	rename it to manifest/<version>.json, which must not be there     the swap
//	list manifest/ once: does it count? (T2, T3)
//
// A rename whose outcome is not known is settled by deleting its source (T1): then it
// has happened already or never will, and the chain as it is read says which. Until
// that delete has succeeded the attempt is unsettled, and nothing that it names may go.
package chain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"varve/broker/kafka"
	"varve/tier"
	"varve/tier/manifest"
)

// A Folder is one partition's folder on a store.
type Folder struct {
	Store tier.Store
	Path  string // topics/<topic>/<topic id>/<partition>
}

// At is the folder of a partition.
func At(store tier.Store, tp kafka.TopicPartition, id kafka.TopicID) Folder {
	return Folder{store, manifest.PartitionDir(tp, id)}
}

// NewID is a fresh uuid.
func NewID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(fmt.Sprintf("chain: no randomness: %v", err))
	}
	return manifest.FormatID(b)
}

// Segment is a container's name on the store, Progress that of a file being written.
func (f Folder) Segment(s manifest.Segment) string {
	return f.Path + "/" + manifest.SegmentsDir + "/" + s.Name()
}

// Progress is the name of a file in _inprogress/.
func (f Folder) Progress(n manifest.ProgressName) string {
	return f.Path + "/" + manifest.ProgressDir + "/" + n.String()
}

func (f Folder) version(n int64) string {
	return f.Path + "/" + manifest.ChainDir + "/" + manifest.VersionName(n)
}

// Make makes the partition's folders. Only a leader about to fence does that (T14).
func (f Folder) Make(ctx context.Context) error {
	if s, ok := f.Store.(tier.Sharer); ok {
		topic, _ := tier.Parent(f.Path)
		if err := f.Store.MkdirAll(ctx, topic); err != nil {
			return err
		}
		if err := s.Share(ctx, topic); err != nil {
			return err
		}
	}
	for _, d := range []string{manifest.SegmentsDir, manifest.ProgressDir, manifest.PinsDir, manifest.ChainDir} {
		if err := f.Store.MkdirAll(ctx, f.Path+"/"+d); err != nil {
			return err
		}
	}
	return nil
}

// versions lists the chain's numbers, ascending, with the newest file's time.
func (f Folder) versions(ctx context.Context) (numbers []int64, newest time.Time, err error) {
	files, err := f.Store.List(ctx, f.Path+"/"+manifest.ChainDir)
	if errors.Is(err, tier.ErrNotFound) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, file := range files {
		if n, err := manifest.ParseVersionName(file.Name); err == nil {
			numbers, newest = append(numbers, n), file.ModTime
		}
	}
	return numbers, newest, nil
}

// loadTries bounds how often Load begins again because versions were pruned under it.
const loadTries = 20

// Load folds the newest version. A chain that is not there is the zero State.
func (f Folder) Load(ctx context.Context) (manifest.State, error) {
	for range loadTries {
		numbers, _, err := f.versions(ctx)
		if err != nil {
			return manifest.State{}, err
		}
		if len(numbers) == 0 {
			return manifest.State{}, nil
		}
		s, err := f.fold(ctx, numbers[len(numbers)-1])
		if !errors.Is(err, tier.ErrNotFound) {
			return s, err
		}
	}
	return manifest.State{}, fmt.Errorf("reading %s/%s: versions vanish as fast as they are read: %w", f.Path, manifest.ChainDir, tier.ErrUnavailable)
}

// fold reads back from version n to one that holds the whole state, then forward.
func (f Folder) fold(ctx context.Context, n int64) (manifest.State, error) {
	var back []manifest.Version
	for at := n; at > 0; at-- {
		v, err := f.read(ctx, at)
		if err != nil {
			return manifest.State{}, err
		}
		back = append(back, v)
		if v.Whole != nil {
			break
		}
	}
	var s manifest.State
	for i := len(back) - 1; i >= 0; i-- {
		var err error
		if s, err = s.Apply(back[i]); err != nil {
			return s, fmt.Errorf("%s: %w", f.version(back[i].Number), err)
		}
	}
	return s, nil
}

func (f Folder) read(ctx context.Context, n int64) (manifest.Version, error) {
	name := f.version(n)
	b, err := ReadFile(ctx, f.Store, name)
	if err != nil {
		return manifest.Version{}, err
	}
	v, err := manifest.Decode(b)
	if err == nil && v.Number != n {
		err = fmt.Errorf("it is version %d", v.Number)
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// fileMax bounds what is read into memory in one go.
const fileMax = 1 << 30

// ReadFile reads a whole small file.
func ReadFile(ctx context.Context, store tier.Store, name string) ([]byte, error) {
	r, err := store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size() > fileMax {
		return nil, fmt.Errorf("reading %s: %d bytes are too many", name, r.Size())
	}
	b := make([]byte, r.Size())
	if n, err := r.ReadAt(b, 0); n < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return b, nil
}

func (f Folder) write(ctx context.Context, name string, b []byte) error {
	w, err := f.Store.Create(ctx, name, tier.CreateOptions{Size: int64(len(b))})
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

// Pins lists the pins.
func (f Folder) Pins(ctx context.Context) ([]manifest.Pin, error) {
	files, err := f.Store.List(ctx, f.Path+"/"+manifest.PinsDir)
	if errors.Is(err, tier.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pins []manifest.Pin
	for _, file := range files {
		if p, err := manifest.ParsePin(file.Name); err == nil {
			pins = append(pins, p)
		}
	}
	return pins, nil
}

// Pin loads the newest version and holds its containers for a reader, for ttl or until
// Unpin: pin, then look again (T9).
func (f Folder) Pin(ctx context.Context, ttl time.Duration) (manifest.State, manifest.Pin, error) {
	for {
		s, err := f.Load(ctx)
		if err != nil || s.Number == 0 {
			return s, manifest.Pin{}, err
		}
		p := manifest.Pin{Version: s.Number, TTLSeconds: max(1, int64(ttl/time.Second)), ID: NewID()}
		if err := f.write(ctx, f.pin(p), nil); err != nil {
			return s, p, err
		}
		now, err := f.Load(ctx)
		if err != nil {
			return s, p, errors.Join(err, f.Unpin(ctx, p))
		}
		if stillLive(s, now) {
			return s, p, nil
		}
		if err := f.Unpin(ctx, p); err != nil {
			return s, p, err
		}
	}
}

func stillLive(s, now manifest.State) bool {
	for i := range s.Live {
		if !now.IsLive(s.Live[i].ID) {
			return false
		}
	}
	return true
}

// Renew holds the same version under a new name, then lets the old one go.
func (f Folder) Renew(ctx context.Context, p manifest.Pin) (manifest.Pin, error) {
	next := p
	next.ID = NewID()
	if err := f.write(ctx, f.pin(next), nil); err != nil {
		return p, err
	}
	return next, f.Unpin(ctx, p)
}

// Unpin lets a pin go.
func (f Folder) Unpin(ctx context.Context, p manifest.Pin) error {
	return f.Store.Delete(ctx, f.pin(p))
}

func (f Folder) pin(p manifest.Pin) string { return f.Path + "/" + manifest.PinsDir + "/" + p.String() }
