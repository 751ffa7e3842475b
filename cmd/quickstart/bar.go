package quickstart

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"varve/cmd/human"
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
		fmt.Fprintf(b.out, "\r%s %s ", b.what, human.Bytes(n))
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
