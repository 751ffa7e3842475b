package host

import (
	"strings"
	"testing"
	"time"
)

func TestRetentionDeletesWhatIsOld(t *testing.T) {
	r := newRig(t)
	r.change(append(here("orders", 1, 1), config("orders", "retention.ms", "60000"))...)
	old := time.Now().Add(-time.Hour)
	for range 3 {
		if err := r.append("orders", 0, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.append("orders", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.host.Retain(time.Now())
	if p := r.find("orders", 0); p.Log().Start() != 3 {
		t.Errorf("the log starts at %d, want 3", p.Log().Start())
	}
}

func TestAChangedConfigCountsAtOnce(t *testing.T) {
	r := newRig(t)
	r.change(here("orders", 1, 1)...)
	old := time.Now().Add(-time.Hour)
	for range 2 {
		if err := r.append("orders", 0, old); err != nil {
			t.Fatal(err)
		}
	}
	r.host.Retain(time.Now())
	if p := r.find("orders", 0); p.Log().Start() != 0 {
		t.Fatalf("the log starts at %d after an hour of seven days", p.Log().Start())
	}
	r.change(config("orders", "retention.ms", "60000"))
	r.host.Retain(time.Now()) // rolls the active segment, which is old too
	r.host.Retain(time.Now())
	if p := r.find("orders", 0); p.Log().Start() != 2 {
		t.Errorf("the log starts at %d, want 2", p.Log().Start())
	}
}

// TestAClockThatJumpsDeletesNothing is T10: the pass after the jump is left out.
func TestAClockThatJumpsDeletesNothing(t *testing.T) {
	r := newRig(t)
	r.change(append(here("orders", 1, 1), config("orders", "retention.ms", "60000"))...)
	now := time.Now()
	for range 2 {
		if err := r.append("orders", 0, now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	// as if the wall clock had been a day behind at the last pass
	r.host.beat = pulse{checkpointed: now, retained: now, reopened: now, wall: now.Add(-24 * time.Hour).Round(0), mono: now}
	r.host.tick(now.Add(6 * time.Minute))
	if p := r.find("orders", 0); p.Log().Start() != 0 || !strings.Contains(r.lines.String(), "clock") {
		t.Errorf("the log starts at %d after the jump; the log says:\n%s", p.Log().Start(), r.lines)
	}
	r.host.tick(now.Add(12 * time.Minute))
	if p := r.find("orders", 0); p.Log().Start() == 0 {
		t.Error("nothing is deleted by a clock that has gone well since")
	}
}
