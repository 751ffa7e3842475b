package chain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"varve/tier"
	"varve/tier/manifest"
)

// A Chain is a leader's hold on a partition's chain: the state it last saw, and the
// attempt whose outcome it does not know. One goroutine uses it at a time.
type Chain struct {
	Folder
	Writer manifest.Writer
	State  manifest.State
	// Written is the store's time of the last version of ours, as listed right after
	// it was published (T10); zero before.
	Written time.Time

	unsettled []string // sources of renames that may still land
}

// Load brings State up to date, after settling what is unsettled.
func (c *Chain) Load(ctx context.Context) error {
	if err := c.Settle(ctx); err != nil {
		return err
	}
	s, err := c.Folder.Load(ctx)
	if err == nil {
		c.State = s
	}
	return err
}

// Unsettled tells whether an attempt may still land: nothing may be deleted that it
// names (T1).
func (c *Chain) Unsettled() bool { return len(c.unsettled) > 0 }

// Settle takes the sources of unsettled renames away.
func (c *Chain) Settle(ctx context.Context) error {
	for len(c.unsettled) > 0 {
		if err := c.Store.Delete(ctx, c.unsettled[0]); err != nil {
			return fmt.Errorf("settling %s: %w", c.unsettled[0], err)
		}
		c.unsettled = c.unsettled[1:]
	}
	return nil
}

// A ChangeFunc computes a change from the newest state, each time anew (§3-10); ok is
// false when there is nothing to do (any more).
type ChangeFunc func(s *manifest.State) (c manifest.Change, ok bool)

// Fence makes the folders and commits the first version of this leader (T13).
func (c *Chain) Fence(ctx context.Context, change ChangeFunc) error {
	if err := c.Load(ctx); err != nil {
		return err
	}
	if err := c.State.MayLead(c.Writer); err != nil {
		return err
	}
	if err := c.Make(ctx); err != nil {
		return err
	}
	return c.commit(ctx, change, (*manifest.State).MayLead)
}

// Commit publishes change. On nil error State holds it, or it was not needed. An error
// that is ErrUnsettled leaves the outcome open: Load, then ask State.
func (c *Chain) Commit(ctx context.Context, change ChangeFunc) error {
	if c.Unsettled() {
		if err := c.Load(ctx); err != nil {
			return err
		}
	}
	if err := c.State.MayWrite(c.Writer); err != nil {
		return err
	}
	return c.commit(ctx, change, (*manifest.State).MayWrite)
}

// commitTries bounds the races that one commit runs.
const commitTries = 16

func (c *Chain) commit(ctx context.Context, change ChangeFunc, may func(*manifest.State, manifest.Writer) error) error {
	for range commitTries {
		ch, ok := change(&c.State)
		if !ok {
			return nil
		}
		v, err := c.State.Next(c.Writer, NewID(), time.Now().UnixMilli(), ch)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
		done, err := c.publish(ctx, v)
		if done || err != nil {
			return err
		}
		// Lost the race, or overtaken: the chain says what counts.
		if err := c.Load(ctx); err != nil {
			return err
		}
		if c.State.ID == v.ID {
			return nil
		}
		if err := may(&c.State, c.Writer); err != nil {
			return err
		}
	}
	return fmt.Errorf("committing to %s: no outcome after %d tries: %w", c.Path, commitTries, tier.ErrUnavailable)
}

// publish tries one version; done is true when it counts.
func (c *Chain) publish(ctx context.Context, v manifest.Version) (done bool, err error) {
	source := c.Progress(manifest.ProgressName{Number: v.Number, LeaderEpoch: c.Writer.LeaderEpoch, Broker: c.Writer.Broker, ID: v.ID, Manifest: true})
	if err := c.write(ctx, source, v.Encode()); err != nil {
		if errors.Is(err, tier.ErrNotFound) {
			return false, c.gone(ctx, err)
		}
		c.unsettled = append(c.unsettled, source) // not renamed, but to be cleaned up
		return false, err
	}
	err = c.Store.Rename(ctx, source, c.version(v.Number))
	switch {
	case errors.Is(err, tier.ErrExists), errors.Is(err, tier.ErrNotFound):
		c.unsettled = append(c.unsettled, source) // left over; also where a store answers so after a repeated call
		if errors.Is(err, tier.ErrNotFound) {
			return false, c.gone(ctx, err)
		}
		return false, nil
	case err != nil: // T1: it may have happened, and may still
		c.unsettled = append(c.unsettled, source)
		return false, nil
	}
	numbers, written, err := c.versions(ctx)
	if err != nil || len(numbers) == 0 {
		// It is there, but whether it counts only the chain can say.
		return false, nil
	}
	newest := numbers[len(numbers)-1]
	if !manifest.Counts(v.Number, newest) { // T2, T3: touch nothing
		return false, nil
	}
	if c.State, err = c.State.Apply(v); err != nil {
		panic(fmt.Sprintf("chain: version %d of %s was published and does not fold: %v", v.Number, c.Path, err))
	}
	if newest == v.Number {
		c.Written = written
	}
	return true, nil
}

// gone makes of "not found" what it means for a writer (§3-12): someone has the chain
// or took the folder away; neither mends by repeating.
func (c *Chain) gone(ctx context.Context, cause error) error {
	s, err := c.Folder.Load(ctx)
	if err != nil {
		return err
	}
	if err := s.MayWrite(c.Writer); err != nil && s.Number > 0 {
		return err
	}
	if s.Number == 0 {
		return fmt.Errorf("%s: %w (%w)", c.Path, manifest.ErrDeleted, cause)
	}
	return nil
}

// Prune removes versions that nobody needs, in ascending order, at most max of them.
func (c *Chain) Prune(ctx context.Context, pins []manifest.Pin, max int) error {
	numbers, _, err := c.versions(ctx)
	if err != nil {
		return err
	}
	old := manifest.Prunable(numbers, pins)
	for _, n := range old[:min(max, len(old))] {
		if err := c.Store.Delete(ctx, c.version(n)); err != nil {
			return err
		}
	}
	return nil
}

// End commits the last version of a chain, that of a deleted topic (T14). A chain that
// has ended, or whose folder is gone, has ended.
func (c *Chain) End(ctx context.Context) error {
	if err := c.Load(ctx); err != nil {
		return err
	}
	err := c.State.MayLead(c.Writer)
	if err == nil {
		err = c.commit(ctx, func(s *manifest.State) (manifest.Change, bool) {
			return manifest.TombstoneChange(), !s.Deleted
		}, (*manifest.State).MayLead)
	}
	if errors.Is(err, manifest.ErrDeleted) || errors.Is(err, tier.ErrNotFound) {
		return nil
	}
	return err
}
