package hdfs_test

import (
	"context"
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
	if err := put(t.Context(), s, "after", []byte("written to the other")); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t.Context(), s, "after"); err != nil || string(got) != "written to the other" {
		t.Fatalf("read back %q, %v", got, err)
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
