package main

import (
	"context"
	"fmt"
	"time"

	"varve/cmd/bench/load"
)

// atRest is what an idle broker with some partitions is measured by. Zero
// fields have no aim.
type atRest struct {
	start, afterKill float64 // seconds to serve
	memory           float64 // MB
	cpu              float64 // percent of a core
}

// aims by number of partitions.
var aims = map[int]atRest{
	0:      {start: 0.1, memory: 40},
	1000:   {start: 0.2, memory: 60, cpu: 0.5},
	10_000: {start: 0.5, afterKill: 2, memory: 90, cpu: 2},
}

// startAndRest measures each size with brokers of its own, one after the other:
// at rest, after a clean stop, and after a kill.
func startAndRest(ctx context.Context, s settings, t *table) error {
	for _, n := range s.sizes {
		var seen [2]atRest
		for i, start := range []func() (*broker, error){
			func() (*broker, error) { return startKafka(ctx, false) },
			func() (*broker, error) { return startVarve(ctx, s, "") },
		} {
			b, err := start()
			if err != nil {
				return err
			}
			seen[i], err = restOf(ctx, b, n)
			b.close()
			if err != nil {
				return fmt.Errorf("%s with %d partitions: %w", b.name, n, err)
			}
		}
		kafka, varve, aim := seen[0], seen[1], aims[n]
		t.aimed(fmt.Sprintf("start after a clean stop, %d partitions", n), "s", kafka.start, varve.start, aim.start)
		t.aimed(fmt.Sprintf("start after kill -9, %d partitions", n), "s", kafka.afterKill, varve.afterKill, aim.afterKill)
		t.aimed(fmt.Sprintf("memory at rest, %d partitions", n), "MB", kafka.memory, varve.memory, aim.memory)
		t.aimed(fmt.Sprintf("CPU at rest, %d partitions", n), "% of a core", kafka.cpu, varve.cpu, aim.cpu)
	}
	return nil
}

// aimed adds a measurement whose aim, if there is one, is a limit of Varve's.
func (t *table) aimed(what, unit string, kafka, varve, limit float64) {
	if limit == 0 {
		t.note(what, unit, kafka, varve)
		return
	}
	t.add(what, unit, kafka, varve, atMost(limit))
}

func restOf(ctx context.Context, b *broker, partitions int) (atRest, error) {
	var r atRest
	if err := fill(ctx, b, partitions); err != nil {
		return r, err
	}
	if err := b.daemon.Stop(); err != nil {
		return r, err
	}
	if err := b.restart(ctx); err != nil {
		return r, err
	}
	r.start = b.started.Seconds()
	if err := pass(ctx, 5*time.Second); err != nil { // what a start leaves to be done
		return r, err
	}
	const watched = 10 * time.Second
	before, err := load.CPUOf(b.daemon.PID())
	if err != nil {
		return r, err
	}
	if err := pass(ctx, watched); err != nil {
		return r, err
	}
	after, err := load.CPUOf(b.daemon.PID())
	if err != nil {
		return r, err
	}
	rss, err := load.RSSOf(b.daemon.PID())
	if err != nil {
		return r, err
	}
	r.cpu, r.memory = 100*float64(after-before)/float64(watched), float64(rss)/1e6
	b.daemon.Kill()
	if err := b.restart(ctx); err != nil {
		return r, err
	}
	r.afterKill = b.started.Seconds()
	return r, nil
}

// fill makes partitions, a thousand a topic, with one record in each: a
// partition that was never written to has nothing to open.
func fill(ctx context.Context, b *broker, partitions int) error {
	for left := partitions; left > 0; left -= 1000 {
		n := min(left, 1000)
		t, err := b.topic(ctx, n, nil)
		if err != nil {
			return err
		}
		once := load.Produce{Target: t, RecordBytes: 100, PerRequest: n, Conns: 1, InFlight: 1, Acks: 1, For: time.Minute, MaxBytes: 1}
		if _, err := once.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
