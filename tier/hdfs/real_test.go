package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"varve/cmd/e2e/servers"
	"varve/tier"
	"varve/tier/hdfs"
	"varve/tier/hdfs/namenode"
	"varve/tier/tiertest"
)

var folders atomic.Int64

// open makes a store on a new folder of the cluster.
func open(t testing.TB, url string, o hdfs.Options) *hdfs.Store {
	t.Helper()
	if o.User == "" {
		o.User = superuser(t)
	}
	s, err := hdfs.Open(fmt.Sprintf("%s/varve/t%d-%d", url, os.Getpid(), folders.Add(1)), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.MkdirAll(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	return s
}

// superuser is who started the NameNode: this process's user.
func superuser(t testing.TB) string {
	t.Helper()
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	return "root"
}

func put(ctx context.Context, s tier.Store, name string, data []byte) error {
	w, err := s.Create(ctx, name, tier.CreateOptions{Size: int64(len(data))})
	if err != nil {
		return err
	}
	if _, err = w.Write(data); err == nil {
		err = w.Close()
	}
	if err != nil {
		w.Abort()
	}
	return err
}

func get(ctx context.Context, s tier.Store, name string) ([]byte, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, r.Size())
	_, err = r.ReadAt(data, 0)
	if err == io.EOF {
		err = nil
	}
	return data, err
}

func wantIs(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%s = %v, want one that is %q", what, err, kind)
	}
}

func TestStoreOnHDFS(t *testing.T) {
	for _, version := range servers.TestedVersions(servers.HDFSVersions) {
		t.Run(version, func(t *testing.T) {
			h := servers.HDFSFor(t, servers.HDFSOptions{Version: version, HDFSSite: map[string]string{"dfs.namenode.acls.enabled": "true"}})
			tiertest.Run(t, tiertest.Harness{
				Open: func(t *testing.T) tier.Store { return open(t, h.URL, hdfs.Options{}) },
				Peer: func(t *testing.T, s tier.Store) tier.Store {
					p, err := hdfs.Open(s.URL(), hdfs.Options{User: superuser(t)})
					if err != nil {
						t.Fatal(err)
					}
					return p
				},
				Mode: func(t *testing.T, s tier.Store, name string) fs.FileMode {
					store := s.(*hdfs.Store)
					status, err := store.NameNode().Stat(t.Context(), store.Path(name))
					if err != nil {
						t.Fatal(err)
					}
					return status.Mode
				},
			})
			for _, c := range []struct {
				name string
				run  func(*testing.T, *servers.HDFS)
			}{
				{"ProbePassesAndLeavesNothing", probePasses},
				{"BlockIsAsLongAsTheFile", blockIsAsLongAsTheFile},
				{"QuotaIsFull", quotaIsFull},
				{"ForeignFoldersAreDenied", foreignFoldersAreDenied},
				{"DefaultACLIsInherited", defaultACLIsInherited},
				{"HostsComeWithTheListing", hostsComeWithTheListing},
				{"ControlCallsAnswer", controlCallsAnswer},
				{"SafeModeIsUnavailable", safeModeIsUnavailable},
				{"PausedDataNodeEndsWritesWithTheContext", pausedDataNodeEndsWrites},
				{"PausedNameNodeEndsCallsWithTheContext", pausedNameNodeEndsCalls},
				{"CallsGoOnAfterTheNameNodeWasKilled", callsGoOnAfterAKill},
				{"ReadsGoOnAfterTheDataNodeCameBack", readsGoOnAfterTheDataNodeCameBack},
			} {
				t.Run(c.name, func(t *testing.T) { c.run(t, h) })
			}
		})
	}
}

func probePasses(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	if err := s.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := s.List(t.Context(), ""); err != nil || len(left) != 0 {
		t.Fatalf("the probe leaves %+v, %v", left, err)
	}
}

