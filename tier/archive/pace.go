package archive

import (
	"context"
	"io"
	"sync"
	"time"
)

// writeBytes is how much goes to the store in one write.
const writeBytes = 4 << 20

// A pacer slows copies: to a rate over all of them, and by resting while producers
// suffer.
type pacer struct {
	pressure func() float64
	rate     float64 // bytes a second; 0 = no limit

	mu *pacerState
}

type pacerState struct {
	sync.Mutex
	free time.Time // when what has been let through is paid for
}

func newPacer(bytesPerSecond int64, pressure func() float64) pacer {
	return pacer{pressure: pressure, rate: float64(bytesPerSecond), mu: new(pacerState)}
}

// restMax bounds one rest, so that copies go on under any pressure.
const restMax = time.Second

// after waits as long as n bytes that took d must be waited for.
func (p *pacer) after(ctx context.Context, n int, d time.Duration) error {
	wait := time.Duration(0)
	if share := min(p.pressure(), 0.99); share > 0 {
		wait = min(time.Duration(float64(d)*share/(1-share)), restMax)
	}
	if p.rate > 0 {
		p.mu.Lock()
		now := time.Now()
		if p.mu.free.Before(now) {
			p.mu.free = now
		}
		p.mu.free = p.mu.free.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
		wait = max(wait, p.mu.free.Sub(now))
		p.mu.Unlock()
	}
	if wait <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A pacedWriter passes writes on and waits after each as the pacer says.
type pacedWriter struct {
	ctx  context.Context
	w    io.Writer
	pace *pacer
}

func (w pacedWriter) Write(b []byte) (int, error) {
	start := time.Now()
	n, err := w.w.Write(b)
	if err == nil {
		err = w.pace.after(w.ctx, n, time.Since(start))
	}
	return n, err
}
