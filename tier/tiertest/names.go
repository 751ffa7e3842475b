package tiertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"varve/tier"
)

func renameMoves(b *bench) {
	b.mkdir("from")
	b.mkdir("to")
	b.put("from/f", []byte("data"))
	b.ok(b.s.Rename(b.ctx, "from/f", "to/g"))
	b.absent("from/f")
	b.holds("to/g", []byte("data"))
}

func renameDoesNotOverwrite(b *bench) {
	b.mkdir("d")
	b.put("d/a", []byte("a"))
	b.put("d/b", []byte("b"))
	b.is(b.s.Rename(b.ctx, "d/a", "d/b"), tier.ErrExists)
	b.holds("d/a", []byte("a"))
	b.holds("d/b", []byte("b"))
}

func renameWantsSourceAndFolder(b *bench) {
	b.put("f", []byte("f"))
	b.is(b.s.Rename(b.ctx, "none", "g"), tier.ErrNotFound)
	b.is(b.s.Rename(b.ctx, "f", "none/g"), tier.ErrNotFound)
	b.holds("f", []byte("f"))
	b.absent("none")
}

// foldersAreRenamedWithoutOverwriting: a claim is a folder.
func foldersAreRenamedWithoutOverwriting(b *bench) {
	b.mkdir("a")
	b.put("a/f", []byte("a"))
	b.mkdir("b")
	b.is(b.s.Rename(b.ctx, "a", "b"), tier.ErrExists)
	b.ok(b.s.Rename(b.ctx, "a", "c"))
	b.holds("c/f", []byte("a"))
	b.absent("a")
}

// oneOfManyRenamesToOneNameWins is the compare-and-swap under the manifest chain.
func oneOfManyRenamesToOneNameWins(b *bench) {
	stores := []tier.Store{b.s, b.peer()}
	b.mkdir("aside")
	b.mkdir("manifest")
	for round := range 4 {
		target := fmt.Sprintf("manifest/%020d.json", round)
		for i := range 6 {
			b.put(fmt.Sprintf("aside/%d-%d", round, i), fmt.Appendf(nil, "writer %d", i))
		}
		errs := race(6, func(i int) error {
			return stores[i%2].Rename(b.ctx, fmt.Sprintf("aside/%d-%d", round, i), target)
		})
		winner := b.winner(errs, tier.ErrExists)
		b.holds(target, fmt.Appendf(nil, "writer %d", winner))
		if left := len(b.names("aside")); left != 5*(round+1) {
			b.Fatalf("%d sources are left, want %d", left, 5*(round+1))
		}
	}
}

// oneOfManyRenamesOfOneSourceWins: taking the source away decides (T1).
func oneOfManyRenamesOfOneSourceWins(b *bench) {
	stores := []tier.Store{b.s, b.peer()}
	b.put("f", []byte("data"))
	errs := race(6, func(i int) error {
		return stores[i%2].Rename(b.ctx, "f", fmt.Sprintf("g%d", i))
	})
	winner := b.winner(errs, tier.ErrNotFound)
	if got := b.names(""); !slices.Equal(got, []string{fmt.Sprintf("g%d", winner)}) {
		b.Fatalf("after the race there are %q, want only g%d", got, winner)
	}
}

func listsAreInOrderOfNames(b *bench) {
	b.mkdir("d")
	for _, name := range []string{"b", "10", "9", "a.json", "_x", "B"} {
		b.put("d/"+name, []byte(name))
	}
	b.mkdir("d/dir")
	want := []string{"10", "9", "B", "_x", "a.json", "b", "dir"}
	if got := b.names("d"); !slices.Equal(got, want) {
		b.Fatalf("List = %q, want %q", got, want)
	}
	b.mkdir("empty")
	if got := b.names("empty"); len(got) != 0 {
		b.Fatalf("List of an empty folder = %q", got)
	}
	_, err := b.s.List(b.ctx, "none")
	b.is(err, tier.ErrNotFound)
}

// longListsAreWhole: longer than one page of a NameNode with dfs.ls.limit as it is.
func longListsAreWhole(b *bench) {
	b.mkdir("d")
	const n = 1203
	errs := race(8, func(i int) error {
		for k := i; k < n; k += 8 {
			if err := b.s.Mkdir(b.ctx, fmt.Sprintf("d/%05d", k)); err != nil {
				return err
			}
		}
		return nil
	})
	b.ok(errors.Join(errs...))
	got := b.names("d")
	if len(got) != n || !slices.IsSorted(got) {
		b.Fatalf("List gave %d names, sorted %v, want %d", len(got), slices.IsSorted(got), n)
	}
}

