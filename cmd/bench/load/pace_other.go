//go:build !linux

package load

import "time"

// pacer sleeps by the runtime's timers.
type pacer struct{}

func newPacer() pacer { return pacer{} }

func (pacer) end() {}

func (pacer) until(due time.Time) { time.Sleep(time.Until(due)) }
