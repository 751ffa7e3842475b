package conn

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Refusals writes one log line for each thing refused, and sums up what repeats:
// after the first line of a kind, the kind is counted for a while, and one line
// tells how many more there were.
type Refusals struct {
	Log   *slog.Logger
	Every time.Duration // how long a kind is summed up; 0 is 10 s
	Most  int           // kinds kept apart; 0 is 1000, what is more falls into one

	mu struct {
		sync.Mutex
		kinds map[string]*refusal
	}
}

type refusal struct {
	since time.Time
	more  int
	level slog.Level
	last  []any
}

// overflow is the kind of what no room is left for.
const overflow = "others"

// Add logs a refusal, or counts it where its kind was logged a moment ago. kind
// says what was refused and why, without what differs each time; attrs are the
// facts of this time.
func (r *Refusals) Add(now time.Time, level slog.Level, kind string, attrs ...any) {
	if r.count(now, level, kind, attrs) {
		r.Log.Log(ctxNone, level, kind, attrs...)
	}
}

// count tells whether the refusal is the first of its kind.
func (r *Refusals) count(now time.Time, level slog.Level, kind string, attrs []any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.kinds == nil {
		r.mu.kinds = map[string]*refusal{}
	}
	k, ok := r.mu.kinds[kind]
	if most := orDefault(r.Most, 1000); !ok && len(r.mu.kinds) >= most {
		kind = overflow
		k, ok = r.mu.kinds[kind]
	}
	if !ok {
		r.mu.kinds[kind] = &refusal{since: now, level: level}
		return true
	}
	k.more++
	k.last = attrs
	return false
}

// Summarize logs the sums of the kinds whose time is over. Call it now and then.
func (r *Refusals) Summarize(now time.Time) {
	type line struct {
		kind string
		refusal
	}
	var lines []line
	every := orDefault(r.Every, 10*time.Second)
	r.mu.Lock()
	for kind, k := range r.mu.kinds {
		if now.Sub(k.since) < every {
			continue
		}
		if k.more == 0 {
			delete(r.mu.kinds, kind)
			continue
		}
		lines = append(lines, line{kind, *k})
		k.since, k.more = now, 0
	}
	r.mu.Unlock()
	for _, l := range lines {
		r.Log.Log(ctxNone, l.level, fmt.Sprintf("%s: %d times more in %v; the last:", l.kind, l.more, now.Sub(l.since).Round(time.Second)), l.last...)
	}
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
