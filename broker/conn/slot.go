package conn

import (
	"math"
	"sync"
	"time"

	"varve/broker/kafka"
	"varve/broker/wire"
)

// A Slot is a pending answer to Produce: encoded already, as if all went well. Each
// partition that waits is held by it under a token; whoever learns what became of
// the partition calls Done with the token, from any goroutine. Slots are used
// again: a token knows which answer it was of, and comes too late harmlessly.
type Slot struct {
	until time.Duration // since the server's start
	start int           // of the answer in Out.B while it is built

	mu struct {
		sync.Mutex
		c     *Conn
		gen   uint32
		left  int // holds not done, and one until the answer ends
		holds []hold
	}
}

// A hold is a partition that waits.
type hold struct {
	at   int // of the partition, from the answer's start
	code kafka.Code
}

// undecided is the code of a hold that is not done.
const undecided kafka.Code = math.MinInt16

var slots = sync.Pool{New: func() any { return new(Slot) }}

func getSlot(c *Conn, start int, until time.Duration) *Slot {
	s := slots.Get().(*Slot)
	s.start, s.until = start, until
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.c, s.mu.left, s.mu.holds = c, 1, s.mu.holds[:0]
	return s
}

// Hold makes the answer wait for the partition that was encoded from position at of
// Out.B on. The token is for Done.
func (s *Slot) Hold(at int) (token uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.left++
	s.mu.holds = append(s.mu.holds, hold{at - s.start, undecided})
	return uint64(s.mu.gen)<<32 | uint64(len(s.mu.holds)-1)
}

// Done says what became of a partition. The last one sends the answer.
func (s *Slot) Done(token uint64, code kafka.Code) {
	s.mu.Lock()
	var c *Conn
	if i := int(uint32(token)); uint32(token>>32) == s.mu.gen && i < len(s.mu.holds) && s.mu.holds[i].code == undecided {
		s.mu.holds[i].code = code
		c = s.drop()
	}
	s.mu.Unlock()
	if c != nil {
		c.signal(evSlot)
	}
}

// drop is called with the lock; it returns the connection to wake.
func (s *Slot) drop() *Conn {
	if s.mu.left--; s.mu.left > 0 {
		return nil
	}
	return s.mu.c
}

// seal says that no hold comes any more. The connection itself calls it, and looks
// before it waits: nobody need be woken.
func (s *Slot) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}

// finish writes the codes into the answer and gives the slot back, if all is done
// or the time is over.
func (s *Slot) finish(answer []byte, now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.left > 0 && now < s.until {
		return false
	}
	for _, h := range s.mu.holds {
		code := h.code
		if code == undecided {
			code = kafka.RequestTimedOut
		}
		if code != kafka.None {
			wire.SetCode(answer[h.at:], code)
		}
	}
	s.retire()
	return true
}

// abandon gives a slot back whose connection is lost.
func (s *Slot) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retire()
}

// retire is called with the lock; tokens given out so far are void from here on.
func (s *Slot) retire() {
	s.mu.gen++
	s.mu.c = nil
	slots.Put(s)
}
