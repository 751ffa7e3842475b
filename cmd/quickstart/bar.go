package quickstart

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// A bar shows progress on a terminal, and nothing elsewhere.
type bar struct {
	out   io.Writer
	what  string
	total int64 // 0 where it is not known
	shown time.Time
	on    bool
}

func newBar(out io.Writer, what string, total int64) *bar {
	f, ok := out.(*os.File)
	return &bar{out: out, what: what, total: total, on: ok && term.IsTerminal(int(f.Fd()))}
}

const barWidth = 30

// at shows how far it is, at most ten times a second.
func (b *bar) at(n int64) {
	if !b.on || time.Since(b.shown) < 100*time.Millisecond {
		return
	}
	b.shown = time.Now()
	if b.total <= 0 {
		fmt.Fprintf(b.out, "\r%s %s ", b.what, size(n))
		return
	}
	filled := int(min(n, b.total) * barWidth / b.total)
	fmt.Fprintf(b.out, "\r%s [%s%s] %3d%% ", b.what, strings.Repeat("█", filled), strings.Repeat("·", barWidth-filled), min(n, b.total)*100/b.total)
}

// done wipes the bar.
func (b *bar) done() {
	if b.on {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

// size is bytes for people.
func size(n int64) string {
	switch {
	case n >= 1_000_000_000:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}

// count is a number with its thousands apart.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// rate is how long something took, and how fast that was.
func rate(bytes int64, began time.Time) string {
	took := time.Since(began)
	return fmt.Sprintf("%s, %s/s", took.Round(time.Millisecond), size(int64(float64(bytes)/took.Seconds())))
}
