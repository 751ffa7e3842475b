package log4j

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestFullDiskCostsLinesAndNothingElse(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	h, _, errs := configured(t, `log4j.rootLogger=INFO,F
log4j.appender.F=org.apache.log4j.FileAppender
log4j.appender.F.File=/dev/full
log4j.appender.F.layout=org.apache.log4j.SimpleLayout
`)
	for range 10 {
		h.Logger("x").Info("lost")
		flush(t, h)
	}
	if got := h.Dropped(); got != 10 {
		t.Errorf("dropped %d, want 10", got)
	}
	if got := strings.Count(errs.String(), "no space left on device"); got != 1 {
		t.Errorf("told %d times: %s", got, errs)
	}
}

func TestFolderThatCannotBeMadeIsToldAndTriedAgain(t *testing.T) {
	blocker := t.TempDir() + "/blocker"
	if err := os.WriteFile(blocker, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	path := blocker + "/x.log"
	h, _, errs := configured(t, "log4j.rootLogger=INFO,F\nlog4j.appender.F=org.apache.log4j.FileAppender\nlog4j.appender.F.File="+path+
		"\nlog4j.appender.F.layout=org.apache.log4j.SimpleLayout\n")
	if !strings.Contains(errs.String(), "log4j:ERROR setFile("+path+",true) call failed.") {
		t.Errorf("stderr: %s", errs)
	}
	h.Logger("x").Info("lost")
	flush(t, h)
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	h.Logger("x").Info("back")
	flush(t, h)
	if got := content(t, path); got != "INFO - back\n" || h.Dropped() != 1 {
		t.Errorf("got %q, dropped %d", got, h.Dropped())
	}
}

// stuck is a disk that does not answer until it is let go.
type stuck struct {
	entered, release chan struct{}
	got              []byte
}

func (s *stuck) write(text []byte, _ []line) (int, error) {
	s.entered <- struct{}{}
	<-s.release
	s.got = append(s.got, text...)
	return 0, nil
}

func (s *stuck) close() error { return errors.New("closed") }

func TestStuckDiskDoesNotHoldUpWhoLogs(t *testing.T) {
	s := &stuck{entered: make(chan struct{}, 100), release: make(chan struct{})}
	w := &writer{target: s, failed: func(error) {}}
	w.append([]byte("first\n"), time.Now())
	<-s.entered
	big := make([]byte, bufferMax/4)
	for range 6 { // returns though nothing is written
		w.append(big, time.Now())
	}
	if got := w.dropped.Load(); got != 2 {
		t.Errorf("dropped %d, want 2", got)
	}
	if w.flush(time.Millisecond) {
		t.Error("flush says that a stuck disk has everything")
	}
	w.close(time.Millisecond)
	close(s.release)
	if !w.flush(5 * time.Second) {
		t.Fatal("not written after the disk came back")
	}
	if want := len("first\n") + 4*len(big); len(s.got) != want {
		t.Errorf("written %d bytes, want %d", len(s.got), want)
	}
	w.append([]byte("late\n"), time.Now())
	if got := w.dropped.Load(); got != 3 {
		t.Errorf("after close: dropped %d, want 3", got)
	}
}
