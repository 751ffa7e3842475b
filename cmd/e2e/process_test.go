package e2e

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"varve/cmd/e2e/servers"
)

// A running is a varve whose stdout a test reads line by line.
type running struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr bytes.Buffer
}

// process starts varve; it is killed where the test ends before it.
func process(t *testing.T, environ []string, args ...string) *running {
	t.Helper()
	cmd, err := servers.VarveCommand(within(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	p := &running{cmd: cmd}
	cmd.Env, cmd.Stderr = append(os.Environ(), environ...), &p.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// line is the next line of its stdout.
func (p *running) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.cmd.Wait()
		t.Fatalf("%q ended with %q, %v\n%s", p.cmd.Args, line, err, p.stderr.String())
	}
	return strings.TrimSuffix(line, "\n")
}

// end sends the signal, wants exit code 0 soon, and returns what else stdout had.
func (p *running) end(t *testing.T, sig os.Signal) string {
	t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(p.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("after %v: %v\n%s", sig, err, p.stderr.String())
	}
	if took := time.Since(began); took > stopMax {
		t.Errorf("after %v it took %v to end", sig, took)
	}
	return string(rest)
}
