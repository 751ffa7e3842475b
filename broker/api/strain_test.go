package api

import (
	"testing"
	"time"
)

func TestCopiesRestWhileAppendsAreSlow(t *testing.T) {
	var s Strain
	now := time.Unix(1000, 0)
	look := func(d time.Duration) float64 {
		now = now.Add(lookEvery)
		for range 10 {
			s.note(d)
		}
		return s.Share(now)
	}
	for range 20 {
		if got := look(time.Millisecond); got != 0 {
			t.Fatalf("share at the usual latency: %v, want 0", got)
		}
	}
	if got := look(4 * time.Millisecond); got != 0.9 {
		t.Errorf("share at four times the usual: %v, want 0.9", got)
	}
	if got := s.Share(now); got != 0.9 {
		t.Errorf("share within a look: %v, want the look's 0.9", got)
	}
	if got := look(2 * time.Millisecond); got <= 0 || got >= 0.9 {
		t.Errorf("share at twice the usual: %v, want between", got)
	}
	now = now.Add(lookEvery)
	if got := s.Share(now); got != 0 {
		t.Errorf("share while nobody produces: %v, want 0", got)
	}
}
