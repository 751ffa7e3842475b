package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"varve/broker/kafka"
)

// A State is what a chain folds to at one version. It is a value: the verbs return
// new ones and share what did not change; nobody writes into its slices.
type State struct {
	Number     int64        `json:"-"`
	ID         string       `json:"-"`
	Writer     Writer       `json:"-"`
	LogStart   kafka.Offset `json:"logStart"`
	LastStable kafka.Offset `json:"lastStable"`
	Lineage    Lineage      `json:"lineage"`
	Gaps       []Gap        `json:"gaps,omitempty"`     // by start
	Live       []Segment    `json:"live"`               // by base
	Deleting   []Segment    `json:"deleting,omitempty"` // in order of DeletedAt
	Deleted    bool         `json:"deleted,omitempty"`
}

func byBase(a, b Segment) int {
	return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(b.End, a.End), cmp.Compare(a.ID, b.ID))
}

// Next builds the version after s that does c. The caller gives the version's uuid
// and the time; it holds the whole state where it must or the state is small.
func (s State) Next(w Writer, id string, timeMs int64, c Change) (Version, error) {
	v := Version{Number: s.Number + 1, ID: id, Previous: s.ID, Time: timeMs, Writer: w, Change: c}
	after, err := s.Apply(v)
	if err != nil {
		return v, err
	}
	if IsCheckpoint(v.Number) || after.small() {
		v.Whole = &after
	}
	return v, nil
}

// small estimates whether the whole state fits WholeMax: about 400 bytes of JSON a
// segment, 20 an epoch or gap.
func (s *State) small() bool {
	n := 20 * (len(s.Lineage) + len(s.Gaps))
	for _, segs := range [][]Segment{s.Live, s.Deleting} {
		for i := range segs {
			n += 400 + 20*len(segs[i].Epochs)
		}
	}
	return n <= WholeMax
}

// Apply folds a version on its predecessor. A whole version needs no predecessor:
// on the zero State it stands for all before it.
func (s State) Apply(v Version) (State, error) {
	if v.Whole != nil && s.Number == 0 {
		return *v.Whole, nil
	}
	if v.Number != s.Number+1 || v.Previous != s.ID {
		return s, fmt.Errorf("version %d (after %s) does not follow version %d (%s)", v.Number, v.Previous, s.Number, s.ID)
	}
	if s.Deleted {
		return s, fmt.Errorf("version %d follows version %d, which says that the topic is deleted", v.Number, s.Number)
	}
	c := &v.Change
	s.Number, s.ID, s.Writer, s.Deleted = v.Number, v.ID, v.Writer, c.Deleted
	s.LogStart = max(s.LogStart, c.LogStart)
	s.LastStable = max(s.LastStable, c.LastStable)
	if c.Lineage != nil {
		s.Lineage = c.Lineage
	}
	if err := s.move(c, v.Number); err != nil {
		return s, fmt.Errorf("version %d: %w", v.Number, err)
	}
	if len(c.Gaps) > 0 {
		s.Gaps = append(slices.Clone(s.Gaps), c.Gaps...)
		slices.SortFunc(s.Gaps, func(a, b Gap) int { return cmp.Compare(a.Start, b.Start) })
	}
	s.Gaps = slices.DeleteFunc(slices.Clone(s.Gaps), func(g Gap) bool { return g.End <= s.LogStart })
	return s, nil
}

// move takes segments along live, deleting, dropped. One that is in two lists, or
// twice in one, would lose its file while it is still read (Redpanda 9620).
func (s *State) move(c *Change, number int64) error {
	if len(c.Added)+len(c.Deleting)+len(c.Dropped) == 0 {
		return nil
	}
	live, deleting := slices.Clone(s.Live), slices.Clone(s.Deleting)
	for _, a := range c.Added {
		if named(live, a.ID) >= 0 || named(deleting, a.ID) >= 0 {
			return fmt.Errorf("segment %s is added a second time", a.ID)
		}
		live = append(live, a)
	}
	for _, id := range c.Deleting {
		i := named(live, id)
		if i < 0 {
			return fmt.Errorf("segment %s is to be deleted and is not live", id)
		}
		d := live[i]
		d.DeletedAt = number
		live, deleting = slices.Delete(live, i, i+1), append(deleting, d)
	}
	for _, id := range c.Dropped {
		i := named(deleting, id)
		if i < 0 {
			return fmt.Errorf("segment %s is dropped and was not deleting", id)
		}
		deleting = slices.Delete(deleting, i, i+1)
	}
	slices.SortFunc(live, byBase)
	s.Live, s.Deleting = live, deleting
	return nil
}

