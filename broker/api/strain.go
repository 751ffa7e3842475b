package api

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Strain tells how much producers suffer: how far the time that an append takes is
// above what it took of late. Copies to the tier rest by it. The zero value knows of nothing yet.
type Strain struct {
	count, nanos atomic.Int64 // of all produce requests so far

	mu struct {
		sync.Mutex
		at           time.Time
		count, nanos int64
		recent       [64]int64 // mean ns of a look's requests, the newest looks
		n            int
		share        float64
	}
}

// lookEvery is how often the recent requests are summed up.
const lookEvery = 250 * time.Millisecond

// note takes a request in.
func (s *Strain) note(d time.Duration) {
	s.count.Add(1)
	s.nanos.Add(int64(d))
}

// Share is 0 while produce takes what it usually does, and rises to 0.9 where it takes
// four times the median of the last looks.
func (s *Strain) Share(now time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.mu.at) < lookEvery {
		return s.mu.share
	}
	count, nanos := s.count.Load(), s.nanos.Load()
	n, ns := count-s.mu.count, nanos-s.mu.nanos
	s.mu.at, s.mu.count, s.mu.nanos, s.mu.share = now, count, nanos, 0
	if n == 0 {
		return 0
	}
	mean := ns / n
	known := slices.Clone(s.mu.recent[:min(s.mu.n, len(s.mu.recent))])
	s.mu.recent[s.mu.n%len(s.mu.recent)] = mean
	s.mu.n++
	if len(known) < 8 { // too little is known to call anything unusual
		return 0
	}
	slices.Sort(known)
	usual := float64(max(known[len(known)/2], 1))
	s.mu.share = max(0, min((float64(mean)/usual-1.5)/2.5, 0.9))
	return s.mu.share
}
