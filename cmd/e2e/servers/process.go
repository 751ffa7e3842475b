package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// startOnSpawner starts cmd from a thread that lives as long as the program.
// Linux sends the signal that ends an orphan when the *thread* that forked it
// ends, and Go ends threads (a locked goroutine that returns takes its own).
func startOnSpawner(cmd *exec.Cmd) error {
	job := spawn{cmd, make(chan error)}
	spawner() <- job
	return <-job.started
}

type spawn struct {
	cmd     *exec.Cmd
	started chan error
}

var spawner = sync.OnceValue(func() chan<- spawn {
	jobs := make(chan spawn)
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job.started <- job.cmd.Start()
		}
	}()
	return jobs
})

// signalGroup signals the process pid and all that it started: each daemon
// leads a group of its own.
func signalGroup(pid int, sig syscall.Signal) error { return syscall.Kill(-pid, sig) }

// endLeftover kills the process that a pid file names, if it is still what was
// started for dir: numbers of processes come again, folders do not.
func endLeftover(pidFile, dir string) {
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err == nil && pid > 1 && strings.Contains(commandLine(pid), dir) {
		Notice.Printf("ending process %d, left over in %s", pid, dir)
		signalGroup(pid, syscall.SIGKILL)
	}
	os.Remove(pidFile)
}

// commandLine returns what process pid was started as; empty if there is none.
func commandLine(pid int) string {
	if runtime.GOOS == "linux" {
		b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		return strings.ReplaceAll(string(b), "\x00", " ")
	}
	b, _ := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return string(b)
}
