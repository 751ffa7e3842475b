package log4j

import (
	"sync"
	"sync/atomic"
	"time"
)

// bufferMax is how much a writer keeps while its target does not take it,
// 4 MiB: seconds of a busy log on a slow disk.
const bufferMax = 4 << 20

// target is where lines go: a console, a file that rolls. Only the writer's
// goroutine calls it, one call at a time.
type target interface {
	// write takes whole lines; ends are their ends in text, times when they
	// were logged. It reports how many lines were lost.
	write(text []byte, lines []line) (lost int, err error)
	close() error
}

type line struct {
	end   int // in the text
	milli int64
}

// writer hands lines to a target from a goroutine of its own, so that who
// logs never waits for a disk. Lines keep their order.
type writer struct {
	target  target
	failed  func(err error) // called once, with the first error
	dropped atomic.Int64

	mu struct {
		sync.Mutex
		text    []byte
		lines   []line
		running bool // the goroutine is there and will look again
		closed  bool
		done    int64         // lines that the target has taken or lost
		next    int64         // lines that were appended
		idle    chan struct{} // closed when done reaches next; nil: nobody waits
	}
	spare struct { // the other pair of buffers; the goroutine's while it runs
		text  []byte
		lines []line
	}
	told bool // failed was called; the goroutine's
}

// append copies text, a whole line, and returns at once.
func (w *writer) append(text []byte, at time.Time) {
	w.mu.Lock()
	if w.mu.closed || len(w.mu.text)+len(text) > bufferMax {
		w.mu.Unlock()
		w.dropped.Add(1)
		return
	}
	w.mu.text = append(w.mu.text, text...)
	w.mu.lines = append(w.mu.lines, line{len(w.mu.text), at.UnixMilli()})
	w.mu.next++
	start := !w.mu.running
	w.mu.running = true
	w.mu.Unlock()
	if start {
		go w.run()
	}
}

// run writes until there is nothing left.
func (w *writer) run() {
	for {
		w.mu.Lock()
		if len(w.mu.lines) == 0 {
			w.mu.running = false
			w.mu.Unlock()
			return
		}
		text, lines := w.mu.text, w.mu.lines
		w.mu.text, w.mu.lines = w.spare.text[:0], w.spare.lines[:0]
		w.mu.Unlock()

		lost, err := w.target.write(text, lines)
		w.dropped.Add(int64(lost))
		if err != nil && !w.told {
			w.told = true
			w.failed(err)
		}
		n := int64(len(lines))
		w.spare.text, w.spare.lines = shrink(text), lines

		w.mu.Lock()
		w.mu.done += n
		if w.mu.done == w.mu.next && w.mu.idle != nil {
			close(w.mu.idle)
			w.mu.idle = nil
		}
		w.mu.Unlock()
	}
}

// shrink gives a buffer back that one burst made large.
func shrink(b []byte) []byte {
	if cap(b) > bufferMax/8 {
		return nil
	}
	return b
}

// flush waits until all is written, no longer than timeout.
func (w *writer) flush(timeout time.Duration) bool {
	w.mu.Lock()
	if w.mu.done == w.mu.next {
		w.mu.Unlock()
		return true
	}
	if w.mu.idle == nil {
		w.mu.idle = make(chan struct{})
	}
	idle := w.mu.idle
	w.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

// close takes no more lines, writes what there is and closes the target; one
// that hangs is left to itself after timeout.
func (w *writer) close(timeout time.Duration) {
	w.mu.Lock()
	already := w.mu.closed
	w.mu.closed = true
	w.mu.Unlock()
	if already || !w.flush(timeout) {
		return
	}
	if err := w.target.close(); err != nil {
		w.failed(err)
	}
}
