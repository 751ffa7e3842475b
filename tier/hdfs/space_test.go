package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"varve/cmd/e2e/servers"
	"varve/tier"
	"varve/tier/hdfs"
)

// TestDeadDataNodeCostsAReplicaNotTheWrite: two DataNodes, two replicas, one node
// killed and not yet noticed: the library cannot make a pipeline, the store makes a
// shorter one and asks for the second replica afterwards.
func TestDeadDataNodeCostsAReplicaNotTheWrite(t *testing.T) {
	h := servers.HDFSFor(t, servers.HDFSOptions{DataNodes: 2, HDFSSite: map[string]string{
		"dfs.replication": "2", "dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": "600000",
		"dfs.namenode.reconstruction.pending.timeout-sec": "3",
	}})
	s := open(t, h.URL, hdfs.Options{Connect: 2 * time.Second})
	if err := put(t.Context(), s, "before", make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	h.DataNodes[1].Kill()
	data := bytes.Repeat([]byte("x"), 3<<20)
	for _, name := range []string{"f", "g", "h"} {
		// a pipeline of one may still meet the dead node: then the caller's next try
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := put(ctx, s, name, data)
		for err != nil && ctx.Err() == nil {
			wantIs(t, "writing with a dead DataNode", err, tier.ErrUnavailable)
			err = put(ctx, s, name, data)
		}
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		status, err := s.NameNode().Stat(t.Context(), s.Path(name))
		if err != nil || status.Replication != 2 {
			t.Fatalf("%s is to have %d replicas, %v, want 2", name, status.Replication, err)
		}
	}
	if err := h.DataNodes[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitReplicas(t, s, "f", 2)
	if got, err := get(t.Context(), s, "f"); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("read back %d bytes, %v", len(got), err)
	}
}

func awaitReplicas(t *testing.T, s tier.Store, name string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		live, _, err := s.LiveReplicas(ctx, name)
		if err == nil && live >= want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s has %d live replicas, %v, want %d", name, live, err, want)
		case <-tick.C:
		}
	}
}

// TestFullDataNodesAreFull: all space of the DataNodes is reserved for others.
func TestFullDataNodesAreFull(t *testing.T) {
	h := servers.HDFSFor(t, servers.HDFSOptions{HDFSSite: map[string]string{"dfs.datanode.du.reserved": reserveAllBut(t, 64<<20)}})
	s := open(t, h.URL, hdfs.Options{})
	w, err := s.Create(t.Context(), "f", tier.CreateOptions{Size: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(make([]byte, 1<<20))
	w.Abort()
	wantIs(t, "a block of 1 TiB on full DataNodes", err, tier.ErrFull)
	if _, err := s.Stat(t.Context(), "f"); !errors.Is(err, tier.ErrNotFound) {
		t.Fatalf("the file that did not fit: %v, want %v", err, tier.ErrNotFound)
	}
}

// TestNoDataNodeIsUnavailable: the NameNode has heard of none.
func TestNoDataNodeIsUnavailable(t *testing.T) {
	h := servers.HDFSFor(t, servers.HDFSOptions{HDFSSite: map[string]string{
		"dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": "500",
	}})
	s := open(t, h.URL, hdfs.Options{})
	h.DataNodes[0].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C { // until the NameNode has noticed
		stats, err := s.NameNode().FsStats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if stats.Capacity == 0 {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the NameNode still counts the dead DataNode")
		}
	}
	err := put(ctx, s, "f", make([]byte, 1000))
	wantIs(t, "writing without DataNodes", err, tier.ErrUnavailable)
	if errors.Is(err, tier.ErrFull) {
		t.Fatalf("%v is also %v", err, tier.ErrFull)
	}
}

// TestErasureCodedFolderIsRefused: and the message says what to do.
func TestErasureCodedFolderIsRefused(t *testing.T) {
	h := servers.HDFSFor(t, servers.HDFSOptions{})
	s := open(t, h.URL, hdfs.Options{})
	r, err := h.Tool(t.Context(), "org.apache.hadoop.hdfs.tools.ECAdmin", "-setPolicy", "-path", s.Path(""), "-policy", "RS-6-3-1024k")
	if err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	err = s.Probe(t.Context())
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("hdfs ec -setPolicy -replicate")) {
		t.Fatalf("Probe of an erasure-coded folder = %v, want a refusal with the command that mends it", err)
	}
}

func TestHDFSThatIsAwayIsUnavailable(t *testing.T) {
	s, err := hdfs.Open("hdfs://127.0.0.1:1/varve", hdfs.Options{User: "u", Patience: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err) // a broker starts while HDFS is away
	}
	defer s.Close()
	wantIs(t, "Probe of nothing", s.Probe(t.Context()), tier.ErrUnavailable)
	wantIs(t, "writing to nothing", put(t.Context(), s, "f", nil), tier.ErrUnavailable)
	wantIs(t, "Rename in nothing", s.Rename(t.Context(), "f", "g"), tier.ErrUnavailable)
}

// reserveAllBut is a reservation that leaves n bytes of the disk under the
// temporary folder, as dfs.datanode.du.reserved wants it.
func reserveAllBut(t *testing.T, n int64) string {
	t.Helper()
	return reserved(t, os.TempDir(), n)
}
