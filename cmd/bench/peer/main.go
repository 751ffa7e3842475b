// Command peer measures Varve beside Kafka on this machine and prints a table:
// what each reached, their ratio, what was aimed at, and whether that was met.
//
//	peer -varve bin/varve                     all scenarios
//	peer -varve bin/varve -only produce,e2e   some of them
//	peer -list                                their names
//
// Kafka runs with the JVM flags that it recommends. Where both are under load
// they take turns, and each one's best round counts: what disturbs a shared
// machine only ever makes things worse. Memory is touched before the first
// run and deleted data is synced away between runs, because a page that the
// machine has never used, or a disk that is still writing, costs more than a
// broker does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are the flags.
type settings struct {
	varve   string        // binary
	rounds  int           // of each measurement; the best counts
	length  time.Duration // of a round under load
	warmUp  time.Duration // of load before the first round: a JVM needs 20 s
	maxMB   int64         // that one round may write
	sizes   []int         // numbers of partitions for starts and idle brokers
	waiting int           // fetches that wait at once
	conns   int           // clients that send one record a request
}

// scenario is one row of the list; run adds its measurements to the table.
type scenario struct {
	name, about string
	run         func(ctx context.Context, s settings, t *table) error
}

// scenarios in the order in which they run.
var scenarios = []scenario{
	{"produce", "rate and CPU of produce, acks=1, 100 B and 1 KiB, two batch sizes, 1 and 16 partitions", underLoad(produceMatrix)},
	{"connections", "many clients that send one record a request", underLoad(manyConnections)},
	{"consume", "reading back from page cache", underLoad(consumeFromMemory)},
	{"e2e", "latency from producer to consumer at a paced rate", underLoad(endToEnd)},
	{"start", "time to serve, memory and CPU at rest, by number of partitions", startAndRest},
	{"waits", "CPU of fetches that wait at the end of the log", underLoad(waitingFetches)},
	{"offload", "copying closed segments to HDFS, beside hadoop fs -put; producing meanwhile", offload},
	{"cold", "reading from the tier through the broker", coldRead},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var s settings
	flags := flag.NewFlagSet("peer", flag.ExitOnError)
	flags.StringVar(&s.varve, "varve", "bin/varve", "binary of Varve")
	flags.IntVar(&s.rounds, "rounds", 3, "rounds of each measurement; the best counts")
	flags.DurationVar(&s.length, "for", 4*time.Second, "length of a round under load")
	flags.DurationVar(&s.warmUp, "warm-up", 20*time.Second, "load on each before the first round")
	flags.Int64Var(&s.maxMB, "max-mb", 800, "most that one round writes; above it the disk is measured")
	flags.IntVar(&s.waiting, "waiting", 10_000, "fetches that wait at once")
	flags.IntVar(&s.conns, "conns", 1000, "clients that send one record a request")
	sizes := flags.String("sizes", "0,1000,10000", "numbers of partitions for starts and idle brokers")
	touch := flags.Int64("touch-mb", 4096, "memory to touch before the first run")
	only := flags.String("only", "", "scenarios, separated by commas; default all")
	list := flags.Bool("list", false, "list the scenarios and stop")
	flags.Parse(args)
	if *list {
		for _, sc := range scenarios {
			fmt.Printf("%-12s %s\n", sc.name, sc.about)
		}
		return nil
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	for _, field := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 0 {
			return fmt.Errorf("-sizes %s: want numbers of partitions, separated by commas", *sizes)
		}
		s.sizes = append(s.sizes, n)
	}
	if s.varve, err = filepath.Abs(s.varve); err != nil {
		return err
	}
	if _, err := os.Stat(s.varve); err != nil {
		return fmt.Errorf("the binary of Varve (make build): %w", err)
	}
	if err := touchMemory(*touch << 20); err != nil {
		return err
	}
	return measure(ctx, s, chosen)
}

func choose(only string) ([]scenario, error) {
	if only == "" {
		return scenarios, nil
	}
	var chosen []scenario
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(scenarios, func(sc scenario) bool { return sc.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q; -list names them", name)
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

// measure runs the scenarios. One that fails leaves its error for the end and
// the others their rows.
func measure(ctx context.Context, s settings, chosen []scenario) error {
	t := newTable(os.Stdout)
	var failed error
	for _, sc := range chosen {
		progress("%s: %s", sc.name, sc.about)
		if err := sc.run(ctx, s, t); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", sc.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	t.print()
	return failed
}

// progress says on stderr what is being done; the table goes to stdout.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
