package cluster

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var (
	seeds = flag.Int("seeds", 2000, "seeds of the run with all rules")
	steps = flag.Int("steps", 4000, "steps a seed")
)

// TestNoSeedBreaksAnInvariant is the cluster with all its rules.
func TestNoSeedBreaksAnInvariant(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = 200
	}
	var sum Facts
	for seed := range n {
		w := New(uint64(seed), "")
		f, v := w.Run(*steps)
		if v != nil {
			t.Fatalf("seed %d: %v\n%s", seed, v, strings.Join(w.Trace(), "\n"))
		}
		sum.Steps += f.Steps
		sum.Edits += f.Edits
		sum.Revealed += f.Revealed
		sum.LeaderEpochs += f.LeaderEpochs
	}
	t.Logf("%d seeds: %d steps, %d edits, %d records revealed, %d leader epochs", n, sum.Steps, sum.Edits, sum.Revealed, sum.LeaderEpochs)
	if sum.Revealed < n || sum.LeaderEpochs < n {
		t.Errorf("too little happens: %+v", sum)
	}
}

// TestEveryRuleIsNeeded switches each off and wants a history that it prevents.
func TestEveryRuleIsNeeded(t *testing.T) {
	const most = 6000
	hint := map[Rule]uint64{PositionHasItsEpoch: 4000} // rare: begin where one was found
	for _, rule := range Rules {
		t.Run(string(rule), func(t *testing.T) {
			for i := range uint64(most) {
				seed := hint[rule] + i
				w := New(seed, rule)
				if _, v := w.Run(4000); v != nil {
					t.Logf("seed %d: %v", seed, v)
					return
				}
			}
			t.Errorf("%d seeds break nothing without rule %s", most, rule)
		})
	}
}

// TestASeedAlwaysGivesTheSameRun.
func TestASeedAlwaysGivesTheSameRun(t *testing.T) {
	for seed := range uint64(20) {
		a, b := New(seed, ""), New(seed, "")
		a.Run(800)
		b.Run(800)
		if !slices.Equal(a.Trace(), b.Trace()) {
			t.Fatalf("seed %d has two histories", seed)
		}
	}
}