func blockIsAsLongAsTheFile(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	for size, block := range map[int]int64{100: 1 << 20, 3<<20 + 1: 3<<20 + 512, 3 << 20: 3 << 20} {
		name := fmt.Sprint(size)
		if err := put(t.Context(), s, name, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		status, err := s.NameNode().Stat(t.Context(), s.Path(name))
		if err != nil || status.BlockSize != block {
			t.Errorf("a file of %d bytes has a block size of %d, %v, want %d", size, status.BlockSize, err, block)
		}
		where, err := s.NameNode().BlockLocations(t.Context(), s.Path(name))
		if err != nil || len(where.Blocks) != 1 || where.Open {
			t.Errorf("a file of %d bytes lies in %+v, %v, want one block", size, where, err)
		}
	}
}

func quotaIsFull(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	if err := s.Mkdir(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	for _, quota := range [][]string{{"-setSpaceQuota", "2m"}, {"-setQuota", "2"}} {
		if r, err := h.DFSAdmin(t.Context(), quota[0], quota[1], s.Path("d")); err != nil {
			t.Fatalf("%v: %+v, %v", quota, r, err)
		}
		if err := put(t.Context(), s, "d/small", make([]byte, 1<<20)); err != nil && quota[0] == "-setSpaceQuota" {
			t.Fatalf("one block under a quota of two: %v", err)
		}
		wantIs(t, fmt.Sprintf("writing 3 MiB over %v", quota), put(t.Context(), s, "d/big", make([]byte, 3<<20)), tier.ErrFull)
		if _, err := s.Stat(t.Context(), "d/big"); !errors.Is(err, tier.ErrNotFound) {
			t.Fatalf("the file that did not fit: %v, want %v", err, tier.ErrNotFound)
		}
	}
}

func foreignFoldersAreDenied(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	if err := put(t.Context(), s, "f", []byte("f")); err != nil {
		t.Fatal(err)
	}
	other, err := hdfs.Open(s.URL(), hdfs.Options{User: "stranger"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, statErr := other.Stat(t.Context(), "f")
	wantIs(t, "Stat by a stranger", statErr, tier.ErrDenied)
	wantIs(t, "writing as a stranger", put(t.Context(), other, "g", nil), tier.ErrDenied)
	wantIs(t, "Rename by a stranger", other.Rename(t.Context(), "f", "g"), tier.ErrDenied)
	probe := other.Probe(t.Context())
	wantIs(t, "Probe by a stranger", probe, tier.ErrDenied)
	if text := probe.Error(); strings.Contains(text, "\n") || !strings.Contains(text, s.URL()) {
		t.Fatalf("the error %q has more than a line or does not name %s", text, s.URL())
	}
}

func defaultACLIsInherited(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	batch := []namenode.ACLEntry{{Type: namenode.ACLGroup, Name: "batch", Default: true, Read: true, Execute: true}}
	if granted, err := s.Grant(t.Context(), "", batch); err != nil || !granted {
		t.Fatalf("Grant = %v, %v", granted, err)
	}
	if err := s.MkdirAll(t.Context(), "t/_inprogress"); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), s, "t/_inprogress/f", []byte("f")); err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(t.Context(), "t/_inprogress/f", "t/f"); err != nil {
		t.Fatal(err)
	}
	entries, err := s.NameNode().ACL(t.Context(), s.Path("t/f"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type == namenode.ACLGroup && e.Name == "batch" && e.Read {
			return
		}
	}
	t.Fatalf("the renamed file has %+v, want an entry for the group batch", entries)
}

func hostsComeWithTheListing(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	if err := put(t.Context(), s, "f", make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	list, err := s.ListLocated(t.Context(), "")
	if err != nil || len(list) != 1 || len(list[0].Hosts) != 1 || list[0].Hosts[0] == "" {
		t.Fatalf("ListLocated = %+v, %v, want one file with one host", list, err)
	}
}

func controlCallsAnswer(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	nn, ctx := s.NameNode(), t.Context()
	if err := put(ctx, s, "f", make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	if sum, err := nn.ContentSummary(ctx, s.Path("")); err != nil || sum.Files != 1 || sum.Folders != 1 || sum.Length != 5000 || sum.FileQuota != -1 {
		t.Errorf("ContentSummary = %+v, %v", sum, err)
	}
	if zone, err := nn.EncryptionZone(ctx, s.Path("")); err != nil || zone != "" {
		t.Errorf("EncryptionZone = %q, %v", zone, err)
	}
	if policy, err := nn.ErasureCodingPolicy(ctx, s.Path("")); err != nil || policy != "" {
		t.Errorf("ErasureCodingPolicy = %q, %v", policy, err)
	}
	if on, err := nn.SafeMode(ctx); err != nil || on {
		t.Errorf("SafeMode = %v, %v", on, err)
	}
	if stats, err := nn.FsStats(ctx); err != nil || stats.Capacity == 0 || stats.Remaining == 0 {
		t.Errorf("FsStats = %+v, %v", stats, err)
	}
	if d, err := nn.ServerDefaults(ctx); err != nil || d.Checksum != 512 || d.Replication != 1 || d.BlockSize != 128<<20 || d.Encrypted {
		t.Errorf("ServerDefaults = %+v, %v", d, err)
	}
	if ok, err := nn.SetReplication(ctx, s.Path("f"), 2); err != nil || !ok {
		t.Errorf("SetReplication = %v, %v", ok, err)
	}
	if live, want, err := s.LiveReplicas(ctx, "f"); err != nil || live != 1 || want != 2 {
		t.Errorf("LiveReplicas = %d, %d, %v, want 1, 2", live, want, err)
	}
	if err := nn.SetPermission(ctx, s.Path("f"), 0o400); err != nil {
		t.Error(err)
	}
	w, err := s.Create(ctx, "open", tier.CreateOptions{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	if where, err := nn.BlockLocations(ctx, s.Path("open")); err != nil || !where.Open {
		t.Errorf("a file being written is %+v, %v, want open", where, err)
	}
	if live, _, err := s.LiveReplicas(ctx, "open"); err != nil || live != 0 {
		t.Errorf("LiveReplicas of a file being written = %d, %v, want 0", live, err)
	}
	if closed, err := nn.RecoverLease(ctx, s.Path("open"), "another"); err != nil || !closed {
		t.Errorf("RecoverLease = %v, %v, want an empty file to be closed", closed, err)
	}
	if _, err := w.Write(make([]byte, 100)); !errors.Is(err, tier.ErrNotFound) {
		t.Errorf("Write after another took the lease = %v, want %v", err, tier.ErrNotFound)
	}
	w.Abort()
}

func safeModeIsUnavailable(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	if err := put(t.Context(), s, "f", []byte("f")); err != nil {
		t.Fatal(err)
	}
	if err := h.SafeMode(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	wantIs(t, "writing in safe mode", put(t.Context(), s, "g", []byte("g")), tier.ErrUnavailable)
	wantIs(t, "Rename in safe mode", s.Rename(t.Context(), "f", "h"), tier.ErrUnavailable)
	wantIs(t, "Mkdir in safe mode", s.Mkdir(t.Context(), "d"), tier.ErrUnavailable)
	if got, err := get(t.Context(), s, "f"); err != nil || string(got) != "f" {
		t.Errorf("reading in safe mode = %q, %v", got, err)
	}
	if err := h.SafeMode(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(t.Context(), "f", "h"); err != nil {
		t.Fatal(err)
	}
}

func pausedDataNodeEndsWrites(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	dn := h.DataNodes[0]
	if err := dn.Pause(); err != nil {
		t.Fatal(err)
	}
	defer dn.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	err := put(ctx, s, "f", make([]byte, 8<<20))
	wantIs(t, "writing to a paused DataNode", err, tier.ErrUnavailable)
	wantIs(t, "writing to a paused DataNode", err, context.DeadlineExceeded)
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("the write ended after %v, its context after 1s", took)
	}
	if err := dn.Resume(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "f"); !errors.Is(err, tier.ErrNotFound) {
		t.Errorf("the file that was given up: %v, want %v", err, tier.ErrNotFound)
	}
	if err := put(t.Context(), s, "g", make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
}

func pausedNameNodeEndsCalls(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	if err := put(t.Context(), s, "f", []byte("f")); err != nil {
		t.Fatal(err)
	}
	if err := h.NameNode.Pause(); err != nil {
		t.Fatal(err)
	}
	defer h.NameNode.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	renamed := s.Rename(ctx, "f", "g")
	wantIs(t, "Rename on a paused NameNode", renamed, tier.ErrUnsettled)
	wantIs(t, "Stat on a paused NameNode", second(s.Stat(ctx, "f")), tier.ErrUnavailable)
	wantIs(t, "Create on a paused NameNode", put(ctx, s, "h", nil), tier.ErrUnavailable)
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("the calls ended after %v, their context after 1s", took)
	}
	if err := h.NameNode.Resume(); err != nil {
		t.Fatal(err)
	}
	// T1: take the source away; where it was gone, the target is the file
	there, err := s.NameNode().Delete(t.Context(), s.Path("f"), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "g"); there != errors.Is(err, tier.ErrNotFound) {
		t.Errorf("the source was there: %v; the target: %v", there, err)
	}
}

func second[T any](_ T, err error) error { return err }

func callsGoOnAfterAKill(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{Patience: time.Minute})
	data := bytes.Repeat([]byte("0123456789"), 300_000)
	if err := put(t.Context(), s, "f", data); err != nil {
		t.Fatal(err)
	}
	h.NameNode.Kill()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wantIs(t, "Stat of a dead NameNode", second(s.Stat(short, "f")), tier.ErrUnavailable)
	renamed := make(chan error, 1)
	go func() { renamed <- s.Rename(t.Context(), "f", "g") }()
	if err := h.NameNode.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	// in safe mode until the DataNode reports, or done: never lost
	if err := <-renamed; err != nil {
		wantIs(t, "Rename over the restart", err, tier.ErrUnavailable)
		if err := s.Rename(t.Context(), "f", "g"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := get(t.Context(), s, "g"); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("after the restart: %d bytes, %v", len(got), err)
	}
	if err := put(t.Context(), s, "h", data); err != nil {
		t.Fatal(err)
	}
}

func readsGoOnAfterTheDataNodeCameBack(t *testing.T, h *servers.HDFS) {
	s := open(t, h.URL, hdfs.Options{})
	data := bytes.Repeat([]byte("0123456789"), 500_000)
	if err := put(t.Context(), s, "f", data); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	half := make([]byte, len(data)/2)
	if _, err := r.ReadAt(half, 0); err != nil {
		t.Fatal(err)
	}
	h.DataNodes[0].Kill()
	_, err = r.ReadAt(half, int64(len(half)))
	if err != nil { // what the socket had buffered may have been enough
		wantIs(t, "ReadAt from a dead DataNode", err, tier.ErrUnavailable)
	}
	if err := h.DataNodes[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh, err := get(t.Context(), s, "f")
	if err != nil || !bytes.Equal(fresh, data) {
		t.Fatalf("after the DataNode's restart: %d bytes, %v", len(fresh), err)
	}
}
