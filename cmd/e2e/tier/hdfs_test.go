package tier

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"varve/cmd/e2e/servers"
	"varve/tier/local"
	"varve/tier/scan"
)

// Each story has a broker of its own, on one HDFS.
func TestOnHDFS(t *testing.T) {
	h := servers.HDFSFor(t, servers.HDFSOptions{HDFSSite: map[string]string{"dfs.namenode.acls.enabled": "true"}})
	for _, story := range []struct {
		name string
		tell func(*testing.T, *servers.HDFS)
	}{
		{"QuickstartComesBackEqual", quickstart},
		{"FilesAreForTheirReadersOnly", permissions},
		{"CopiedElsewhereItIsReadWhereItLies", copied},
		{"BrokerStartsWhileHDFSIsAway", awayAtStart},
		{"SafeModeIsWaitedOut", safeMode},
		{"QuotaIsWaitedOut", quota},
		{"NameNodeKilledWhileCopyingLosesNothing", nameNodeKilled},
		{"DataNodePausedWhileReadingIsWaitedOut", dataNodePaused},
		{"LostLogBeginsBehindTheTier", lostLog},
	} {
		t.Run(story.name, func(t *testing.T) {
			back(t, h) // whatever the story before left
			story.tell(t, h)
		})
	}
}

func quickstart(t *testing.T, h *servers.HDFS) {
	cmd, err := servers.VarveCommand(t.Context(), "quickstart", "-tier", h.URL+"/quickstart")
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("came back both ways, byte for byte")) {
		t.Errorf("varve quickstart: %v\n%s", err, out)
	}
}

func permissions(t *testing.T, h *servers.HDFS) {
	s := on(t, h, "tier.acl", "group:analysts:r-x")
	s.create()
	s.fill(3)
	s.settled()
	listed, err := h.Shell(t.Context(), "-ls", "-R", s.root)
	if err != nil {
		t.Fatal(err)
	}
	folder, file := regexp.MustCompile(`^drwxr-x---\+? `), regexp.MustCompile(`^-r--r-----\+? `)
	segments := ""
	for line := range strings.Lines(listed.Stdout) {
		if !folder.MatchString(line) && !file.MatchString(line) {
			t.Errorf("%s, want folders of 0750 and files of 0440", strings.TrimSpace(line))
		}
		if strings.Contains(line, ".seg") {
			segments = strings.Fields(line)[7]
		}
	}
	acl, err := h.Shell(t.Context(), "-getfacl", segments)
	if err != nil || !strings.Contains(acl.Stdout, "group:analysts:r-x") {
		t.Errorf("the list of %s is\n%s%v, want the group that tier.acl names", segments, acl.Stdout, err)
	}
}

func copied(t *testing.T, h *servers.HDFS) {
	s := on(t, h)
	s.create()
	s.fill(5)
	s.settled()
	dir := filepath.Join(t.TempDir(), "copy")
	if _, err := h.Shell(t.Context(), "-copyToLocal", s.root, dir); err != nil {
		t.Fatal(err)
	}
	store, err := local.Open(filepath.Join(dir, "varve"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	read, err := scan.Open(t.Context(), store, topic)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := read.Plan(t.Context(), scan.Options{TTL: -1})
	if err != nil {
		t.Fatal(err)
	}
	var want scan.Sum
	for n := range s.sent {
		want.Add(value(n))
	}
	if got, err := plan.Sum(t.Context()); err != nil || got != want {
		t.Errorf("the copy holds %d records (%s), %v, want %d (%s)", got.Records, got.Checksum(), err, want.Records, want.Checksum())
	}
	if n := plan.Partitions[0].Next; int64(n) != s.sent {
		t.Errorf("a consumer would go on at %d, want %d", n, s.sent)
	}
}

func awayAtStart(t *testing.T, h *servers.HDFS) {
	h.NameNode.Kill()
	s := on(t, h)
	s.create()
	s.fill(3)
	s.seen("the tier does not answer now")
	s.comesBack()
	back(t, h)
	s.settled()
	s.comesBack()
}

func back(t *testing.T, h *servers.HDFS) {
	t.Helper()
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func safeMode(t *testing.T, h *servers.HDFS) {
	s := on(t, h)
	s.create()
	s.fill(3)
	s.settled()
	if err := h.SafeMode(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	s.fill(3)
	s.seen("safe mode")
	s.comesBack() // HDFS can be read
	if err := h.SafeMode(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	s.settled()
	s.comesBack()
}

func quota(t *testing.T, h *servers.HDFS) {
	s := on(t, h)
	s.create()
	s.fill(2)
	s.settled()
	admin := func(args ...string) {
		t.Helper()
		if _, err := h.DFSAdmin(t.Context(), append(args, s.root)...); err != nil {
			t.Fatal(err)
		}
	}
	admin("-setSpaceQuota", "3m")
	s.fill(6)
	s.seen("store full")
	s.comesBack()
	admin("-clrSpaceQuota")
	s.settled()
	s.comesBack()
}

func nameNodeKilled(t *testing.T, h *servers.HDFS) {
	s := on(t, h)
	s.create()
	s.fill(20)
	s.until("copies have begun", func() error {
		if tiered, _ := s.marks(); tiered <= 0 {
			return fmt.Errorf("the tier ends at %d", tiered)
		}
		return nil
	})
	h.NameNode.Kill()
	s.fill(10)
	s.seen("store unavailable")
	back(t, h)
	s.settled()
	s.comesBack()
}

func dataNodePaused(t *testing.T, h *servers.HDFS) {
	s := on(t, h)
	s.create()
	s.fill(20)
	s.settled()
	node := h.DataNodes[0]
	if err := node.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Resume() })
	resumed := make(chan error, 1)
	go func() {
		s.until("a read has failed", func() error {
			if s.metric("varve_tier_read_errors_total") == 0 {
				return fmt.Errorf("none has")
			}
			return nil
		})
		resumed <- node.Resume()
	}()
	s.comesBack()
	if err := <-resumed; err != nil {
		t.Fatal(err)
	}
}

// lostLog: the partition's folder is gone after a kill, as on a new disk.
func lostLog(t *testing.T, h *servers.HDFS) {
	s := on(t, h)
	s.create()
	s.fill(5)
	s.settled()
	s.v.Kill()
	if err := os.RemoveAll(filepath.Join(s.v.DataDir, "log", topic+"-0")); err != nil {
		t.Fatal(err)
	}
	if err := s.v.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.comesBack()
	s.fill(5)
	s.settled()
	s.comesBack()
}
