package standalone

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, o Options) *Process {
	t.Helper()
	o.Listener, o.HTTP = "127.0.0.1:0", "127.0.0.1:0"
	p, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func stop(t *testing.T, p *Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestEverythingLiesInTheDataFolderUnlessSaidOtherwise(t *testing.T) {
	t.Chdir(t.TempDir())
	var log bytes.Buffer
	p := start(t, Options{Stderr: &log})
	defer stop(t, p)
	data, _ := filepath.Abs("varve-data")
	for key, want := range map[string]string{
		"log.dirs": filepath.Join(data, "log"), "metadata.log.dir": filepath.Join(data, "metadata"), "tier.url": "file://" + filepath.Join(data, "tier"),
	} {
		got := p.Conf().Value(key)
		if list, ok := got.([]string); ok {
			got = strings.Join(list, ",")
		}
		if got != want {
			t.Errorf("%s is %v, want %s", key, got, want)
		}
	}
	if got := p.Conf().Int("offsets.topic.replication.factor"); got != 1 {
		t.Errorf("offsets.topic.replication.factor is %d: groups cannot work on one broker", got)
	}
}

func TestTheLogSaysHowTheLastRunEnded(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{`lastStop="none, it is new"`, "lastStop=clean"} {
		var log bytes.Buffer
		stop(t, start(t, Options{DataDir: dir, Stderr: &log}))
		for _, line := range []string{want, "serving clients=127.0.0.1:", "stopped cleanly"} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("the log has no %q:\n%s", line, log.String())
			}
		}
	}
}

func TestASecondProcessInTheSameFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	defer stop(t, start(t, Options{DataDir: dir, Quiet: true}))
	p, err := Start(t.Context(), Options{DataDir: dir, Listener: "127.0.0.1:0", HTTP: "127.0.0.1:0", Quiet: true})
	if err == nil {
		stop(t, p)
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "is locked by another process") {
		t.Errorf("got %v", err)
	}
}
