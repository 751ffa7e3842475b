package load

import (
	"runtime"
	"syscall"
	"time"
)

// pacer sleeps by the system call in a thread of its own: the runtime's timers
// are a millisecond coarse, which is more than a broker takes to answer.
type pacer struct{}

func newPacer() pacer {
	runtime.LockOSThread()
	return pacer{}
}

func (pacer) end() { runtime.UnlockOSThread() }

func (pacer) until(due time.Time) {
	if d := time.Until(due); d > 20*time.Microsecond {
		t := syscall.NsecToTimespec(int64(d))
		syscall.Nanosleep(&t, nil)
	}
}
