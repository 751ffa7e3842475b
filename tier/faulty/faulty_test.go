package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"varve/tier"
	"varve/tier/faulty"
	"varve/tier/tiertest"
)

func TestStore(t *testing.T) {
	tiertest.Run(t, tiertest.Harness{
		Open: func(*testing.T) tier.Store { return faulty.New() },
		Mode: func(_ *testing.T, s tier.Store, name string) fs.FileMode { return s.(*faulty.Store).Mode(name) },
	})
}

func wantIs(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want one that is %v", err, kind)
	}
}

func there(t *testing.T, s *faulty.Store, name string) bool {
	t.Helper()
	_, err := s.Stat(t.Context(), name)
	if err != nil && !errors.Is(err, tier.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestFaultsHitWhatTheyName(t *testing.T) {
	s := faulty.New()
	s.Put("a/f", nil)
	s.Put("b/f", nil)
	s.Inject(faulty.Fault{Op: faulty.Delete, Name: "a/", Skip: 1, Times: 1, Err: tier.ErrDenied})
	for i, want := range []error{nil, tier.ErrDenied, nil} {
		if err := s.Delete(t.Context(), "a/f"); !errors.Is(err, want) {
			t.Errorf("call %d = %v, want %v", i, err, want)
		}
		if err := s.Delete(t.Context(), "b/f"); err != nil {
			t.Errorf("the other file: %v", err)
		}
	}
	if n := s.Calls(faulty.Delete); n != 6 {
		t.Errorf("%d calls were counted, want 6", n)
	}
}

func TestLostReplyHasItsEffect(t *testing.T) {
	s := faulty.New()
	s.Put("f", nil)
	s.Inject(faulty.Fault{Op: faulty.Rename, Times: 1, Err: tier.ErrUnsettled, After: true})
	wantIs(t, s.Rename(t.Context(), "f", "g"), tier.ErrUnsettled)
	if there(t, s, "f") || !there(t, s, "g") {
		t.Fatal("the rename did not happen")
	}
}

func TestLateEffectLandsIfItStillCan(t *testing.T) {
	s := faulty.New()
	for i := range 2 {
		s.Put(fmt.Sprintf("f%d", i), nil)
		s.Inject(faulty.Fault{Op: faulty.Rename, Times: 1, Err: tier.ErrUnsettled, Late: true})
		wantIs(t, s.Rename(t.Context(), fmt.Sprintf("f%d", i), fmt.Sprintf("g%d", i)), tier.ErrUnsettled)
	}
	if err := s.Delete(t.Context(), "f0"); err != nil { // T1: the source is taken away
		t.Fatal(err)
	}
	if n := s.Land(); n != 2 {
		t.Fatalf("%d effects landed, want 2", n)
	}
	if there(t, s, "g0") || !there(t, s, "g1") {
		t.Fatal("g0 must not be there, g1 must")
	}
}

func TestWriteLeavesHalfAFile(t *testing.T) {
	s := faulty.New()
	s.Inject(faulty.Fault{Op: faulty.Write, Err: tier.ErrFull, Cut: 3})
	s.Inject(faulty.Fault{Op: faulty.Delete, Err: tier.ErrUnavailable})
	w, err := s.Create(t.Context(), "f", tier.CreateOptions{Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write([]byte("12345678"))
	wantIs(t, err, tier.ErrFull)
	wantIs(t, w.Close(), tier.ErrFull)
	w.Abort()
	if info, err := s.Stat(t.Context(), "f"); err != nil || info.Size != 3 {
		t.Fatalf("Stat = %+v, %v, want the half that was written, 3 bytes", info, err)
	}
}

func TestAwayStoreRefusesUntilItIsBack(t *testing.T) {
	s := faulty.New()
	s.SetAway(true)
	wantIs(t, s.Mkdir(t.Context(), "d"), tier.ErrUnavailable)
	s.Heal()
	if err := s.Mkdir(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faulty.New()
		s.Inject(faulty.Fault{Op: faulty.List, Delay: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := s.List(ctx, "")
		wantIs(t, err, context.DeadlineExceeded)
		wantIs(t, err, tier.ErrUnavailable)
		if took := time.Since(begin); took != time.Second {
			t.Fatalf("the call took %v, want 1s", took)
		}
	})
}

func TestHeldCallWaits(t *testing.T) {
	s := faulty.New()
	hold := make(chan struct{})
	s.Inject(faulty.Fault{Op: faulty.Mkdir, Hold: hold})
	done := make(chan error, 1)
	go func() { done <- s.Mkdir(t.Context(), "d") }()
	if there(t, s, "d") {
		t.Fatal("the folder is there before the call was let go")
	}
	close(hold)
	if err := <-done; err != nil || !there(t, s, "d") {
		t.Fatalf("after the hold: %v", err)
	}
}

func TestDamageIsSeenByNewReaders(t *testing.T) {
	s := faulty.New()
	s.Put("f", []byte{1, 2, 3})
	old, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	s.Damage("f", 1)
	s.Truncate("f", 2)
	r, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	var a, b [1]byte
	old.ReadAt(a[:], 1)
	r.ReadAt(b[:], 1)
	if a[0] != 2 || b[0] != 3 || r.Size() != 2 {
		t.Fatalf("old reader %d, new reader %d of %d bytes, want 2, 3 of 2", a[0], b[0], r.Size())
	}
}
