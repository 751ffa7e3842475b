package conn

import (
	"fmt"
	"io"
	"slices"
	"time"

	"varve/broker/vfs"
	"varve/broker/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// sendfileMin is the run from which on sendfile costs less than to read the run
// into the answer, in bytes (measured: 8 KiB).
const sendfileMin = 8 << 10

// An Out is where a connection's answers are built, and the queue in which they
// wait to be sent. An answer is
//
//	Begin(h); out.B = append(out.B, …); Run(run); out.B = append(out.B, …); End()
type Out struct {
	// B is the bytes of the answers not sent. Between Begin and End append to it.
	B []byte

	c     *Conn
	buf   *[]byte // that B began in
	hint  int     // class of the next buffer
	queue []piece
	slots int // of queue, that are pending

	begun bool
	ended bool // the present request has its answer
	start int  // of the answer begun, in B
	runs  int  // bytes of its runs
	slot  *Slot

	err error // of the first write that failed
}

// A piece ends at a byte of B, from the end of the piece before it, and may be
// followed by a run. A piece with a slot waits, and all behind it.
type piece struct {
	end  int
	slot *Slot
	run  vfs.Run
}

// Begin begins the answer to h.
func (o *Out) Begin(h wire.Header) {
	if o.begun || o.ended {
		panic("conn: a second answer to " + h.String())
	}
	if o.buf == nil {
		o.buf = getBuffer(classes[o.hint])
		o.B = (*o.buf)[:0]
	}
	o.begun, o.start, o.runs = true, len(o.B), 0
	o.B = wire.AppendResponseHeader(o.B, h)
}

// Run puts a run of record bytes behind what is in B, and takes over its release.
// After an error the connection must be closed: a length that promised the run is
// out already.
func (o *Out) Run(r vfs.Run) error {
	if r.N >= sendfileMin {
		o.queue = append(o.queue, piece{end: len(o.B), run: r})
		o.runs += r.N
		return nil
	}
	defer r.Release()
	if r.File == nil {
		o.B = append(o.B, r.Bytes[:r.N]...)
		return nil
	}
	at := len(o.B)
	o.grow(r.N)
	o.B = o.B[:at+r.N]
	if n, err := r.File.ReadAt(o.B[at:], r.Pos); n < r.N {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("reading %d bytes at %d of %s for an answer: %w", r.N, r.Pos, r.File.Name(), err)
	}
	return nil
}

// grow makes room for n bytes more in B, from the pools.
func (o *Out) grow(n int) {
	if cap(o.B)-len(o.B) >= n {
		return
	}
	larger := getBuffer(max(len(o.B)+n, 2*cap(o.B)))
	b := (*larger)[:copy(*larger, o.B)]
	*o.buf = o.B
	putBuffer(o.buf)
	o.buf, o.B = larger, b
}

// Pend makes the answer begun one that waits: for every Hold to be Done, or until
// the time, when what is not done gets REQUEST_TIMED_OUT. Such an answer is one to
// Produce, and has no runs. It is sent at the earliest after End.
func (o *Out) Pend(until time.Time) *Slot {
	if !o.begun || o.slot != nil {
		panic("conn: a pending answer that has not begun, or twice")
	}
	o.slot = getSlot(o.c, o.start, until.Sub(o.c.srv.start))
	return o.slot
}

// End ends the answer.
func (o *Out) End() {
	if !o.begun {
		panic("conn: the end of an answer that has not begun")
	}
	wire.SetFrameSize(o.B[o.start:], len(o.B)-o.start+o.runs)
	if s := o.slot; s != nil {
		if o.runs > 0 {
			panic("conn: a pending answer with runs")
		}
		if last := o.lastEnd(); last < o.start {
			o.queue = append(o.queue, piece{end: o.start})
		}
		o.queue = append(o.queue, piece{end: len(o.B), slot: s})
		o.slots++
		o.slot = nil
		s.seal()
	}
	o.begun, o.ended = false, true
}

// Silence says that the request wants no answer (acks=0).
func (o *Out) Silence() {
	if o.begun || o.ended {
		panic("conn: silence after an answer")
	}
	o.ended = true
}

// Respond is Begin, the response as kmsg encodes it, and End.
func (o *Out) Respond(h wire.Header, r kmsg.Response) {
	o.Begin(h)
	o.B = r.AppendTo(o.B)
	o.End()
}

func (o *Out) lastEnd() int {
	if n := len(o.queue); n > 0 {
		return o.queue[n-1].end
	}
	return 0
}

// full tells that so much waits behind a pending answer that nothing more should be
// read.
func (o *Out) full() bool { return o.slots >= 1000 || o.slots > 0 && len(o.B) >= 1<<20 }

// firstDeadline is when the first pending answer must leave, complete or not.
func (o *Out) firstDeadline() time.Duration {
	first := never
	if o.slots == 0 {
		return first
	}
	for i := range o.queue {
		if s := o.queue[i].slot; s != nil {
			first = min(first, s.until)
		}
	}
	return first
}

// sent forgets the first pieces and the first bytes of B.
func (o *Out) sent(pieces, bytes int) {
	o.queue = slices.Delete(o.queue, 0, pieces)
	for i := range o.queue {
		o.queue[i].end -= bytes
	}
	peak := len(o.B)
	o.B = o.B[:copy(o.B, o.B[bytes:])]
	if len(o.B) > 0 || len(o.queue) > 0 {
		return
	}
	switch {
	case peak > classes[o.hint]:
		o.hint = min(classFor(peak), classMost)
	case o.hint > classOut && peak < classes[o.hint]/16:
		o.hint--
	}
	*o.buf = o.B
	putBuffer(o.buf)
	o.buf, o.B = nil, nil
	if cap(o.queue) > 64 {
		o.queue = nil
	}
}

// discard gives back what will not be sent.
func (o *Out) discard() {
	if o.slot != nil {
		o.slot.abandon()
		o.slot = nil
	}
	for i := range o.queue {
		if s := o.queue[i].slot; s != nil {
			s.abandon()
		}
		o.queue[i].run.Release()
	}
	o.queue, o.slots, o.begun = nil, 0, false
	if o.buf != nil {
		*o.buf = o.B
		putBuffer(o.buf)
		o.buf, o.B = nil, nil
	}
}
