package partition

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

// A Waker is told that what it waits for may be there now. Wake never blocks and
// may come too often.
type Waker interface{ Wake() }

// A Watcher is a reader's interest in many partitions: each marks its bit when it
// has something new to show, and the one mark that brings enough wakes the reader.
// It is registered once per partition and serves any number of waits, so a fetch
// session of a thousand partitions costs an append one bit.
//
//	Look ─► read ─► Arm(need) ──► marks gather ──► Wake, once ──► Look …
//
// Marks may come from any goroutine; the other methods belong to the reader.
type Watcher struct {
	words  []atomic.Uint64
	waker  Waker
	armed  atomic.Bool
	need   atomic.Int64 // bytes that are worth waking for; set before armed
	gained atomic.Int64 // bytes marked since Look
}

// urgent is worth waking for whatever the need.
const urgent = 1 << 40

// NewWatcher returns a watcher of n partitions, each of which counts as marked:
// nothing is known of it yet.
func NewWatcher(n int, waker Waker) *Watcher {
	w := &Watcher{words: make([]atomic.Uint64, (n+63)/64), waker: waker}
	for i := range n {
		w.Set(i)
	}
	return w
}

// Mark says that partition i has n more bytes to show; n < 0 is news that must
// not wait for more (an error, a new leader).
func (w *Watcher) Mark(i int, n int64) {
	w.Set(i)
	if n < 0 {
		n = urgent
	}
	if w.gained.Add(n) >= w.need.Load() && w.armed.Load() && w.armed.CompareAndSwap(true, false) {
		w.waker.Wake()
	}
}

// Set marks partition i without waking anybody: the reader knows itself that it has to
// look there again.
func (w *Watcher) Set(i int) {
	word, bit := &w.words[i/64], uint64(1)<<(i%64)
	if word.Load()&bit == 0 {
		word.Or(bit)
	}
}

// Look begins a look at the partitions: what they bring from here on counts for Arm.
func (w *Watcher) Look() { w.gained.Store(0) }

// Arm asks for one Wake when need bytes have been marked since Look. It is false where
// they have been already: look again instead of waiting.
func (w *Watcher) Arm(need int64) bool {
	w.need.Store(need)
	w.armed.Store(true)
	return w.gained.Load() < need || !w.armed.CompareAndSwap(true, false)
}

// Disarm takes the wish back.
func (w *Watcher) Disarm() { w.armed.Store(false) }

// Take clears the marks and yields each marked index in order.
func (w *Watcher) Take(yield func(i int) bool) {
	for k := range w.words {
		if w.words[k].Load() == 0 {
			continue
		}
		for word := w.words[k].Swap(0); word != 0; word &= word - 1 {
			if !yield(k*64 + bits.TrailingZeros64(word)) {
				w.words[k].Or(word)
				return
			}
		}
	}
}

// a watch is one registration of a watcher at a partition.
type watch struct {
	w *Watcher
	i int
}

// watches is a copy-on-write list: marking takes no lock.
type watches struct{ list atomic.Pointer[[]watch] }

func (ws *watches) mark(n int64) {
	if l := ws.list.Load(); l != nil {
		for _, x := range *l {
			x.w.Mark(x.i, n)
		}
	}
}

func (ws *watches) add(w *Watcher, i int) {
	for {
		old := ws.list.Load()
		var next []watch
		if old != nil {
			next = append(make([]watch, 0, len(*old)+1), *old...)
		}
		next = append(next, watch{w, i})
		if ws.list.CompareAndSwap(old, &next) {
			return
		}
	}
}

func (ws *watches) remove(w *Watcher, i int) {
	for {
		old := ws.list.Load()
		if old == nil {
			return
		}
		var next *[]watch
		if l := slices.DeleteFunc(slices.Clone(*old), func(x watch) bool { return x == watch{w, i} }); len(l) > 0 {
			next = &l
		}
		if ws.list.CompareAndSwap(old, next) {
			return
		}
	}
}
