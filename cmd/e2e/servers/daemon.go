package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a daemon may take to stop cleanly before it is killed.
const stopTimeout = 30 * time.Second

// Daemon is one server process. It may be ended and started again on the same
// ports and data:
//
//	          Start               Pause
//	stopped ────────► running ◄─────────► paused
//	   ▲                 │        Resume     │
//	   └── Stop, Kill ───┴───────────────────┘
type Daemon struct {
	Name string // as in its file names: "namenode", "datanode1"
	Dir  string // of the server it belongs to; holds Name.pid and Name.log

	argv  []string
	unset []string                    // names of variables that it must not inherit
	ready func(context.Context) error // nil once it serves

	mu struct {
		sync.Mutex
		run *run // nil while stopped
	}
}

// run is one life of a daemon.
type run struct {
	pid  int
	log  int64         // where in the log this life begins
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; read after done
}

// Start starts the process and waits until it serves.
func (d *Daemon) Start(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := d.spawn()
	if err != nil {
		return fmt.Errorf("starting %s: %w", d.Name, err)
	}
	err = poll(ctx, d.Name+" to serve", func(ctx context.Context) error {
		select {
		case <-r.done:
			return nil
		default:
			return d.ready(ctx)
		}
	})
	select {
	case <-r.done:
		err = fmt.Errorf("the process ended: %w", errors.Join(r.err, errors.New("before it served")))
	default:
	}
	if err != nil {
		d.Kill()
		return fmt.Errorf("starting %s: %w\n--- the end of %s:\n%s", d.Name, err, d.LogFile(), d.Tail(40))
	}
	return nil
}

func (d *Daemon) spawn() (*run, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.run != nil {
		return nil, fmt.Errorf("it runs already, as process %d", d.mu.run.pid)
	}
	endLeftover(d.pidFile(), d.Dir)
	out, err := os.OpenFile(d.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	begin, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(d.argv[0], d.argv[1:]...)
	cmd.Dir, cmd.Env = d.Dir, without(os.Environ(), d.unset...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = ownGroup()
	if err := startOnSpawner(cmd); err != nil {
		return nil, err
	}
	r := &run{pid: cmd.Process.Pid, log: begin, done: make(chan struct{})}
	d.mu.run = r
	go func() {
		r.err = cmd.Wait()
		close(r.done)
	}()
	return r, os.WriteFile(d.pidFile(), []byte(strconv.Itoa(r.pid)), 0o644)
}

// Stop asks the process to end, waits, and kills it where it takes too long;
// that is reported as an error. A daemon that does not run is stopped already.
func (d *Daemon) Stop() error {
	r := d.take()
	if r == nil {
		return nil
	}
	signalGroup(r.pid, syscall.SIGTERM)
	signalGroup(r.pid, syscall.SIGCONT) // a paused one could not hear it
	select {
	case <-r.done:
		return nil
	case <-time.After(stopTimeout):
		signalGroup(r.pid, syscall.SIGKILL)
		<-r.done
		return fmt.Errorf("stopping %s: killed after %v; the end of its log:\n%s", d.Name, stopTimeout, d.Tail(20))
	}
}

// Kill ends the process at once, as a power cut would, and waits until it is
// gone.
func (d *Daemon) Kill() {
	r := d.take()
	if r == nil {
		return
	}
	signalGroup(r.pid, syscall.SIGKILL)
	<-r.done
}

// Close is Kill: data of a test server is not worth waiting for.
func (d *Daemon) Close() error {
	d.Kill()
	return nil
}

// take makes the daemon stopped and returns the life to end.
func (d *Daemon) take() *run {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.mu.run
	d.mu.run = nil
	os.Remove(d.pidFile())
	return r
}

// Pause stops the process where it stands (SIGSTOP); its peers see silence.
func (d *Daemon) Pause() error { return d.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (d *Daemon) Resume() error { return d.signal(syscall.SIGCONT) }

func (d *Daemon) signal(sig syscall.Signal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.run == nil {
		return fmt.Errorf("sending %v to %s: it does not run", sig, d.Name)
	}
	return signalGroup(d.mu.run.pid, sig)
}

// PID returns the process id, 0 while stopped.
func (d *Daemon) PID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.run == nil {
		return 0
	}
	return d.mu.run.pid
}

// Done is closed when the process is gone, whoever ended it; for a stopped
// daemon it is closed.
func (d *Daemon) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.run == nil {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	return d.mu.run.done
}

// LogFile is where the process writes what it has to say, all lives in one.
func (d *Daemon) LogFile() string { return filepath.Join(d.Dir, d.Name+".log") }

func (d *Daemon) pidFile() string { return filepath.Join(d.Dir, d.Name+".pid") }

// Tail returns the last lines of the log.
func (d *Daemon) Tail(lines int) string {
	b, err := os.ReadFile(d.LogFile())
	if err != nil {
		return err.Error()
	}
	return lastLines(b, lines)
}

// logged is a ready test: this life's part of the log holds the text.
func (d *Daemon) logged(text string) error {
	b, err := os.ReadFile(d.LogFile())
	if err != nil {
		return err
	}
	d.mu.Lock()
	r := d.mu.run
	d.mu.Unlock()
	if r == nil || int64(len(b)) < r.log || !bytes.Contains(b[r.log:], []byte(text)) {
		return fmt.Errorf("%q is not in %s", text, d.LogFile())
	}
	return nil
}

func lastLines(b []byte, n int) string {
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
