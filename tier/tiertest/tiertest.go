// Package tiertest is the suite that every tier.Store passes: Run holds a store to
// the sentences of the contract in package tier.
package tiertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"
	"time"

	"varve/tier"
)

// A Harness makes the stores under test.
type Harness struct {
	// Open makes an empty store; it is closed when the test ends.
	Open func(t *testing.T) tier.Store
	// Peer opens another store on the same files, as another broker has it; nil:
	// the suite races within one store.
	Peer func(t *testing.T, s tier.Store) tier.Store
	// Mode tells the permissions of a name; nil: they are not looked at.
	Mode func(t *testing.T, s tier.Store, name string) fs.FileMode
	// Big is the size in bytes of the largest file; 0 is 8 MiB.
	Big int
	// Patience bounds one call; 0 is 30 s.
	Patience time.Duration
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	if h.Big == 0 {
		h.Big = 8 << 20
	}
	if h.Patience == 0 {
		h.Patience = 30 * time.Second
	}
	for _, c := range []struct {
		name string
		run  func(*bench)
	}{
		{"FilesReadBackAsWritten", filesReadBackAsWritten},
		{"BigFilesReadBackAsWritten", bigFilesReadBackAsWritten},
		{"SizesNeedNotBeKnown", sizesNeedNotBeKnown},
		{"FilesMayBeShorterThanSaid", filesMayBeShorterThanSaid},
		{"WritingNothingIsNothing", writingNothingIsNothing},
		{"CreateWantsItsFolder", createWantsItsFolder},
		{"CreateDoesNotOverwrite", createDoesNotOverwrite},
		{"AbortedFilesAreGone", abortedFilesAreGone},
		{"AbortAfterCloseDoesNothing", abortAfterCloseDoesNothing},
		{"RenameMoves", renameMoves},
		{"RenameDoesNotOverwrite", renameDoesNotOverwrite},
		{"RenameWantsSourceAndFolder", renameWantsSourceAndFolder},
		{"FoldersAreRenamedWithoutOverwriting", foldersAreRenamedWithoutOverwriting},
		{"OneOfManyRenamesToOneNameWins", oneOfManyRenamesToOneNameWins},
		{"OneOfManyRenamesOfOneSourceWins", oneOfManyRenamesOfOneSourceWins},
		{"OneOfManyCreatesWins", oneOfManyCreatesWins},
		{"ListsAreInOrderOfNames", listsAreInOrderOfNames},
		{"LongListsAreWhole", longListsAreWhole},
		{"StatTellsFileFromFolder", statTellsFileFromFolder},
		{"DeleteOfNothingIsNoError", deleteOfNothingIsNoError},
		{"DeleteKeepsFullFolders", deleteKeepsFullFolders},
		{"DeleteAllTakesEverythingBelow", deleteAllTakesEverythingBelow},
		{"FoldersAreMadeAgainWithoutError", foldersAreMadeAgainWithoutError},
		{"PermissionsAreOursWhateverTheUmask", permissionsAreOurs},
		{"ManyReadersShareOneFile", manyReadersShareOneFile},
		{"ReadsEndAtTheEnd", readsEndAtTheEnd},
		{"ReadersOutliveTheRename", readersOutliveTheRename},
		{"ReplicasAreToldOfWhatIsThere", replicasAreTold},
		{"EndedContextsEndCalls", endedContextsEndCalls},
		{"BadNamesAreRefused", badNamesAreRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := h.Open(t)
			t.Cleanup(func() { s.Close() })
			ctx, cancel := context.WithTimeout(t.Context(), h.Patience*4)
			t.Cleanup(cancel)
			c.run(&bench{T: t, Harness: h, s: s, ctx: ctx})
		})
	}
}

// A bench is one test's store and its short words.
type bench struct {
	*testing.T
	Harness
	s   tier.Store
	ctx context.Context
}

// peer is another broker's view of the same files.
func (b *bench) peer() tier.Store {
	b.Helper()
	if b.Peer == nil {
		return b.s
	}
	p := b.Peer(b.T, b.s)
	b.Cleanup(func() { p.Close() })
	return p
}

func (b *bench) mkdir(name string) {
	b.Helper()
	b.ok(b.s.MkdirAll(b.ctx, name))
}

func (b *bench) put(name string, data []byte) {
	b.Helper()
	b.ok(put(b.ctx, b.s, name, data))
}

// put writes a whole file in pieces of 1 MiB; what fails is aborted.
func put(ctx context.Context, s tier.Store, name string, data []byte) error {
	w, err := s.Create(ctx, name, tier.CreateOptions{Size: int64(len(data))})
	if err != nil {
		return err
	}
	for rest := data; len(rest) > 0; {
		n := min(len(rest), 1<<20)
		if _, err := w.Write(rest[:n]); err != nil {
			w.Abort()
			return err
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		w.Abort()
		return err
	}
	return nil
}

func (b *bench) get(name string) []byte {
	b.Helper()
	r, err := b.s.Open(b.ctx, name)
	b.ok(err)
	defer r.Close()
	data := make([]byte, r.Size())
	if n, err := r.ReadAt(data, 0); n != len(data) || err != nil && err != io.EOF {
		b.Fatalf("reading %s: %d of %d bytes, %v", name, n, len(data), err)
	}
	return data
}

func (b *bench) holds(name string, want []byte) {
	b.Helper()
	if got := b.get(name); !bytes.Equal(got, want) {
		b.Fatalf("%s holds %d bytes %.20q…, want %d bytes %.20q…", name, len(got), got, len(want), want)
	}
}

func (b *bench) names(dir string) []string {
	b.Helper()
	list, err := b.s.List(b.ctx, dir)
	b.ok(err)
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) is(err, kind error) {
	b.Helper()
	if !errors.Is(err, kind) {
		b.Fatalf("got error %v, want one that is %q", err, kind)
	}
}

// absent wants name not to be there.
func (b *bench) absent(name string) {
	b.Helper()
	_, err := b.s.Stat(b.ctx, name)
	b.is(err, tier.ErrNotFound)
}

// noise is n bytes that do not repeat; each seed has its own.
func noise(seed uint64, n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(data)
	return data
}
