// Package runner drives a controller and everybody's image over a journal.
//
//	Do ─► queue ─► appender: Machine.Step… ─► one append in flight ─┐
//	                                                                ▼
//	Watch ◄─ image ◄─ tailer: Read, Decode, Apply ◄────────────── journal
//	             └──────► answers of edits that are folded in
//
// The tailer is the only one who makes images, whether this process leads or not: a
// broker and its controller read the same committed image. What arrives while an append
// is under way goes into the next (A1). An answer leaves when the edits that it rests
// on are in the log and in the image, and watchers have seen them; one that needed no
// edit waits for a Check begun after the request came (A3). Any error of the term ends
// it: the Machine and its speculative image are dropped, and all that waits is answered
// NOT_CONTROLLER, which says "unknown", never "failed" (A2, A4).
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/ha/controller"
	"varve/ha/journal"
)

// Options of a Runner.
type Options struct {
	Who        string            // names this process in the log
	ClusterID  string            // of a cluster that begins with this runner
	Controller controller.Config // used while leading
	Log        *slog.Logger      // nil discards
	// SnapshotEdits and SnapshotBytes are how much of the log may lie after the last
	// snapshot; 0 is 1 000 edits, 8 MiB.
	SnapshotEdits int
	SnapshotBytes int64
	// Seen is an edit that this node has followed before: a log without it is another
	// history and refused (A11). Zero skips the check.
	Seen Position
	// Failed is called once, from a goroutine of its own, when the log cannot be followed
	// any further; nil is nobody.
	Failed func(error)
	// SteppedDown is called, likewise, whenever a term ends other than by Resign.
	SteppedDown func(error)
}

// A Position is an edit and the hash of its header.
type Position struct {
	N    journal.Number
	Hash [32]byte
}

// A published image and where in the log it is.
type published struct {
	image *metadata.Image
	at    Position
}

// A Runner follows a journal, and leads while it holds a term. It is safe for
// concurrent use.
type Runner struct {
	j     journal.Journal
	opt   Options
	now   atomic.Pointer[published]
	end   context.CancelFunc
	ctx   context.Context
	tasks sync.WaitGroup

	mu struct {
		sync.Mutex
		lead     *leadership    // nil while following
		waits    []wait         // answers that wait for watchers to see their edits
		told     journal.Number // the last edit that watchers have seen
		joining  []func(old, new *metadata.Image)
		moved    chan struct{} // closed and replaced when the image moves or the tailer ends
		failed   error
		saving   bool
		saved    journal.Number // last edit of the newest snapshot known of
		unsaved  int64          // bytes of payload after it
		watchers []func(old, new *metadata.Image)
	}
}

// A wait is an answer on its way out: after edit n is folded in, or at once on an end.
type wait struct {
	n    journal.Number
	done func(error)
}

// Start loads the newest snapshot, reads the log to its end and goes on following it
// until Close. It does not lead; see Lead.
func Start(ctx context.Context, j journal.Journal, o Options) (*Runner, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.SnapshotEdits == 0 {
		o.SnapshotEdits = 1000
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = 8 << 20
	}
	r := &Runner{j: j, opt: o}
	r.mu.moved = make(chan struct{})
	r.now.Store(&published{image: metadata.Empty()})
	if err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	r.ctx, r.end = context.WithCancel(context.Background())
	r.tasks.Go(r.tail)
	return r, nil
}

// Image is the committed image: the fold of the log as far as this process has read it.
func (r *Runner) Image() *metadata.Image { return r.now.Load().image }

// Position is the last edit in Image. A node keeps it now and then and gives it as
// Options.Seen when it starts again.
func (r *Runner) Position() Position { return r.now.Load().at }

// Watch calls f for every change of the committed image from now on, in order, each
// time with the image that f saw last; first, before Watch returns, with the empty
// image and the present one. Several edits may come as one change. f runs on the
// tailer: while it does, no image is published and no answer leaves, so it must not
// wait for Do or Watch.
func (r *Runner) Watch(f func(old, new *metadata.Image)) {
	joined := make(chan struct{})
	var once sync.Once
	first := func(old, new *metadata.Image) {
		f(old, new)
		once.Do(func() { close(joined) })
	}
	r.mu.Lock()
	r.mu.joining = append(r.mu.joining, first)
	r.poke()
	r.mu.Unlock()
	select {
	case <-joined:
	case <-r.ctx.Done():
	}
}