func statTellsFileFromFolder(b *bench) {
	b.mkdir("d")
	b.put("d/f", []byte("12345"))
	for name, want := range map[string]tier.FileInfo{
		"": {Dir: true}, "d": {Name: "d", Dir: true}, "d/f": {Name: "f", Size: 5},
	} {
		info, err := b.s.Stat(b.ctx, name)
		b.ok(err)
		if info.Name != want.Name || info.Size != want.Size || info.Dir != want.Dir {
			b.Errorf("Stat(%q) = %+v, want %+v", name, info, want)
		}
		if age := time.Since(info.ModTime); name != "" && (age < -time.Minute || age > 10*time.Minute) {
			b.Errorf("Stat(%q) says it was changed %v ago", name, age)
		}
	}
	b.absent("none")
	b.absent("none/f")
}

func deleteOfNothingIsNoError(b *bench) {
	b.put("f", nil)
	b.ok(b.s.Delete(b.ctx, "f"))
	b.absent("f")
	b.ok(b.s.Delete(b.ctx, "f"))
	b.ok(b.s.Delete(b.ctx, "none/f"))
	b.ok(b.s.DeleteAll(b.ctx, "none"))
}

func deleteKeepsFullFolders(b *bench) {
	b.mkdir("d")
	b.put("d/f", []byte("f"))
	if b.s.Delete(b.ctx, "d") == nil {
		b.Fatal("Delete took a folder that has a file")
	}
	b.holds("d/f", []byte("f"))
	b.ok(b.s.Delete(b.ctx, "d/f"))
	b.ok(b.s.Delete(b.ctx, "d"))
	b.absent("d")
}

func deleteAllTakesEverythingBelow(b *bench) {
	b.mkdir("d/e")
	b.put("d/f", []byte("f"))
	b.put("d/e/g", []byte("g"))
	b.put("dd", []byte("stays"))
	b.ok(b.s.DeleteAll(b.ctx, "d"))
	if got := b.names(""); !slices.Equal(got, []string{"dd"}) {
		b.Fatalf("left are %q, want only dd", got)
	}
	if b.s.DeleteAll(b.ctx, "") == nil {
		b.Fatal("DeleteAll took the root")
	}
}

func foldersAreMadeAgainWithoutError(b *bench) {
	b.is(b.s.Mkdir(b.ctx, "a/b"), tier.ErrNotFound)
	b.ok(b.s.MkdirAll(b.ctx, "a/b/c"))
	b.ok(b.s.MkdirAll(b.ctx, "a/b/c"))
	b.ok(b.s.Mkdir(b.ctx, "a/b"))
	b.put("a/f", nil)
	b.is(b.s.Mkdir(b.ctx, "a/f"), tier.ErrExists)
	errs := race(4, func(int) error { return b.s.MkdirAll(b.ctx, "x/y/z") })
	b.ok(errors.Join(errs...))
}

func permissionsAreOurs(b *bench) {
	if b.Mode == nil {
		b.Skip("this store shows no permissions")
	}
	b.mkdir("d/e")
	b.put("d/e/f", []byte("f"))
	b.ok(b.s.Rename(b.ctx, "d/e/f", "d/f"))
	for name, want := range map[string]uint32{"d": 0o750, "d/e": 0o750, "d/f": 0o440} {
		if got := b.Mode(b.T, b.s, name).Perm(); uint32(got) != want {
			b.Errorf("%s has %#o, want %#o", name, got, want)
		}
	}
}

func endedContextsEndCalls(b *bench) {
	b.mkdir("d")
	b.put("f", []byte("f"))
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	_, createErr := b.s.Create(ended, "g", tier.CreateOptions{})
	_, statErr := b.s.Stat(ended, "f")
	_, listErr := b.s.List(ended, "")
	for call, err := range map[string]error{
		"Create": createErr, "Stat": statErr, "List": listErr, "Rename": b.s.Rename(ended, "f", "d/f"),
		"Delete": b.s.Delete(ended, "f"), "DeleteAll": b.s.DeleteAll(ended, "d"), "Mkdir": b.s.Mkdir(ended, "e"),
	} {
		if !errors.Is(err, context.Canceled) || !errors.Is(err, tier.ErrUnavailable) {
			b.Errorf("%s with an ended context = %v, want %v and %v", call, err, context.Canceled, tier.ErrUnavailable)
		}
	}
	b.holds("f", []byte("f"))
	if got := b.names(""); !slices.Equal(got, []string{"d", "f"}) {
		b.Fatalf("there are %q, want d and f", got)
	}
}

func badNamesAreRefused(b *bench) {
	for _, name := range []string{"/f", "../f", "a//b", "a/./b", "a/", "a\nb"} {
		if _, err := b.s.Stat(b.ctx, name); err == nil || errors.Is(err, tier.ErrNotFound) {
			b.Errorf("Stat(%q) = %v, want a refusal of the name", name, err)
		}
		if err := b.s.Mkdir(b.ctx, name); err == nil {
			b.Errorf("Mkdir(%q) went through", name)
		}
	}
}
