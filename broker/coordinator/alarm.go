package coordinator

import (
	"sync"
	"time"
)

// An alarm rings once at the earliest of the times it was set for: one timer for all
// shards. A shard sets it again after every step, so what rings too early costs a look.
type alarm struct {
	ring func(now time.Time)

	mu struct {
		sync.Mutex
		at      time.Time // when the timer fires; zero where it is not set
		timer   *time.Timer
		stopped bool
	}
}

// by makes the alarm ring at a time or before.
func (a *alarm) by(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.stopped || !a.mu.at.IsZero() && !at.Before(a.mu.at) {
		return
	}
	a.mu.at = at
	if a.mu.timer == nil {
		a.mu.timer = time.AfterFunc(time.Until(at), a.fire)
		return
	}
	a.mu.timer.Reset(time.Until(at))
}

func (a *alarm) fire() {
	a.mu.Lock()
	a.mu.at = time.Time{}
	stopped := a.mu.stopped
	a.mu.Unlock()
	if !stopped {
		a.ring(time.Now())
	}
}

// stop ends it; a ring that is on its way may still come.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.stopped = true
	if a.mu.timer != nil {
		a.mu.timer.Stop()
	}
}
