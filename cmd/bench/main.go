// Command bench puts one kind of load on a broker and says what it saw: rate,
// latency, and the CPU and memory of the broker's processes.
//
//	bench produce     -addr 127.0.0.1:9092 -topic t -partitions 16 -record 100 -batch 16384 -for 10s -pid PID
//	bench consume     -addr … -topic t -partitions 16 -pid PID
//	bench e2e         -addr … -topic t -record 100 -batch 4096 -rate 50000 -for 20s -pid PID
//	bench connections -addr … -topic t -conns 1000 -record 100 -for 10s -pid PID
//	bench waits       -addr … -topic t -conns 5000 -for 10s -pid PID
//
// The topic must exist. Beside it, bench/peer puts the same loads on a Kafka and
// a Varve in turn and prints the ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"varve/cmd/bench/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const usage = "usage: bench produce|consume|e2e|connections|waits [flags]; bench produce -help lists them"

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	var (
		flags   = flag.NewFlagSet("bench "+args[0], flag.ExitOnError)
		addr    = flags.String("addr", "127.0.0.1:9092", "broker that leads every partition of the topic")
		topic   = flags.String("topic", "bench", "topic; must exist")
		parts   = flags.Int("partitions", 1, "partitions that take part, from 0")
		record  = flags.Int("record", 100, "bytes in a record's value")
		batch   = flags.Int("batch", 16384, "bytes in a batch, about")
		perReq  = flags.Int("per-request", 1, "partitions that a produce request carries")
		conns   = flags.Int("conns", 2, "connections")
		flight  = flags.Int("inflight", 5, "produce requests in flight on a connection")
		acks    = flags.Int("acks", 1, "0, 1 or -1")
		rate    = flags.Float64("rate", 0, "records per second; 0 is as fast as possible")
		length  = flags.Duration("for", 10*time.Second, "how long")
		atMost  = flags.Int64("max-bytes", 0, "produce at most so many bytes; 0 is no bound")
		pidList = flags.String("pid", "", "the broker's process ids, separated by commas")
	)
	flags.Parse(args[1:])
	pids, err := parsePIDs(*pidList)
	if err != nil {
		return err
	}
	t := load.Target{Addr: *addr, Topic: *topic, Partitions: *parts, PIDs: pids}
	var r load.Result
	extra := ""
	switch args[0] {
	case "produce":
		r, err = load.Produce{Target: t, RecordBytes: *record, BatchBytes: *batch, PerRequest: *perReq, Conns: *conns,
			InFlight: *flight, Acks: int16(*acks), Rate: *rate, For: *length, MaxBytes: *atMost}.Run(ctx)
	case "consume":
		r, err = load.Consume{Target: t, Conns: *conns}.Run(ctx)
	case "e2e":
		r, err = load.EndToEnd{Target: t, RecordBytes: *record, BatchBytes: *batch, Rate: *rate, For: *length}.Run(ctx)
	case "connections":
		var c load.ConnectionsResult
		c, err = load.Connections{Target: t, Conns: *conns, RecordBytes: *record, For: *length}.Run(ctx)
		r, extra = c.Result, fmt.Sprintf(", %.1f kB a connection", float64(c.RSSPerConn)/1e3)
	case "waits":
		r, err = load.Waits{Target: t, Conns: *conns, For: *length}.Run(ctx)
	default:
		return fmt.Errorf("there is no load %q\n%s", args[0], usage)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	fmt.Println(args[0] + ": " + describe(r, len(pids) > 0) + extra)
	return nil
}

func parsePIDs(list string) ([]int, error) {
	var pids []int
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		pid, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("-pid %s: %w", list, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func describe(r load.Result, used bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records in %.2f s, %.0f records/s, %.1f MB/s", r.Records, r.Elapsed.Seconds(), r.RecordsPerSecond(), r.MBPerSecond())
	if used {
		fmt.Fprintf(&b, "; broker %.2f s of CPU (%.2f s a million records, %.1f %% of a core), %.0f MB",
			r.CPU.Seconds(), r.CPUPerMillion(), 100*r.Cores(), float64(r.RSS)/1e6)
	}
	if r.Latency.Max > 0 {
		fmt.Fprintf(&b, "; p50 %v, p99 %v, p99.9 %v, max %v", r.Latency.P50, r.Latency.P99, r.Latency.P999, r.Latency.Max)
	}
	return b.String()
}
