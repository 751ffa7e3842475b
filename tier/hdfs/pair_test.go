package hdfs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"varve/cmd/e2e/servers"
	"varve/tier"
	"varve/tier/hdfs"
)

// TestRenamesSettleOverAFailover: each rename begun while the active NameNode is
// killed is answered by the other as if nothing had been, and none is carried out
// twice or forgotten (T1).
func TestRenamesSettleOverAFailover(t *testing.T) {
	p := servers.HDFSPairFor(t, servers.HDFSOptions{}, nil)
	active, err := p.Active(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := p.Other(active)
	// the standby first: every connection begins with a step on
	s := open(t, "hdfs://ns1", hdfs.Options{NameNodes: []string{other.RPC, active.RPC}, Patience: 2 * time.Minute})
	if err := s.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"from", "to"} {
		if err := s.Mkdir(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	const writers, each = 4, 400
	half := make(chan struct{}, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { renameAll(t, s, w, each, half) })
	}
	for range writers {
		<-half
	}
	stop, wrote := make(chan struct{}), make(chan []string)
	go func() { wrote <- writeOn(t, s, stop) }()
	active.Kill()
	begin := time.Now()
	wg.Wait()
	t.Logf("all renames were through %v after the kill", time.Since(begin).Round(time.Millisecond))
	if left, err := s.List(t.Context(), "from"); err != nil || len(left) != 0 {
		t.Fatalf("%d sources are left, %v", len(left), err)
	}
	if got, err := s.List(t.Context(), "to"); err != nil || len(got) != writers*each {
		t.Fatalf("%d targets, %v, want %d", len(got), err, writers*each)
	}
	close(stop)
	names := <-wrote
	for _, name := range names {
		if got, err := get(t.Context(), s, name); err != nil || string(got) != name {
			t.Errorf("%s, which was closed, holds %q, %v", name, got, err)
		}
	}
	t.Logf("%d files were written meanwhile", len(names))
}

// writeOn writes small files until stop, under new names after every failure, and
// returns the names of those whose Close went through; at least one after stop.
func writeOn(t *testing.T, s tier.Store, stop <-chan struct{}) (names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for i, last := 0, false; ; i++ {
		name := fmt.Sprintf("file-%d", i)
		err := put(ctx, s, name, []byte(name))
		switch {
		case err == nil:
			names = append(names, name)
		case ctx.Err() != nil || !errors.Is(err, tier.ErrUnavailable) && !errors.Is(err, tier.ErrUnsettled):
			t.Errorf("writing %s: %v", name, err)
			return names
		}
		if last && err == nil {
			return names
		}
		select {
		case <-stop:
			last = true
		default:
		}
	}
}

// renameAll makes folders and moves them, one after the other; halfway it says so.
func renameAll(t *testing.T, s tier.Store, writer, n int, half chan<- struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for i := range n {
		if i == n/4 {
			half <- struct{}{}
		}
		name := fmt.Sprintf("%d-%05d", writer, i)
		if err := s.Mkdir(ctx, "from/"+name); err != nil {
			t.Errorf("making %s: %v", name, err)
		}
		if err := s.Rename(ctx, "from/"+name, "to/"+name); err != nil {
			t.Errorf("rename of %s: %v", name, err)
		}
	}
}
