// Package journaltest is the suite that every journal passes: order, fencing, ids,
// proof of the term, waiting, snapshots and trimming, the hash chain, and damage.
package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"varve/ha/journal"
)

// A Home is one place where a journal lies.
type Home interface {
	// Open opens the journal of this place. With Together false the one before has been
	// closed.
	Open(t *testing.T) journal.Journal
	// Together tells whether two may have it open at a time (ZooKeeper), or whether a
	// second taker is one of the same process (a locked folder).
	Together() bool
	// Damage alters a byte of edit n's payload behind the journal's back.
	Damage(t *testing.T, n journal.Number)
}

// Run runs the suite; each test has a home of its own.
func Run(t *testing.T, home func(t *testing.T) Home) {
	tests := map[string]func(*testing.T, Home){
		"EditsAreReadInOrder":              editsInOrder,
		"EditsOutliveTheProcess":           editsOutlive,
		"ALaterTermFencesTheEarlier":       laterTermFences,
		"EveryEditHasAnIDOfItsOwn":         idsDiffer,
		"HashesChain":                      hashesChain,
		"WaitReturnsWhenTheEditIsThere":    waitReturns,
		"SnapshotsTrim":                    snapshotsTrim,
		"AResignedTermIsOver":              resigned,
		"AReadIsBoundedButNeverEmpty":      readIsBounded,
		"DamageInTheMiddleIsNotReadAsTorn": damageIsSeen,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, home(t)) })
	}
}

func editsInOrder(t *testing.T, h Home) {
	j := open(t, h)
	term := take(t, j, "a")
	for i := range 20 {
		e, err := term.Append(t.Context(), payload(i))
		if err != nil || e.N != journal.Number(i+1) || e.Epoch != term.Epoch() {
			t.Fatalf("append %d gives edit %d of epoch %d, %v", i, e.N, e.Epoch, err)
		}
	}
	check(t, j, 1, 20)
	if more, err := j.Read(t.Context(), 21, 1); err != nil || len(more) != 0 {
		t.Fatalf("reading at the end gives %d edits, %v", len(more), err)
	}
}

func editsOutlive(t *testing.T, h Home) {
	for i := range 3 {
		j := h.Open(t)
		term := take(t, j, "a")
		if int(term.Epoch()) != i+1 {
			t.Fatalf("epoch %d, want %d: epochs only rise", term.Epoch(), i+1)
		}
		for k := range 5 {
			add(t, term, i*5+k)
		}
		check(t, j, 1, (i+1)*5)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// laterTermFences is the fence of A1 to A4: from the taking on, nothing of the earlier
// term is written or proved.
func laterTermFences(t *testing.T, h Home) {
	j := open(t, h)
	other := j
	if h.Together() {
		other = open(t, h)
	}
	first := take(t, j, "a")
	add(t, first, 0)
	if err := first.Check(t.Context()); err != nil {
		t.Fatalf("checking the newest term: %v", err)
	}
	second := take(t, other, "b")
	if second.Epoch() <= first.Epoch() {
		t.Fatalf("epoch %d after %d", second.Epoch(), first.Epoch())
	}
	if _, err := first.Append(t.Context(), payload(9)); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("an earlier term appends: %v, want ErrFenced", err)
	}
	if err := first.Check(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("an earlier term is proved: %v, want ErrFenced (A3)", err)
	}
	if err := first.SaveSnapshot(t.Context(), journal.Snapshot{N: 1}); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("an earlier term saves a snapshot: %v, want ErrFenced", err)
	}
	add(t, second, 1)
	check(t, other, 1, 2)
}

func idsDiffer(t *testing.T, h Home) {
	j := open(t, h)
	seen := map[journal.EditID]journal.Number{}
	for _, who := range []string{"a", "b"} {
		term := take(t, j, who)
		for i := range 4 {
			e := add(t, term, i)
			if before, ok := seen[e.ID]; ok {
				t.Fatalf("edits %d and %d have the id %v (A2)", before, e.N, e.ID)
			}
			seen[e.ID] = e.N
		}
	}
}

// hashesChain recomputes every hash from the edits alone (A11).
func hashesChain(t *testing.T, h Home) {
	j := open(t, h)
	for _, who := range []string{"a", "b"} {
		term := take(t, j, who)
		for i := range 5 {
			add(t, term, i)
		}
	}
	var previous [32]byte
	for _, e := range check(t, j, 1, 10) {
		crc := crc32.Checksum(e.Payload, crc32.MakeTable(crc32.Castagnoli))
		previous = journal.HashHeader(journal.AppendHeader(nil, e, crc, previous))
		if e.Hash != previous {
			t.Fatalf("edit %d has the hash %x, the chain gives %x", e.N, e.Hash, previous)
		}
	}
}

func waitReturns(t *testing.T, h Home) {
	j := open(t, h)
	term := take(t, j, "a")
	done := make(chan error)
	go func() { done <- j.Wait(t.Context(), 3) }()
	for i := range 3 {
		select {
		case err := <-done:
			t.Fatalf("waiting for edit 3 returned %v at edit %d", err, i)
		default:
		}
		add(t, term, i)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- j.Wait(ctx, 4) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled wait returns %v", err)
	}
}