func named(segs []Segment, id string) int {
	return slices.IndexFunc(segs, func(s Segment) bool { return s.ID == id })
}

// IsLive tells whether the segment with that id is readable; Names whether its file
// is the chain's at all.
func (s *State) IsLive(id string) bool { return named(s.Live, id) >= 0 }

// Names tells whether a file of that id belongs to the chain: live or deleting.
func (s *State) Names(id string) bool { return s.IsLive(id) || named(s.Deleting, id) >= 0 }

// NextOffset is where the next container begins (T7): the end of the gap-free run of
// live segments of this lineage from the log start; recorded gaps count as covered
// (T5). It is the log start where nothing is covered.
func (s *State) NextOffset() kafka.Offset {
	next := s.LogStart
	for i, g := 0, 0; ; {
		switch {
		case g < len(s.Gaps) && s.Gaps[g].Start <= next:
			next = max(next, s.Gaps[g].End)
			g++
		case i < len(s.Live) && s.Live[i].Base <= next:
			if s.Live[i].Next() > next && s.Lineage.Holds(&s.Live[i]) {
				next = s.Live[i].Next()
			}
			i++
		default:
			return next
		}
	}
}

// HighestTiered is the last offset of the gap-free run, -1 where there is none: what
// followers are told and ListOffsets -5 answers.
func (s *State) HighestTiered() kafka.Offset {
	if next := s.NextOffset(); next > s.LogStart {
		return next - 1
	}
	return kafka.NoOffset
}

// Find is the live segment of this lineage that holds offset o; of several, the one
// that reaches furthest (tiering 2.8).
func (s *State) Find(o kafka.Offset) (Segment, bool) {
	if o < s.LogStart {
		return Segment{}, false
	}
	best := -1
	// Live is sorted by base: none after the first base above o can hold it. In one
	// lineage segments overlap only after a lost roll, so the look back is short: it
	// goes on past the first hit while there may be a longer one.
	for i := sort.Search(len(s.Live), func(i int) bool { return s.Live[i].Base > o }) - 1; i >= 0; i-- {
		if !s.Live[i].Contains(o) {
			if best >= 0 {
				break
			}
			continue
		}
		if (best < 0 || s.Live[i].End > s.Live[best].End) && s.Lineage.Holds(&s.Live[i]) {
			best = i
		}
	}
	if best < 0 {
		return Segment{}, false
	}
	return s.Live[best], true
}

// ErrFenced is the kind of a FencedError.
var ErrFenced = errors.New("another writer has the chain")

// A FencedError says whose chain it is now.
type FencedError struct{ Mine, Theirs Writer }

func (e *FencedError) Error() string {
	return fmt.Sprintf("the chain is %s's, this is %s", e.Theirs, e.Mine)
}

// Unwrap makes errors.Is(err, ErrFenced) true.
func (e *FencedError) Unwrap() error { return ErrFenced }

// ErrDeleted: the chain ends with the version that says that the topic is deleted (T14).
var ErrDeleted = errors.New("the topic is deleted")

// MayLead tells whether w may take the chain over: its leader epoch is above the
// newest version's, or it is the same writer again (T13).
func (s *State) MayLead(w Writer) error {
	switch {
	case s.Deleted:
		return ErrDeleted
	case s.Number == 0 || w.LeaderEpoch > s.Writer.LeaderEpoch || w == s.Writer:
		return nil
	}
	return &FencedError{Mine: w, Theirs: s.Writer}
}

// MayWrite tells whether the chain is still w's after its fence version.
func (s *State) MayWrite(w Writer) error {
	switch {
	case s.Deleted:
		return ErrDeleted
	case w == s.Writer:
		return nil
	}
	return &FencedError{Mine: w, Theirs: s.Writer}
}
