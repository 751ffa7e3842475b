package conn

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestRefusalsAreLoggedOnceAndThenSummedUp(t *testing.T) {
	log := &logBuffer{}
	r := &Refusals{Log: slog.New(slog.NewTextHandler(log, nil))}
	now := time.Unix(1000, 0)
	add := func(n int, kind string) {
		for i := range n {
			r.Add(now, slog.LevelWarn, kind, "topic", i)
		}
	}
	lines := func(want ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSpace(log.String()), "\n")
		log.mu.Reset()
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d: %q", len(got), len(want), got)
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("line %q, want %q", got[i], want[i])
			}
		}
	}
	add(5, "too large")
	lines("topic=0")
	now = now.Add(5 * time.Second)
	r.Summarize(now)
	add(1, "no leader")
	lines("no leader")
	now = now.Add(5 * time.Second)
	r.Summarize(now)
	lines("too large: 4 times more in 10s; the last:")
	now = now.Add(10 * time.Second)
	r.Summarize(now) // nothing came: both kinds are forgotten
	add(1, "too large")
	lines("topic=0")
}

func TestRefusalsOfManyKindsTakeBoundedMemory(t *testing.T) {
	log := &logBuffer{}
	r := &Refusals{Log: slog.New(slog.NewTextHandler(log, nil)), Most: 10}
	now := time.Unix(1000, 0)
	for i := range 1000 {
		r.Add(now, slog.LevelWarn, fmt.Sprint("kind ", i))
	}
	if n := len(r.mu.kinds); n != 11 {
		t.Errorf("%d kinds kept, want 11", n)
	}
	if n := strings.Count(log.String(), "\n"); n != 11 {
		t.Errorf("%d lines, want 11", n)
	}
}
