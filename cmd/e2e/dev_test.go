package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"varve/cmd/e2e/servers"
)

// TestDevIsForTestSuites: one line of JSON, topics made on demand, nothing left behind.
func TestDevIsForTestSuites(t *testing.T) {
	servers.Need(t, "kcat")
	tmp := t.TempDir()
	p := process(t, []string{"TMPDIR=" + tmp}, "standalone", "-dev")
	line := p.line(t)
	var said struct{ Bootstrap, HTTP, Tier string }
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.Bootstrap == "" {
		t.Fatalf("it says %q (%v), want JSON with a bootstrap address", line, err)
	}
	v := &servers.Varve{Addr: said.Bootstrap}
	want := numbered("dev", 0, 10)
	kcat(t, v, lines(want), "-P", "-t", "on-demand", "-p", "0")
	same(t, "a topic that nobody made", split(kcat(t, v, "", "-C", "-q", "-t", "on-demand", "-p", "0", "-o", "beginning", "-e")), want)
	if !strings.HasPrefix(said.Tier, "file://"+tmp) {
		t.Errorf("its tier is %s, want it in the temporary folder", said.Tier)
	}
	if rest := p.end(t, syscall.SIGTERM); rest != "" {
		t.Errorf("stdout after the line of JSON: %q", rest)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}
