package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"varve/broker/metadata"
	"varve/ha/controller"
	"varve/ha/journal"
)

// A leadership is one term: the machine, its queue and the goroutine that appends.
type leadership struct {
	term    journal.Term
	machine *controller.Machine // the appender's
	frames  uint64              // the appender's: frames of this term so far
	last    journal.Number      // the appender's: the last edit of this term

	mu struct {
		sync.Mutex
		queue []*pending
		over  bool
	}
	more chan struct{} // has a token while the queue may have something
	quit chan struct{} // closed when the term is over
}

// pending is a request on its way.
type pending struct {
	req  controller.Request
	out  controller.Outcome
	done chan result // has room for the one result
}

type result struct {
	answer controller.Answer
	err    error
}

// Lead takes the journal, reads it to its end and serves Do from then on. It returns
// when the term's first edit is in the image.
func (r *Runner) Lead(ctx context.Context) error {
	r.Resign()
	term, err := r.j.Take(ctx, r.opt.Who)
	if err != nil {
		return fmt.Errorf("taking the metadata log: %w", err)
	}
	if err := r.reachEnd(ctx); err != nil { // nobody else can append: the end is the end
		term.Resign()
		return err
	}
	l := &leadership{
		term: term, machine: controller.New(r.Image(), r.opt.Controller),
		more: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	begin := &pending{
		req:  controller.BeginTerm{Epoch: term.Epoch(), Who: r.opt.Who, ClusterID: r.opt.ClusterID},
		done: make(chan result, 1),
	}
	l.push(begin)
	r.mu.Lock()
	if r.mu.failed != nil {
		err := r.mu.failed
		r.mu.Unlock()
		term.Resign()
		return err
	}
	r.mu.lead = l
	r.mu.Unlock()
	r.tasks.Go(func() { r.append(l) })
	select {
	case res := <-begin.done:
		return res.err
	case <-ctx.Done():
		r.Resign()
		return ctx.Err()
	}
}

// reachEnd waits until the image holds every edit of the log.
func (r *Runner) reachEnd(ctx context.Context) error {
	for {
		r.mu.Lock()
		moved, failed := r.mu.moved, r.mu.failed
		r.mu.Unlock()
		if failed != nil {
			return failed
		}
		next := r.Position().N + 1
		edits, err := r.j.Read(ctx, next, 1)
		if err == nil && len(edits) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading edit %d: %w", next, err)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Resign ends the term, if there is one. What waits is answered NOT_CONTROLLER.
func (r *Runner) Resign() { r.stepDown(nil, nil) }

// stepDown ends the term: only, if it is still the present one (nil: whichever it is).
// The machine and its speculative image are dropped (A4).
func (r *Runner) stepDown(only *leadership, cause error) {
	r.mu.Lock()
	l := r.mu.lead
	if l == nil || only != nil && l != only {
		r.mu.Unlock()
		return
	}
	r.mu.lead = nil
	waits := r.mu.waits
	r.mu.waits = nil
	r.mu.Unlock()

	queue := l.finish()
	l.term.Resign()
	for _, w := range waits {
		w.done(notController(cause))
	}
	for _, p := range queue {
		p.done <- result{err: notController(cause)}
	}
	if cause == nil {
		return
	}
	r.opt.Log.Warn("the controller steps down", "epoch", l.term.Epoch(), "err", cause)
	if r.opt.SteppedDown != nil {
		go r.opt.SteppedDown(cause)
	}
}

// push queues p; false when the term is over.
func (l *leadership) push(p *pending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.over {
		return false
	}
	l.mu.queue = append(l.mu.queue, p)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return true
}

// finish closes the queue and returns what was in it.
func (l *leadership) finish() []*pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.mu.queue
	l.mu.queue, l.mu.over = nil, true
	close(l.quit)
	return queue
}

func (l *leadership) drain() []*pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.mu.queue
	l.mu.queue = nil
	return queue
}

// append is the term's loop: whatever has arrived is decided together and written with
// one append in flight (A1).
func (r *Runner) append(l *leadership) {
	for {
		select {
		case <-l.quit:
			return
		case <-l.more:
		}
		batch := l.drain()
		if len(batch) == 0 {
			continue
		}
		last, err := r.write(l, batch)
		if err != nil {
			for _, p := range batch {
				p.done <- result{err: notController(err)}
			}
			r.stepDown(l, err)
			return
		}
		r.answer(l, batch, last)
	}
}

// write decides the batch and makes it durable; last is the end of the log after it.
func (r *Runner) write(l *leadership, batch []*pending) (last journal.Number, _ error) {
	now := time.Now()
	var edits [][]byte
	var group []metadata.Record
	size := 0
	flush := func() {
		if len(group) > 0 {
			edits = append(edits, metadata.Encode(nil, group))
		}
		group, size = nil, 0
	}
	for _, p := range batch {
		p.out = l.machine.Step(now, p.req)
		n := len(metadata.Encode(nil, p.out.Records))
		if size+n > maxRecords {
			flush()
		}
		if n > maxRecords { // a change of several edits (A15)
			l.frames++
			id := uint64(l.term.Epoch())<<32 | l.frames
			edits = append(edits, metadata.Cut(id, p.out.Records, maxRecords, p.out.Atomic)...)
			continue
		}
		group = append(group, p.out.Records...)
		size += n
	}
	flush()
	return l.commit(r.ctx, edits)
}

// maxRecords bounds an edit's records in bytes before packing.
const maxRecords = journal.MaxPayload - 1

// commit appends the edits one after the other; with none it proves that the term is
// still the newest (A3). An append that fails ends the term.
func (l *leadership) commit(ctx context.Context, edits [][]byte) (last journal.Number, _ error) {
	if len(edits) == 0 {
		return 0, l.term.Check(ctx)
	}
	for _, b := range edits {
		e, err := l.term.Append(ctx, journal.Pack(b))
		if err != nil {
			return 0, err
		}
		last = e.N
	}
	return last, nil
}

// answer lets the batch's answers out once watchers have seen the term's last edit: an
// answer without records rests on what was decided before it, too.
func (r *Runner) answer(l *leadership, batch []*pending, last journal.Number) {
	r.mu.Lock()
	if r.mu.lead != l {
		r.mu.Unlock()
		for _, p := range batch {
			p.done <- result{err: notController(nil)}
		}
		return
	}
	l.last = max(l.last, last)
	atOnce := l.last <= r.mu.told
	if !atOnce {
		for _, p := range batch {
			r.mu.waits = append(r.mu.waits, wait{l.last, p.finish})
		}
	}
	r.mu.Unlock()
	if atOnce {
		for _, p := range batch {
			p.finish(nil)
		}
	}
}

func (p *pending) finish(err error) {
	if err != nil {
		p.done <- result{err: err}
		return
	}
	p.done <- result{answer: p.out.Answer}
}