// Leading tells whether this runner holds a term, as far as it knows.
func (r *Runner) Leading() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.lead != nil
}

// Do has the controller decide req and returns its answer once it is true (A3). An
// error means that nothing is known: the request may have been carried out or not, and
// may be sent again. It is a *kafka.Error with NOT_CONTROLLER while not leading.
func (r *Runner) Do(ctx context.Context, req controller.Request) (controller.Answer, error) {
	p := &pending{req: req, done: make(chan result, 1)}
	r.mu.Lock()
	lead := r.mu.lead
	r.mu.Unlock()
	if lead == nil || !lead.push(p) {
		return nil, notController(nil)
	}
	select {
	case res := <-p.done:
		return res.answer, res.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// notController is the answer to whatever a term's end leaves undecided (A2).
func notController(cause error) *kafka.Error {
	if cause == nil {
		return kafka.Refuse(kafka.NotController, "This server is not the active controller.")
	}
	return kafka.Refuse(kafka.NotController, "The controller's term ended: %v", cause)
}

// Close resigns, stops following and waits for both. It does not close the journal.
func (r *Runner) Close() {
	r.Resign()
	r.end()
	r.tasks.Wait()
}

// catchUp makes the first image: snapshot, then edits to the end.
func (r *Runner) catchUp(ctx context.Context) error {
	if err := r.loadSnapshot(ctx); err != nil {
		return err
	}
	for {
		more, err := r.advance(ctx)
		if err != nil {
			return err
		}
		if !more {
			return r.checkSeen()
		}
	}
}

// checkSeen refuses a log that ends before what this node has followed (A11).
func (r *Runner) checkSeen() error {
	if end := r.Position().N; end < r.opt.Seen.N {
		return fmt.Errorf("metadata went back from edit %d to %d: the journal was restored from an older copy, or is another cluster's", r.opt.Seen.N, end)
	}
	return nil
}

func (r *Runner) loadSnapshot(ctx context.Context) error {
	s, err := r.j.LoadSnapshot(ctx)
	if err != nil {
		return fmt.Errorf("loading the metadata snapshot: %w", err)
	}
	if s.N == 0 {
		return nil
	}
	b, err := journal.Unpack(s.Image)
	if err != nil {
		return fmt.Errorf("unpacking the snapshot of edit %d: %w", s.N, err)
	}
	img, err := metadata.DecodeSnapshot(int64(s.N), b)
	if err != nil {
		return err
	}
	if err := r.checkHistory(Position{s.N, s.Hash}); err != nil {
		return err
	}
	r.now.Store(&published{img, Position{s.N, s.Hash}})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.saved, r.mu.unsaved = s.N, 0
	return nil
}

// checkHistory compares an edit with what this node saw at its number (A11).
func (r *Runner) checkHistory(at Position) error {
	if at.N == r.opt.Seen.N && at != r.opt.Seen {
		return fmt.Errorf("metadata has another history: edit %d is not the one this node followed before", at.N)
	}
	return nil
}

// stop ends the runner for good: the log cannot be followed.
func (r *Runner) stop(err error) {
	if errors.Is(err, context.Canceled) && r.ctx.Err() != nil {
		err = nil
	}
	r.stepDown(nil, err)
	r.mu.Lock()
	r.mu.failed = err
	if err == nil {
		r.mu.failed = context.Canceled
	}
	waits := r.mu.waits
	r.mu.waits = nil
	r.poke()
	r.mu.Unlock()
	for _, w := range waits {
		w.done(notController(err))
	}
	if err == nil {
		return
	}
	r.opt.Log.Error("metadata cannot be followed any further", "err", err, "edit", r.Position().N)
	if r.opt.Failed != nil {
		go r.opt.Failed(err)
	}
}

// poke wakes whoever waits for the image or for a joining watcher; under mu.
func (r *Runner) poke() {
	close(r.mu.moved)
	r.mu.moved = make(chan struct{})
}
