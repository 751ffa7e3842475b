package log4j

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"
)

func TestRepeatedLinesAreSummedUp(t *testing.T) {
	h, out, _ := configured(t, "log4j.rootLogger=INFO,A"+toStdout+"%p %m%n")
	s := NewSummary(h.Handler("kafka.request.logger"), 10*time.Second)
	at := time.Unix(1000, 0)
	log := func(after time.Duration, msg string, attrs ...any) {
		r := slog.NewRecord(at.Add(after), Warn, msg, 0)
		r.Add(attrs...)
		if err := s.WithAttrs([]slog.Attr{slog.Int("broker", 1)}).Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1205 {
		log(time.Duration(i)*time.Millisecond, "refused", "client", "a")
	}
	log(2*time.Second, "refused", "client", "b")
	log(11*time.Second, "other")
	s.Tick(at.Add(13 * time.Second))
	s.Tick(at.Add(40 * time.Second))
	flush(t, h)
	want := `WARN refused broker=1 client=a
WARN refused broker=1 client=b
WARN refused (repeated 1 204 times in 11 s) broker=1 client=a
WARN other broker=1
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

func TestDifferentLinesAreBounded(t *testing.T) {
	h, out, _ := configured(t, "log4j.rootLogger=INFO,A"+toStdout+"%m%n")
	s := NewSummary(h.Handler("x"), time.Second)
	at := time.Unix(1000, 0)
	for i := range linesMax + 1500 {
		r := slog.NewRecord(at, Warn, fmt.Sprintf("line %d", i), 0)
		if err := s.Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	s.Tick(at.Add(2 * time.Second))
	flush(t, h)
	var lines int
	for _, c := range out.String() {
		if c == '\n' {
			lines++
		}
	}
	if lines != linesMax+1 {
		t.Errorf("got %d lines, want %d", lines, linesMax+1)
	}
	if want := "further different lines (1 500 in 2 s)\n"; out.String()[len(out.String())-len(want):] != want {
		t.Errorf("last line is not %q", want)
	}
}
