package faulty

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"varve/tier"
)

// An Op is a kind of call.
type Op int

// The kinds of calls. Write, Complete (Writer.Close) and Read are calls on an open
// file; MkdirAll is Mkdir.
const (
	Any Op = iota
	Create
	Write
	Complete
	Open
	Read
	Rename
	Delete
	DeleteAll
	Mkdir
	Stat
	List
	Replicas
)

// A Fault hits calls and says what becomes of them. It waits first (Delay, Hold),
// then the error comes, before the effect or after it.
type Fault struct {
	Op    Op     // Any: every call
	Name  string // part of the name (of a rename: of the source); "": every name
	To    string // part of what is being done, as "to manifest/" of a rename; "": all
	Skip  int    // that many calls pass first
	Times int    // then it hits that many; 0: for ever

	Delay time.Duration   // the call takes that long, or until its context ends
	Hold  <-chan struct{} // the call waits until this is closed, or its context ends

	Err   error // what the call answers; nil: it goes on as if nothing was
	After bool  // the effect has happened when Err is answered: a lost reply
	Late  bool  // Err is answered now, the effect lands with Land

	// Cut, with Err and Op Write: so many bytes of the file are kept. With Op Read:
	// the call returns so many bytes with Err.
	Cut int
}

// Inject adds a fault; what it returns takes the fault away.
func (s *Store) Inject(f Fault) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := &f
	s.mu.faults = append(s.mu.faults, own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.faults = slices.DeleteFunc(s.mu.faults, func(x *Fault) bool { return x == own })
	}
}

// Heal takes every fault away and brings the store back. Late effects stay.
func (s *Store) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults, s.mu.away = nil, false
}

// SetAway makes every call fail with ErrUnavailable, or stops that.
func (s *Store) SetAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.away = away
}

// Land lets the effects that are late happen, in their order, and tells how many
// there were. What has become impossible (source gone, target there) does nothing.
func (s *Store) Land() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.mu.late)
	for _, effect := range s.mu.late {
		effect()
	}
	s.mu.late = nil
	return n
}

// Calls tells how many calls of a kind there were, failed ones too.
func (s *Store) Calls(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.calls[op]
}

// do runs one call: the effect under the lock, with the fault that hits it around.
func (s *Store) do(ctx context.Context, op Op, name, doing string, effect func() error) error {
	if err := tier.CheckName(name); err != nil {
		return fmt.Errorf("%s in %s: %w", doing, s.URL(), err)
	}
	f, err := s.enter(ctx, op, name, doing)
	if err != nil {
		return s.fail(doing, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f.Err == nil:
		err = effect()
	case f.Late:
		s.mu.late = append(s.mu.late, func() { effect() })
		err = f.Err
	case f.After:
		err = errors.Join(f.Err, effect())
	default:
		err = f.Err
	}
	if err != nil {
		return s.fail(doing, err)
	}
	return nil
}

// enter counts the call, finds the fault that hits it and waits as it says.
func (s *Store) enter(ctx context.Context, op Op, name, doing string) (Fault, error) {
	s.mu.Lock()
	s.mu.calls[op]++
	f, away := s.hitLocked(op, name, doing), s.mu.away
	s.mu.Unlock()
	if err := wait(ctx, f); err != nil {
		return f, fmt.Errorf("%w: %w", tier.ErrUnavailable, err)
	}
	if away {
		return f, fmt.Errorf("%w: the store is away", tier.ErrUnavailable)
	}
	return f, nil
}

func (s *Store) hitLocked(op Op, name, doing string) Fault {
	for i, f := range s.mu.faults {
		if f.Op != Any && f.Op != op || !strings.Contains(name, f.Name) || !strings.Contains(doing, f.To) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		hit := *f
		if f.Times == 1 {
			s.mu.faults = slices.Delete(s.mu.faults, i, i+1)
		} else if f.Times > 0 {
			f.Times--
		}
		return hit
	}
	return Fault{}
}

func wait(ctx context.Context, f Fault) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (s *Store) fail(doing string, err error) error {
	return fmt.Errorf("%s in %s: %w", doing, s.URL(), err)
}
