package chain

import (
	"errors"
	"testing"
	"time"

	"varve/broker/kafka"
	"varve/tier"
	"varve/tier/faulty"
	"varve/tier/manifest"
)

func newChain(store *faulty.Store, epoch kafka.LeaderEpoch) *Chain {
	return &Chain{Folder: Folder{store, "topics/t/id/0"}, Writer: manifest.Writer{LeaderEpoch: epoch, Incarnation: NewID()}}
}

func fence(t *testing.T, c *Chain) {
	t.Helper()
	if err := c.Fence(t.Context(), func(*manifest.State) (manifest.Change, bool) { return manifest.FenceChange(0, 0, lineage), true }); err != nil {
		t.Fatal(err)
	}
}

func segment(base, end kafka.Offset) manifest.Segment {
	return manifest.Segment{ID: NewID(), Base: base, End: end, Size: 2, LogSize: 1, Epochs: manifest.Lineage{{Epoch: 0, Start: base}}}
}

func add(seg manifest.Segment) ChangeFunc {
	return func(s *manifest.State) (manifest.Change, bool) {
		return s.AddChange([]manifest.Segment{seg}, seg.Next(), lineage)
	}
}

func touch(*manifest.State) (manifest.Change, bool) { return manifest.Change{}, true }

func TestRenameOfUnknownOutcomeIsSettledByItsSource(t *testing.T) {
	for _, f := range []faulty.Fault{{After: true}, {Late: true}, {}} {
		store := faulty.New()
		c := newChain(store, 1)
		fence(t, c)
		f.Op, f.To, f.Times, f.Err = faulty.Rename, "manifest/", 1, tier.ErrUnsettled
		store.Inject(f)
		seg := segment(0, 9)
		if err := c.Commit(t.Context(), add(seg)); err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		store.Land()
		s, err := c.Folder.Load(t.Context())
		if err != nil || !s.IsLive(seg.ID) || s.NextOffset() != 10 || s.ID != c.State.ID || c.Unsettled() {
			t.Errorf("after %v late %v: %+v, %v", f.After, f.Late, s, err)
		}
	}
}

func TestUnsettledAttemptStaysSoWhileItsSourceCannotBeTaken(t *testing.T) {
	store := faulty.New()
	c := newChain(store, 1)
	fence(t, c)
	store.Inject(faulty.Fault{Op: faulty.Rename, To: "manifest/", Times: 1, Err: tier.ErrUnsettled, Late: true})
	heal := store.Inject(faulty.Fault{Op: faulty.Delete, Err: tier.ErrUnavailable})
	seg := segment(0, 9)
	if err := c.Commit(t.Context(), add(seg)); !errors.Is(err, tier.ErrUnavailable) || !c.Unsettled() {
		t.Fatalf("%v, unsettled %v", err, c.Unsettled())
	}
	store.Land() // it was done after all
	heal()
	if err := c.Load(t.Context()); err != nil || !c.State.IsLive(seg.ID) || c.Unsettled() {
		t.Errorf("%v, live %v, unsettled %v", err, c.State.IsLive(seg.ID), c.Unsettled())
	}
}

// T3: the slot of a writer that is far behind was pruned, so its rename succeeds.
func TestVersionInAPrunedSlotDoesNotCount(t *testing.T) {
	store := faulty.New()
	zombie := newChain(store, 1)
	fence(t, zombie)
	leader := newChain(store, 2)
	fence(t, leader)
	for range 3 * manifest.CheckpointEvery {
		if err := leader.Commit(t.Context(), touch); err != nil {
			t.Fatal(err)
		}
	}
	if err := leader.Prune(t.Context(), nil, 1000); err != nil {
		t.Fatal(err)
	}
	seg := segment(0, 9)
	err := zombie.Commit(t.Context(), add(seg))
	if !errors.Is(err, manifest.ErrFenced) {
		t.Errorf("the zombie's commit: %v", err)
	}
	if _, err := store.Stat(t.Context(), zombie.version(2)); err != nil {
		t.Errorf("the zombie's rename did not go where the test wants it: %v", err)
	}
	if s, err := leader.Folder.Load(t.Context()); err != nil || s.IsLive(seg.ID) || s.Number != leader.State.Number {
		t.Errorf("the chain: %+v, %v", s, err)
	}
}

