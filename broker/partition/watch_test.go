package partition_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"varve/broker/partition"
)

// A bell counts its wakes and lets one wait for the next.
type bell struct {
	wakes atomic.Int64
	rung  chan struct{}
}

func newBell() *bell { return &bell{rung: make(chan struct{}, 1)} }

func (b *bell) Wake() {
	b.wakes.Add(1)
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// fresh is a watcher whose first marks have been taken.
func fresh(n int, b *bell) *partition.Watcher {
	w := partition.NewWatcher(n, b)
	for range w.Take {
	}
	w.Look()
	return w
}

func TestAWatcherKnowsNothingOfItsPartitionsAtFirst(t *testing.T) {
	w := partition.NewWatcher(130, newBell())
	if got := slices.Collect(w.Take); len(got) != 130 || got[0] != 0 || got[129] != 129 {
		t.Errorf("marked at first: %v", got)
	}
	if got := slices.Collect(w.Take); got != nil {
		t.Errorf("marked still: %v", got)
	}
}

func TestTakeKeepsWhatWasNotLookedAt(t *testing.T) {
	w := partition.NewWatcher(70, newBell())
	for i := range w.Take {
		if i == 2 {
			break
		}
	}
	if got := slices.Collect(w.Take); len(got) != 68 || got[0] != 2 {
		t.Errorf("%d left from %v on, want 68 from the one that the look ended at", len(got), got[:1])
	}
}

func TestEnoughMarksWakeOnce(t *testing.T) {
	b := newBell()
	w := fresh(3, b)
	if !w.Arm(100) {
		t.Fatal("nothing was marked, and Arm says that there is enough")
	}
	w.Mark(0, 60)
	if n := b.wakes.Load(); n != 0 {
		t.Fatalf("woken %d times for 60 of 100 bytes", n)
	}
	w.Mark(1, 60)
	w.Mark(2, 60)
	if n := b.wakes.Load(); n != 1 {
		t.Errorf("woken %d times, want once", n)
	}
}

func TestNewsThatCannotWaitWakesWhateverTheNeed(t *testing.T) {
	b := newBell()
	w := fresh(1, b)
	w.Arm(1 << 30)
	w.Mark(0, -1)
	if n := b.wakes.Load(); n != 1 {
		t.Errorf("woken %d times", n)
	}
}

func TestMarksBetweenLookAndArmAreNotLost(t *testing.T) {
	b := newBell()
	w := fresh(1, b)
	w.Mark(0, 100)
	if w.Arm(100) {
		t.Error("Arm lets the reader wait for what is there")
	}
	w.Look()
	if !w.Arm(100) {
		t.Error("what came before Look counts again")
	}
	w.Disarm()
	w.Mark(0, 100)
	if n := b.wakes.Load(); n != 0 {
		t.Errorf("woken %d times after Disarm", n)
	}
}

// TestNoWakeIsLost lets writers mark while a reader looks and waits: a reader that
// waits for what has been marked already would wait for ever.
func TestNoWakeIsLost(t *testing.T) {
	const writers, each = 4, 20_000
	b := newBell()
	w := fresh(writers, b)
	var published [writers]atomic.Int64
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for range each {
				published[i].Add(1)
				w.Mark(i, 1)
			}
		})
	}
	var seen [writers]int64
	total := func() (n int64) {
		for _, s := range seen {
			n += s
		}
		return n
	}
	for total() < writers*each {
		w.Look()
		before := total()
		for i := range w.Take {
			seen[i] = published[i].Load()
		}
		if total() > before {
			continue
		}
		if w.Arm(1) {
			<-b.rung
		}
		w.Disarm()
	}
	wg.Wait()
}

func TestWatchersComeAndGoWhileMarksPass(t *testing.T) {
	r := led(t, settings())
	stay, pass := newBell(), newBell()
	w := fresh(1, stay)
	r.Watch(w, 0)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			other := fresh(1, pass)
			for range 200 {
				r.Watch(other, 0)
				r.Unwatch(other, 0)
			}
		})
	}
	wg.Wait()
	w.Arm(1)
	r.put(batch(1, 10, noon))
	if n := stay.wakes.Load(); n != 1 {
		t.Errorf("the watcher that stayed was woken %d times", n)
	}
	if n := pass.wakes.Load(); n != 0 {
		t.Errorf("the watchers that left were woken %d times", n)
	}
}

// BenchmarkMark asks what an append costs a session that watches it, and how that
// changes with marks from many cores.
func BenchmarkMark(b *testing.B) {
	w := fresh(1000, newBell())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			w.Mark(i%1000, 100)
		}
	})
}
