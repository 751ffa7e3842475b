// Command sim runs clusters of Varve's pure machines under seeds and checks the
// invariants after every step:
//
//	sim [-seeds N] [-from SEED] [-steps N] [-off RULE] [-v]
//
// With a rule (docs/non-obvious.md) switched off it prints the shortest history it finds
// that the rule prevents. The exit code is 1 when an invariant broke.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"varve/cmd/sim/cluster"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	seeds := flags.Uint64("seeds", 10_000, "how many seeds")
	from := flags.Uint64("from", 0, "the first seed")
	steps := flags.Int("steps", 4000, "steps of each")
	off := flags.String("off", "", fmt.Sprintf("the rule to switch off, of %v", cluster.Rules))
	verbose := flags.Bool("v", false, "print the history of every violation, not only the shortest")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	rule := cluster.Rule(*off)
	if rule != "" && !slices.Contains(cluster.Rules, rule) {
		fmt.Fprintf(stderr, "sim: no rule %q; there are %v\n", rule, cluster.Rules)
		return 2
	}
	return report(stdout, runAll(stdout, *from, *seeds, *steps, rule, *verbose))
}

// A broken seed is one that violated an invariant.
type broken struct {
	seed      uint64
	violation *cluster.Violation
	trace     []string
}

func runAll(w io.Writer, from, seeds uint64, steps int, rule cluster.Rule, verbose bool) []broken {
	start := time.Now()
	var sum cluster.Facts
	var out []broken
	for seed := from; seed < from+seeds; seed++ {
		world := cluster.New(seed, rule)
		f, v := world.Run(steps)
		sum.Steps += f.Steps
		sum.Edits += f.Edits
		sum.Revealed += f.Revealed
		sum.LeaderEpochs += f.LeaderEpochs
		if v == nil {
			continue
		}
		out = append(out, broken{seed, v, world.Trace()})
		if verbose {
			fmt.Fprintf(w, "seed %d:\n%s\n\n", seed, strings.Join(world.Trace(), "\n"))
		}
	}
	fmt.Fprintf(w, "%d seeds, rule off: %q: %d steps, %d edits, %d records revealed, %d leader epochs in %.1fs: %d violations\n",
		seeds, rule, sum.Steps, sum.Edits, sum.Revealed, sum.LeaderEpochs, time.Since(start).Seconds(), len(out))
	return out
}

// report prints the shortest history.
func report(w io.Writer, all []broken) int {
	if len(all) == 0 {
		return 0
	}
	b := slices.MinFunc(all, func(a, b broken) int { return len(a.trace) - len(b.trace) })
	fmt.Fprintf(w, "seed %d: %v\n  %s\n", b.seed, b.violation, strings.Join(b.trace, "\n  "))
	return 1
}