// T2: the winner of N+1 is overtaken before it looks; its version is part of the chain.
func TestOvertakenWinnerTouchesNothing(t *testing.T) {
	store := faulty.New()
	old := newChain(store, 1)
	fence(t, old)
	seg := segment(0, 9)
	store.Inject(faulty.Fault{Op: faulty.List, Name: "manifest", Times: 1, Err: tier.ErrUnavailable})
	if err := old.Commit(t.Context(), add(seg)); err != nil {
		t.Fatal(err)
	}
	next := newChain(store, 2)
	fence(t, next)
	if err := old.Commit(t.Context(), touch); !errors.Is(err, manifest.ErrFenced) {
		t.Errorf("the old leader goes on: %v", err)
	}
	if s, err := next.Folder.Load(t.Context()); err != nil || !s.IsLive(seg.ID) || s.Number != 3 {
		t.Errorf("the chain: %+v, %v", s, err)
	}
}

func TestDeltasFoldToWhatTheWholeSays(t *testing.T) {
	store := faulty.New()
	c := newChain(store, 1)
	fence(t, c)
	for i := range kafka.Offset(300) { // too many for each version to be whole
		if err := c.Commit(t.Context(), add(segment(10*i, 10*i+9))); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Folder.Load(t.Context())
	if err != nil || s.NextOffset() != 3000 || len(s.Live) != 300 || s.ID != c.State.ID {
		t.Errorf("%d live up to %d, %v", len(s.Live), s.NextOffset(), err)
	}
	if v, err := c.read(t.Context(), 290); err != nil || v.Whole != nil {
		t.Errorf("version 290: whole %v, %v", v.Whole != nil, err)
	}
}

func TestEndedChainTakesNoLeader(t *testing.T) {
	store := faulty.New()
	c := newChain(store, 1)
	fence(t, c)
	end := newChain(store, 0)
	end.Writer = manifest.TombstoneWriter(end.Writer)
	for range 2 { // again is no error
		if err := end.End(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	late := newChain(store, 1<<30)
	err := late.Fence(t.Context(), touch)
	if !errors.Is(err, manifest.ErrDeleted) {
		t.Errorf("a late leader: %v", err)
	}
	if err := c.Commit(t.Context(), add(segment(0, 9))); !errors.Is(err, manifest.ErrDeleted) {
		t.Errorf("the old leader: %v", err)
	}
}

func TestWriterAfterTheFolderIsGoneIsToldSo(t *testing.T) {
	store := faulty.New()
	c := newChain(store, 1)
	fence(t, c)
	if err := store.DeleteAll(t.Context(), "topics/t/id"); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), touch); !errors.Is(err, manifest.ErrDeleted) {
		t.Errorf("got %v", err)
	}
	if names := store.Names(); len(names) > 0 && names[len(names)-1] > "topics/t/" {
		t.Errorf("folders came back: %v", names)
	}
}

func TestPinIsTakenOnlyForContainersThatAreStillLive(t *testing.T) {
	store := faulty.New()
	c := newChain(store, 1)
	fence(t, c)
	if err := c.Commit(t.Context(), add(segment(0, 9))); err != nil {
		t.Fatal(err)
	}
	s, pin, err := c.Pin(t.Context(), time.Hour)
	if err != nil || pin.Version != s.Number || len(s.Live) != 1 {
		t.Fatalf("%+v, %v", pin, err)
	}
	next, err := c.Renew(t.Context(), pin)
	if err != nil || next.ID == pin.ID || next.Version != pin.Version {
		t.Errorf("renewed %+v, %v", next, err)
	}
	if pins, err := c.Pins(t.Context()); err != nil || len(pins) != 1 || pins[0] != next {
		t.Errorf("pins %v, %v", pins, err)
	}
}
