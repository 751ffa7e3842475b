package conn

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestWheelIsNeverEarlyAndAtMostTwoTicksLate drives a wheel by hand with random
// deadlines, up to several turns away, that move later and are called off.
func TestWheelIsNeverEarlyAndAtMostTwoTicksLate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	now := time.Duration(0)
	w := newWheel(func() time.Duration { return now })
	s := &Server{wheel: w}
	conns := make([]*Conn, 300)
	for i := range conns {
		c := &Conn{srv: s, park: make(chan struct{}, 1)}
		c.node.c = c
		conns[i] = c
	}
	for range 20_000 {
		c := conns[rng.IntN(len(conns))]
		switch rng.IntN(10) {
		case 0:
			c.setDue(never)
		default:
			c.setDue(now + time.Duration(rng.Int64N(int64(10*time.Second))))
		}
		now += time.Duration(rng.Int64N(int64(tick)))
		wait := w.turn(now)
		for _, c := range conns {
			due := time.Duration(c.due.Load())
			fired := c.take(events)&evDue != 0
			switch {
			case fired && due > now:
				t.Fatalf("%v early", due-now)
			case !fired && due != 0 && due < now-2*tick:
				t.Fatalf("%v late", now-due)
			case fired:
				c.due.Store(0)
			case due != 0 && wait > due-now+2*tick:
				t.Fatalf("sleeps for %v, %v too long", wait, wait-(due-now))
			}
		}
	}
}

func TestWheelForgetsConnectionsThatEnd(t *testing.T) {
	w := newWheel(func() time.Duration { return 0 })
	c := &Conn{srv: &Server{wheel: w}}
	c.node.c = c
	c.setDue(time.Second)
	c.setDue(time.Minute) // stays where it is
	if w.mu.size != 1 {
		t.Fatalf("%d in the wheel, want 1", w.mu.size)
	}
	w.remove(c)
	w.remove(c)
	if wait := w.turn(2 * time.Second); w.mu.size != 0 || wait != time.Hour {
		t.Errorf("%d in the wheel, sleeps for %v", w.mu.size, wait)
	}
}
