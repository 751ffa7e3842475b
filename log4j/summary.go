package log4j

import (
	"context"
	"hash/maphash"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Summary writes a line that repeats once and then sums it up: one line says
// "… (repeated 1 204 times in 10 s)". It stands before another handler, for
// loggers that a client can make talk, such as that of refused requests.
//
// Two lines are the same when level, message and attributes are. Lines beyond
// linesMax different ones in a period share one sum, so that a client which
// varies its line cannot fill a disk either.
//
// A period ends with the next line or with Tick, which its owner calls about
// once a second.
type Summary struct {
	next   slog.Handler
	period time.Duration
	seed   maphash.Seed
	attrs  []byte // of With, part of every line
	shared *summaryState
}

// linesMax is how many different lines a Summary tells apart in a period.
const linesMax = 256

type summaryState struct {
	sync.Mutex
	lines  map[uint64]*repeated
	others int // lines beyond linesMax
	since  time.Time
}

// repeated is a line and how often it came again.
type repeated struct {
	handler slog.Handler
	record  slog.Record
	first   time.Time
	times   int
}

var _ slog.Handler = (*Summary)(nil)

// NewSummary sums up what goes to next, for period at a time.
func NewSummary(next slog.Handler, period time.Duration) *Summary {
	return &Summary{next: next, period: period, seed: maphash.MakeSeed(), shared: &summaryState{lines: map[uint64]*repeated{}}}
}

// Enabled asks the handler behind.
func (s *Summary) Enabled(ctx context.Context, l slog.Level) bool { return s.next.Enabled(ctx, l) }

// Handle passes the line on or counts it.
func (s *Summary) Handle(ctx context.Context, r slog.Record) error {
	for _, line := range s.take(r) {
		if err := line.handler.Handle(ctx, line.record); err != nil {
			return err
		}
	}
	return nil
}

// take returns what is to be written now that r came: sums of periods that are
// over, and r itself if it is new.
func (s *Summary) take(r slog.Record) []repeated {
	key := s.key(r)
	s.shared.Lock()
	defer s.shared.Unlock()
	out := s.over(r.Time)
	if before := s.shared.lines[key]; before != nil {
		before.times++
		return out
	}
	if len(s.shared.lines) >= linesMax {
		s.shared.others++
		return out
	}
	if len(s.shared.lines) == 0 {
		s.shared.since = r.Time
	}
	s.shared.lines[key] = &repeated{handler: s.next, record: r.Clone(), first: r.Time}
	return append(out, repeated{handler: s.next, record: r})
}

// Tick writes the sums of periods that are over at now.
func (s *Summary) Tick(now time.Time) {
	s.shared.Lock()
	out := s.over(now)
	s.shared.Unlock()
	for _, line := range out {
		// A handler that fails has nobody here who could do better.
		_ = line.handler.Handle(context.Background(), line.record)
	}
}

// over takes out the lines whose period is over; the lock is held. Most calls
// find none and look at one time only.
func (s *Summary) over(now time.Time) []repeated {
	st := s.shared
	if len(st.lines) == 0 || now.Sub(st.since) < s.period {
		return nil
	}
	var out []repeated
	oldest := now
	for key, line := range st.lines {
		if now.Sub(line.first) < s.period {
			if line.first.Before(oldest) {
				oldest = line.first
			}
			continue
		}
		delete(st.lines, key)
		if line.times > 0 {
			out = append(out, line.sum(now))
		}
	}
	if st.others > 0 {
		r := slog.NewRecord(now, slog.LevelWarn, "further different lines ("+grouped(st.others)+" in "+seconds(now.Sub(st.since))+")", 0)
		out = append(out, repeated{handler: s.next, record: r})
		st.others = 0
	}
	st.since = oldest
	return out
}

// sum is the line again, with how often it came. It stays among the known ones
// no longer: if it comes again, it is written again.
func (l *repeated) sum(now time.Time) repeated {
	r := slog.NewRecord(now, l.record.Level, l.record.Message, l.record.PC)
	r.Message += " (repeated " + grouped(l.times) + " times in " + seconds(now.Sub(l.first)) + ")"
	l.record.Attrs(func(a slog.Attr) bool { r.AddAttrs(a); return true })
	return repeated{handler: l.handler, record: r}
}

func (s *Summary) key(r slog.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(r.Message)
	h.WriteByte(byte(r.Level))
	h.Write(s.attrs)
	buffer := make([]byte, 0, 128)
	r.Attrs(func(a slog.Attr) bool {
		buffer = appendAttr(buffer, "", a)
		return true
	})
	h.Write(buffer)
	return h.Sum64()
}

// WithAttrs shares the sums: the attributes are part of each line.
func (s *Summary) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *s
	next.next = s.next.WithAttrs(attrs)
	next.attrs = append([]byte(nil), s.attrs...)
	for _, a := range attrs {
		next.attrs = appendAttr(next.attrs, "", a)
	}
	return &next
}

// WithGroup is as WithAttrs.
func (s *Summary) WithGroup(name string) slog.Handler {
	next := *s
	next.next = s.next.WithGroup(name)
	next.attrs = append(append([]byte(nil), s.attrs...), name...)
	return &next
}

// grouped writes 1204 as 1 204.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	var b strings.Builder
	for i, d := range []byte(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(' ')
		}
		b.WriteByte(d)
	}
	return b.String()
}

func seconds(d time.Duration) string {
	return strconv.Itoa(int(d.Round(time.Second)/time.Second)) + " s"
}
