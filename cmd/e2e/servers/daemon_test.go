package servers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell returns a daemon that runs a shell script and serves once it has
// written "serving". The folder is an argument, as it is of every real one.
func shell(t *testing.T, script string) *Daemon {
	t.Helper()
	d := &Daemon{Name: "script", Dir: t.TempDir()}
	d.argv = []string{"/bin/sh", "-c", script, d.Dir}
	d.ready = func(context.Context) error { return d.logged("serving") }
	t.Cleanup(d.Kill)
	return d
}

const sleeper = "echo serving; while :; do sleep 1; done"

func TestDaemonEndsWithAllThatItStarted(t *testing.T) {
	d := shell(t, `sleep 1000 & echo $! > "$0/child"; echo serving; wait`)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(d.Dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	d.Kill()
	err = poll(t.Context(), "the child to be gone", func(context.Context) error {
		if strings.Contains(commandLine(child), "sleep") {
			return errors.New("it runs")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d.PID() != 0 {
		t.Errorf("a killed daemon has pid %d", d.PID())
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	d := shell(t, "echo the disk is on fire; exit 3")
	err := d.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the disk is on fire") || !strings.Contains(err.Error(), "exit status 3") {
		t.Fatalf("error %v; want the log and the exit status", err)
	}
}

func TestStartGivesUpAtItsDeadline(t *testing.T) {
	d := shell(t, "echo still warming up; while :; do sleep 1; done")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := d.Start(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still warming up") {
		t.Fatalf("error %v; want the deadline and the log", err)
	}
	if d.PID() != 0 {
		t.Errorf("process %d goes on after a failed start", d.PID())
	}
}

func TestReadinessIsOfThisLife(t *testing.T) {
	d := shell(t, `if [ -e "$0/second" ]; then exit 1; fi; touch "$0/second"; `+sleeper)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context()); err == nil {
		t.Fatal("the second life serves by the log of the first")
	}
}

func TestPausedDaemonCanBeStopped(t *testing.T) {
	d := shell(t, sleeper)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := d.Pause(); err == nil {
		t.Error("a stopped daemon can be paused")
	}
}

func TestLeftoversOfADeadProgramAreSwept(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "kafka-1")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command("/bin/sh", "-c", sleeper, dir)
	orphan.SysProcAttr = ownGroup()
	if err := startOnSpawner(orphan); err != nil {
		t.Fatal(err)
	}
	write := func(name string, pid int) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("owner", os.Getpid())
	write("kafka.pid", orphan.Process.Pid)
	sweepNow(root)
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("the server of a living program was swept: %v", err)
	}

	write("owner", deadProcess(t))
	write("innocent.pid", os.Getpid()) // a number that another process has by now
	sweepNow(root)
	var exit *exec.ExitError
	err := orphan.Wait()
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the orphan ended with %v, want it killed", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its folder: %v, want it gone", err)
	}
}

// deadProcess returns the number of a process that has ended.
func deadProcess(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("/bin/true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}
