package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/cmd/e2e/servers"
)

// stopMax is "within seconds" on two busy cores.
const stopMax = 10 * time.Second

// TestAStopIsSoonAndTheNextStartClean has clients that wait for records when the
// signal comes, one of them a member of a group.
func TestAStopIsSoonAndTheNextStartClean(t *testing.T) {
	v := broker(t)
	create(t, v, "kept", 3)
	cl := client(t, v.Addr, toPartition0()...)
	want := numbered("kept", 0, 500)
	produce(t, cl, "kept", want)
	waiting := client(t, v.Addr, fromStart("kept"))
	same(t, "before the stop", poll(t, waiting, len(want)), want)
	idle, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		waiting.PollFetches(idle)
	}()
	join(t, v, "kept").has(t, 3)

	began := time.Now()
	if err := v.Stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > stopMax {
		t.Errorf("the stop took %v", took)
	}
	cancel()
	<-ended
	log := filepath.Join(v.DataDir, "log")
	marker, summaries := filepath.Join(log, ".kafka_cleanshutdown"), files(t, log, ".varve_cleanshutdown-*")
	if _, err := os.Stat(marker); err != nil || len(summaries) != 1 {
		t.Errorf("after a clean stop: marker %v, summaries %q", err, summaries)
	}

	start(t, v)
	for _, name := range append(summaries, marker) {
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s while the broker runs: %v, want it gone", name, err)
		}
	}
	shows(t, v.Tail(20), `lastStop=clean`)
	same(t, "after the start", poll(t, client(t, v.Addr, fromStart("kept")), len(want)), want)

	v.Kill()
	start(t, v)
	shows(t, v.Tail(20), `lastStop="not clean`)
}

// TestAPortOf0IsAFreeOne wants addresses that clients can use.
func TestAPortOf0IsAFreeOne(t *testing.T) {
	servers.Need(t, "kcat")
	p := process(t, nil, "standalone", "-listener", "127.0.0.1:0", "-http", "127.0.0.1:0", "-data-dir", t.TempDir())
	ready := p.line(t)
	fields := map[string]string{}
	for _, f := range strings.Fields(ready) {
		key, value, _ := strings.Cut(f, "=")
		fields[key] = value
	}
	addr := fields["bootstrap"]
	if !strings.HasPrefix(ready, "ready ") || !strings.HasPrefix(addr, "127.0.0.1:") || strings.HasSuffix(addr, ":0") {
		t.Fatalf("it says %q, want ready and a bootstrap address with a port", ready)
	}
	shows(t, kcat(t, &servers.Varve{Addr: addr}, "", "-L"), `broker 1 at `+addr)
	if got := page(t, fields["http"]+"/healthz"); !strings.Contains(got, `"ok"`) {
		t.Errorf("/healthz: %s", got)
	}
	p.end(t, os.Interrupt)
}