// snapshotsTrim saves four: two stay, edits above the older of them stay, and the last
// edit always does.
func snapshotsTrim(t *testing.T, h Home) {
	j := h.Open(t)
	term := take(t, j, "a")
	if s, err := j.LoadSnapshot(t.Context()); err != nil || s.N != 0 {
		t.Fatalf("an empty journal has the snapshot of edit %d, %v", s.N, err)
	}
	var last journal.Edit
	for round := range 4 {
		for i := range 300 {
			last = add(t, term, round*300+i)
		}
		s := journal.Snapshot{N: last.N, Hash: last.Hash, Image: fmt.Appendf(nil, "image %d", last.N)}
		if err := term.SaveSnapshot(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for reopened := range 2 {
		s, err := j.LoadSnapshot(t.Context())
		if err != nil || s.N != last.N || s.Hash != last.Hash || string(s.Image) != "image 1200" {
			t.Fatalf("the snapshot is of edit %d (%q), %v", s.N, s.Image, err)
		}
		if _, err := j.Read(t.Context(), 1, 1); !errors.Is(err, journal.ErrTrimmed) {
			t.Fatalf("reading a trimmed edit: %v, want ErrTrimmed", err)
		}
		if err := j.Wait(t.Context(), 1); !errors.Is(err, journal.ErrTrimmed) {
			t.Fatalf("waiting for a trimmed edit: %v, want ErrTrimmed (A12)", err)
		}
		check(t, j, 901, 1200)
		if reopened == 0 {
			j.Close()
			j = open(t, h)
		}
	}
	term = take(t, j, "b")
	if e := add(t, term, 1200); e.N != 1201 {
		t.Fatalf("edit %d after the trimming, want 1201", e.N)
	}
}

func resigned(t *testing.T, h Home) {
	j := open(t, h)
	term := take(t, j, "a")
	add(t, term, 0)
	term.Resign()
	if _, err := term.Append(t.Context(), payload(1)); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a resigned term appends: %v", err)
	}
	if err := term.Check(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a resigned term is proved: %v", err)
	}
	check(t, j, 1, 1)
}

func readIsBounded(t *testing.T, h Home) {
	j := open(t, h)
	term := take(t, j, "a")
	big := bytes.Repeat([]byte{7}, journal.MaxPayload)
	for range 3 {
		if _, err := term.Append(t.Context(), big); err != nil {
			t.Fatal(err)
		}
	}
	for max, want := range map[int]int{1: 1, len(big): 1, 2 * len(big): 2, 2*len(big) + 1: 2, 9 * len(big): 3} {
		got, err := j.Read(t.Context(), 1, max)
		if err != nil || len(got) != want {
			t.Errorf("reading at most %d bytes gives %d edits, %v; want %d", max, len(got), err, want)
		}
	}
}

// damageIsSeen alters an edit that others follow: reading it, or opening, is refused.
func damageIsSeen(t *testing.T, h Home) {
	j := h.Open(t)
	term := take(t, j, "a")
	for i := range 6 {
		add(t, term, i)
	}
	j.Close()
	h.Damage(t, 3)
	j, err := openDamaged(t, h)
	if err == nil {
		_, err = j.Read(t.Context(), 1, 1<<20)
		j.Close()
	}
	if !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("an altered edit: %v, want ErrDamaged", err)
	}
}

// A Refuser is a Home whose Open may fail.
type Refuser interface {
	TryOpen(t *testing.T) (journal.Journal, error)
}

func openDamaged(t *testing.T, h Home) (journal.Journal, error) {
	if r, ok := h.(Refuser); ok {
		return r.TryOpen(t)
	}
	return h.Open(t), nil
}

func open(t *testing.T, h Home) journal.Journal {
	t.Helper()
	j := h.Open(t)
	t.Cleanup(func() { j.Close() })
	return j
}

func take(t *testing.T, j journal.Journal, who string) journal.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	term, err := j.Take(ctx, who)
	if err != nil {
		t.Fatalf("taking the journal: %v", err)
	}
	return term
}

func add(t *testing.T, term journal.Term, i int) journal.Edit {
	t.Helper()
	e, err := term.Append(t.Context(), payload(i))
	if err != nil {
		t.Fatalf("appending %d: %v", i, err)
	}
	return e
}

// check wants edits first to last, whole and in order, and returns them.
func check(t *testing.T, j journal.Journal, first, last int) (all []journal.Edit) {
	t.Helper()
	for n := first; n <= last; {
		edits, err := j.Read(t.Context(), journal.Number(n), 100)
		if err != nil || len(edits) == 0 {
			t.Fatalf("reading edit %d gives %d edits, %v", n, len(edits), err)
		}
		for _, e := range edits {
			if e.N != journal.Number(n) {
				t.Fatalf("edit %d is read where %d is due", e.N, n)
			}
			n++
		}
		all = append(all, edits...)
	}
	if len(all) != last-first+1 {
		t.Fatalf("%d edits from %d on, want to %d", len(all), first, last)
	}
	return all
}

func payload(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "edit %d ", i), 1+i%7) }
