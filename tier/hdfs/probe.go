package hdfs

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"varve/tier"
	"varve/tier/hdfs/namenode"
)

// Probe tells whether the folder can hold a tier, by doing there what a tier does:
// it writes, reads back, renames between folders, is refused an overwrite, deletes.
// It makes the root where it is missing. Encryption zones (the library cannot
// decrypt) and erasure coding (it cannot read block groups) are refused. An HDFS
// that is away is tier.ErrUnavailable: probe again later.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.probe(ctx); err != nil {
		return fmt.Errorf("probing the tier: %w", err)
	}
	return nil
}

func (s *Store) probe(ctx context.Context) error {
	if err := s.MkdirAll(ctx, ""); err != nil {
		return err
	}
	if err := s.plain(ctx); err != nil {
		return err
	}
	random := make([]byte, 8)
	rand.Read(random)
	dir := "_probe-" + hex.EncodeToString(random)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Call)
		defer cancel()
		_ = s.DeleteAll(ctx, dir)
	}()
	for _, name := range []string{dir, dir + "/_inprogress", dir + "/segments"} {
		if err := s.Mkdir(ctx, name); err != nil {
			return err
		}
	}
	return s.exercise(ctx, dir)
}

// plain refuses a root whose files the library would garble.
func (s *Store) plain(ctx context.Context) error {
	status, err := s.nn.Stat(ctx, s.root)
	if err != nil {
		return s.fail("looking at the root", err)
	}
	// a NameNode without key provider or too old for zones has none
	zone, err := s.nn.EncryptionZone(ctx, s.root)
	if err != nil && !namenode.IsNoSuchMethod(err) {
		return s.fail("asking for the encryption zone of the root", err)
	}
	if zone != "" || status.Flags&namenode.Encrypted != 0 {
		return fmt.Errorf("%s lies in the encryption zone %s, which this client cannot write: choose a folder outside", s.URL(), zone)
	}
	policy, err := s.nn.ErasureCodingPolicy(ctx, s.root)
	if err != nil {
		return s.fail("asking for the erasure coding of the root", err)
	}
	if policy != "" {
		return fmt.Errorf("%s is erasure coded (%s), which this client cannot read: hdfs ec -setPolicy -replicate -path %s", s.URL(), policy, s.root)
	}
	return nil
}

// exercise leads two small files through the life of a container.
func (s *Store) exercise(ctx context.Context, dir string) error {
	data := bytes.Repeat([]byte("varve probe\n"), 1000) // more than a packet's first chunk, less than a block
	first, second, target := dir+"/_inprogress/1", dir+"/_inprogress/2", dir+"/segments/1"
	for _, name := range []string{first, second} {
		if err := s.write(ctx, name, data); err != nil {
			return err
		}
	}
	if err := s.Rename(ctx, first, target); err != nil {
		return err
	}
	if err := s.Rename(ctx, second, target); !errors.Is(err, tier.ErrExists) {
		return fmt.Errorf("renaming onto a file that is there must be refused in %s, it was not: %w", s.URL(), err)
	}
	got, err := s.read(ctx, target)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("reading back from %s: %d bytes that are not the %d written", s.URL(), len(got), len(data))
	}
	live, want, err := s.LiveReplicas(ctx, target)
	if err != nil {
		return err
	}
	if live < 1 {
		return fmt.Errorf("%s says that a closed file has %d of %d replicas", s.URL(), live, want)
	}
	return s.Delete(ctx, target)
}

func (s *Store) write(ctx context.Context, name string, data []byte) error {
	w, err := s.Create(ctx, name, tier.CreateOptions{Size: int64(len(data))})
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		w.Abort()
	}
	return err
}

func (s *Store) read(ctx context.Context, name string) ([]byte, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, r.Size())
	if _, err := r.ReadAt(data, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return data, nil
}
