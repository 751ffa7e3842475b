package runner

import (
	"context"
	"errors"
	"fmt"

	"varve/broker/metadata"
	"varve/ha/journal"
)

// readBytes is how much payload one read of the log asks for.
const readBytes = 4 << 20

// tail follows the log until the runner ends.
func (r *Runner) tail() {
	seen := metadata.Empty() // what watchers were told last
	for {
		seen = r.tell(seen)
		more, err := r.advance(r.ctx)
		if err == nil && !more {
			err = r.await()
		}
		if err != nil {
			r.stop(err)
			return
		}
	}
}

// advance reads edits behind the image and folds them in; more tells whether there
// were any.
func (r *Runner) advance(ctx context.Context) (more bool, _ error) {
	now := r.now.Load()
	edits, err := r.j.Read(ctx, now.at.N+1, readBytes)
	if errors.Is(err, journal.ErrTrimmed) { // A12
		before := now.at.N
		if err := r.loadSnapshot(ctx); err != nil {
			return false, err
		}
		if r.Position().N <= before {
			return false, fmt.Errorf("edit %d was trimmed and no snapshot covers it", before+1)
		}
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading edit %d: %w", now.at.N+1, err)
	}
	if len(edits) == 0 {
		return false, nil
	}
	next, size, err := r.fold(*now, edits)
	if err != nil {
		return false, err
	}
	r.now.Store(&next)
	r.mu.Lock()
	r.mu.unsaved += size
	r.mu.Unlock()
	return true, nil
}

// fold applies edits to an image, each after proof that it is the next (A1, A11).
func (r *Runner) fold(now published, edits []journal.Edit) (_ published, size int64, _ error) {
	for _, e := range edits {
		if e.N != now.at.N+1 {
			return now, 0, fmt.Errorf("%w: edit %d follows edit %d", journal.ErrDamaged, e.N, now.at.N)
		}
		if err := r.checkHistory(Position{e.N, e.Hash}); err != nil {
			return now, 0, err
		}
		b, err := journal.Unpack(e.Payload)
		if err != nil {
			return now, 0, fmt.Errorf("edit %d: %w", e.N, err)
		}
		records, err := metadata.Decode(b)
		if err != nil {
			return now, 0, fmt.Errorf("edit %d: %w", e.N, err)
		}
		now = published{now.image.Apply(int64(e.N), records), Position{e.N, e.Hash}}
		size += int64(len(e.Payload))
	}
	return now, size, nil
}

// tell shows watchers the present image, lets answers out and has a snapshot taken
// where one is due.
func (r *Runner) tell(seen *metadata.Image) *metadata.Image {
	now := r.now.Load()
	r.mu.Lock()
	watchers, joining := r.mu.watchers, r.mu.joining
	r.mu.joining = nil
	r.mu.watchers = append(watchers[:len(watchers):len(watchers)], joining...)
	r.mu.Unlock()
	if now.image != seen {
		for _, f := range watchers {
			f(seen, now.image)
		}
	}
	for _, f := range joining {
		f(metadata.Empty(), now.image)
	}
	r.mu.Lock()
	var out, stay []wait
	for _, w := range r.mu.waits {
		if w.n <= now.at.N {
			out = append(out, w)
		} else {
			stay = append(stay, w)
		}
	}
	r.mu.waits, r.mu.told = stay, now.at.N
	if now.image != seen {
		r.poke()
	}
	r.mu.Unlock()
	for _, w := range out {
		w.done(nil)
	}
	r.maybeSnapshot(*now)
	return now.image
}

// await returns when the log has an edit behind the image, or a watcher joins, or the
// runner ends (with an error).
func (r *Runner) await() error {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	next := r.Position().N + 1
	r.mu.Lock()
	moved, joining := r.mu.moved, len(r.mu.joining) > 0
	r.mu.Unlock()
	if joining {
		return nil
	}
	stop := make(chan struct{})
	go func() { // a joining watcher interrupts the wait
		defer close(stop)
		select {
		case <-moved:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := r.j.Wait(ctx, next)
	cancel()
	<-stop
	if err == nil || errors.Is(err, journal.ErrTrimmed) || ctx.Err() != nil && r.ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("waiting for edit %d: %w", next, err)
}

// maybeSnapshot has the image saved, beside everything else, when enough lies behind
// the last snapshot. It is the committed image (A4).
func (r *Runner) maybeSnapshot(now published) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lead := r.mu.lead
	due := int64(now.at.N-r.mu.saved) >= int64(r.opt.SnapshotEdits) || r.mu.unsaved >= r.opt.SnapshotBytes
	if lead == nil || !due || r.mu.saving {
		return
	}
	r.mu.saving = true
	size := r.mu.unsaved
	r.tasks.Go(func() {
		err := lead.term.SaveSnapshot(r.ctx, journal.Snapshot{
			N: now.at.N, Hash: now.at.Hash, Image: journal.Pack(now.image.EncodeSnapshot(nil)),
		})
		r.mu.Lock()
		r.mu.saving = false
		if err == nil {
			r.mu.saved = now.at.N
			r.mu.unsaved -= size
		}
		r.mu.Unlock()
		if err != nil && r.ctx.Err() == nil {
			r.stepDown(lead, fmt.Errorf("saving the snapshot of edit %d: %w", now.at.N, err))
		}
	})
}
