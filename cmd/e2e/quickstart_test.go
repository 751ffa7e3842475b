package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/cmd/e2e/servers"
)

func TestQuickstartTakesAFileThereAndBack(t *testing.T) {
	text := lines(numbered("quick", 0, 60_000)) // some segments of 1 MiB
	t.Run("from a file into a folder that is kept", func(t *testing.T) {
		dir, file := t.TempDir(), filepath.Join(t.TempDir(), "some.log")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		shows(t, quickstart(t, "", "-data-dir", dir, file), `All 60[, ]?000 lines .* came back both ways, byte for byte`)
		if got := files(t, dir, "tier/varve/topics/*/*/0/segments/*.seg"); len(got) < 2 {
			t.Errorf("containers that are kept: %q", got)
		}
	})
	t.Run("from stdin without a newline at its end and nothing is left", func(t *testing.T) {
		tmp := t.TempDir()
		t.Setenv("TMPDIR", tmp)
		shows(t, quickstart(t, text+"an end", "-"), `All 60[, ]?001 lines .* came back both ways, byte for byte`)
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary folder: %v, %v", left, err)
		}
	})
	t.Run("a file that is not there is exit code 1", func(t *testing.T) {
		cmd, err := servers.VarveCommand(within(t), "quickstart", filepath.Join(t.TempDir(), "absent"))
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.CombinedOutput()
		if code, _ := servers.ExitCode(err); code != 1 || !strings.Contains(string(out), "absent: no such file") {
			t.Errorf("exit code %d, %s", code, out)
		}
	})
}

// TestQuickstartServesUntilItIsInterrupted uses what it says about how to connect.
func TestQuickstartServesUntilItIsInterrupted(t *testing.T) {
	servers.Need(t, "kcat")
	p := process(t, nil, "quickstart", "-serve")
	v := &servers.Varve{}
	for deadline := time.Now().Add(patience); v.Addr == "" && time.Now().Before(deadline); {
		if addr, ok := strings.CutPrefix(p.line(t), "Serving at "); ok {
			v.Addr, _, _ = strings.Cut(addr, " ")
		}
	}
	got := split(kcat(t, v, "", "-C", "-q", "-t", "quickstart", "-o", "beginning", "-c", "5"))
	if len(got) < 5 {
		t.Errorf("kcat reads %q, want 5 lines", got)
	}
	p.end(t, os.Interrupt)
}

func quickstart(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd, err := servers.VarveCommand(within(t), append([]string{"quickstart"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, cmd, stdin)
}
