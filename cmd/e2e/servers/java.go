package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// smallJVM is for servers that share two cores with their tests: a JVM then
// takes about 200 MB and starts in two thirds of the time.
var smallJVM = []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

// openedForOldHadoop lets Hadoop 2.10 and 3.1, made for Java 8, start on 17.
var openedForOldHadoop = []string{
	"--add-opens=java.base/java.lang=ALL-UNNAMED",
	"--add-opens=java.base/java.nio=ALL-UNNAMED",
	"--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
	"--add-opens=java.base/java.util=ALL-UNNAMED",
}

func javaBinary() string {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if bin := filepath.Join(home, "bin", "java"); executable(bin) {
			return bin
		}
	}
	return "java"
}

func executable(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}

// program is a Java main class with its class path and JVM options.
type program struct {
	classPath string
	options   []string
	class     string
}

func (p program) argv(args ...string) []string {
	argv := append([]string{javaBinary()}, p.options...)
	argv = append(argv, "-cp", p.classPath, p.class)
	return append(argv, args...)
}

// command prepares a run of the program that ends, with all it started, when
// ctx does. The caller may set its streams, environment and folder.
func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	return java(ctx, p.argv(args...))
}

// JavaCommand prepares a run of one source file of Java, which needs no class path; it
// ends, with all it started, when ctx does.
func JavaCommand(ctx context.Context, source string, args ...string) *exec.Cmd {
	argv := append([]string{javaBinary()}, smallJVM...)
	return java(ctx, append(append(argv, source), args...))
}

func java(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Result is what a finished tool left behind.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// finish runs cmd to its end. A code other than 0 is an error, which shows the
// end of what the tool said; the result is whole all the same.
func finish(cmd *exec.Cmd, tool string, args []string) (Result, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := startOnSpawner(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	r := Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	if err != nil {
		said := append(stdout.Bytes(), stderr.Bytes()...)
		return r, fmt.Errorf("%s %q: %w\n%s", tool, args, err, lastLines(said, 20))
	}
	return r, nil
}

// ExitCode returns the code with which a tool ended; ok is false if err is not
// about a tool that ended by itself.
func ExitCode(err error) (code int, ok bool) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), true
	}
	return 0, false
}
