package main

import (
	"context"
	"fmt"
	"time"

	"varve/cmd/bench/load"
)

// underLoad makes a scenario of one that wants both brokers running and warm.
func underLoad(run func(context.Context, settings, pair, *table) error) func(context.Context, settings, *table) error {
	return func(ctx context.Context, s settings, t *table) error {
		p, err := startPair(ctx, s)
		if err != nil {
			return err
		}
		defer p.close()
		for _, b := range p {
			if err := warm(ctx, s, b); err != nil {
				return fmt.Errorf("warming %s up: %w", b.name, err)
			}
		}
		return run(ctx, s, p, t)
	}
}

// warm lets a JVM compile what it will be measured by, in rounds that end
// before the disk has to write.
func warm(ctx context.Context, s settings, b *broker) error {
	for begin := time.Now(); time.Since(begin) < s.warmUp; {
		t, err := b.topic(ctx, 16, nil)
		if err != nil {
			return err
		}
		length := min(s.length, s.warmUp)
		produce := load.Produce{Target: t, RecordBytes: 100, BatchBytes: 16 << 10, Acks: 1, For: length, MaxBytes: s.maxMB << 20}
		if _, err := produce.Run(ctx); err != nil {
			return err
		}
		if _, err := (load.Consume{Target: t}).Run(ctx); err != nil {
			return err
		}
		if err := b.forget(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// best are each side's best values over the rounds.
type best struct {
	rate, cpu, p50, p99 [2]float64
}

// rounds lets both run in turn, each on a fresh topic, the first of a round
// being the second of the next.
func rounds(ctx context.Context, s settings, p pair, partitions int, run func(load.Target) (load.Result, error)) (best, error) {
	var b best
	for round := range s.rounds {
		for turn := range p {
			i := (round + turn) % len(p)
			t, err := p[i].topic(ctx, partitions, nil)
			if err != nil {
				return b, err
			}
			r, err := run(t)
			if err != nil {
				return b, fmt.Errorf("%s: %w", p[i].name, err)
			}
			b.take(i, r, round == 0)
			if err := p[i].forget(ctx, t); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

func (b *best) take(i int, r load.Result, first bool) {
	if first {
		b.rate[i], b.cpu[i], b.p50[i], b.p99[i] = r.RecordsPerSecond(), r.CPUPerMillion(), ms(r.Latency.P50), ms(r.Latency.P99)
		return
	}
	b.rate[i] = max(b.rate[i], r.RecordsPerSecond())
	b.cpu[i] = min(b.cpu[i], r.CPUPerMillion())
	b.p50[i] = min(b.p50[i], ms(r.Latency.P50))
	b.p99[i] = min(b.p99[i], ms(r.Latency.P99))
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

func produceMatrix(ctx context.Context, s settings, p pair, t *table) error {
	for _, batch := range []int{16 << 10, 128 << 10} {
		rate, cpu := timesAtLeast(3), timesAtMost(1.0/4)
		if batch > 16<<10 {
			rate, cpu = timesAtLeast(2.5), timesAtMost(1.0/3)
		}
		for _, record := range []int{100, 1024} {
			for _, partitions := range []int{1, 16} {
				what := fmt.Sprintf("produce %d B, %d KiB batches, %d partitions", record, batch>>10, partitions)
				b, err := rounds(ctx, s, p, partitions, func(to load.Target) (load.Result, error) {
					return load.Produce{Target: to, RecordBytes: record, BatchBytes: batch, Acks: 1, For: s.length, MaxBytes: s.maxMB << 20}.Run(ctx)
				})
				if err != nil {
					return err
				}
				t.add(what, "k records/s", b.rate[0]/1e3, b.rate[1]/1e3, rate)
				t.add(what, "CPU s/million", b.cpu[0], b.cpu[1], cpu)
				t.note(what, "p99 ms", b.p99[0], b.p99[1])
			}
		}
	}
	return noteMemory(p, t, "memory after the produce runs")
}

// noteMemory compares what both hold now.
func noteMemory(p pair, t *table, what string) error {
	var mb [2]float64
	for i, b := range p {
		rss, err := load.RSSOf(b.daemon.PID())
		if err != nil {
			return err
		}
		mb[i] = float64(rss) / 1e6
	}
	t.add(what, "MB", mb[0], mb[1], atMost(200))
	return nil
}

func manyConnections(ctx context.Context, s settings, p pair, t *table) error {
	var memory [2]float64
	i := 0
	b, err := rounds(ctx, s, p, 16, func(to load.Target) (load.Result, error) {
		r, err := load.Connections{Target: to, Conns: s.conns, RecordBytes: 100, For: s.length}.Run(ctx)
		side := 0
		if to.Addr == p[1].addr {
			side = 1
		}
		// only the first crowd finds the broker small: memory is not given back
		if i < len(p) {
			memory[side] = float64(r.RSSPerConn) / 1e3
		}
		i++
		return r.Result, err
	})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d connections, one record a request", s.conns)
	t.add(what, "k records/s", b.rate[0]/1e3, b.rate[1]/1e3, timesAtLeast(4))
	t.add(what, "CPU s/million", b.cpu[0], b.cpu[1], timesAtMost(1.0/6))
	t.add(what, "kB a connection", memory[0], memory[1], atMost(30))
	return nil
}

func consumeFromMemory(ctx context.Context, s settings, p pair, t *table) error {
	for _, record := range []int{100, 1024} {
		what := fmt.Sprintf("consume %d B from page cache", record)
		b, err := rounds(ctx, s, p, 1, func(from load.Target) (load.Result, error) {
			produce := load.Produce{Target: from, RecordBytes: record, BatchBytes: 64 << 10, Acks: 1, For: time.Minute, MaxBytes: s.maxMB << 20}
			if r, err := produce.Run(ctx); err != nil {
				return r, err
			}
			return load.Consume{Target: from}.Run(ctx)
		})
		if err != nil {
			return err
		}
		t.add(what, "k records/s", b.rate[0]/1e3, b.rate[1]/1e3, timesAtLeast(1))
		t.add(what, "CPU s/million", b.cpu[0], b.cpu[1], timesAtMost(1))
	}
	return noteMemory(p, t, "memory after the consume runs")
}

func endToEnd(ctx context.Context, s settings, p pair, t *table) error {
	for _, at := range []struct {
		rate  float64
		batch int
	}{{50_000, 4 << 10}, {200_000, 16 << 10}} {
		what := fmt.Sprintf("end to end, 100 B at %.0f k records/s", at.rate/1e3)
		b, err := rounds(ctx, s, p, 1, func(to load.Target) (load.Result, error) {
			return load.EndToEnd{Target: to, RecordBytes: 100, BatchBytes: at.batch, Rate: at.rate, For: 2 * s.length}.Run(ctx)
		})
		if err != nil {
			return err
		}
		t.add(what, "p50 ms", b.p50[0], b.p50[1], timesAtMost(2.0/3))
		t.add(what, "p99 ms", b.p99[0], b.p99[1], timesAtMost(1.0/3))
		t.add(what, "CPU s/million", b.cpu[0], b.cpu[1], timesAtMost(1.0/2))
	}
	return nil
}

func waitingFetches(ctx context.Context, s settings, p pair, t *table) error {
	var cores [2]float64
	for i, b := range p {
		to, err := b.topic(ctx, 16, nil)
		if err != nil {
			return err
		}
		r, err := load.Waits{Target: to, Conns: s.waiting, For: 10 * time.Second}.Run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		cores[i] = 100 * r.Cores()
	}
	t.add(fmt.Sprintf("%d waiting fetches", s.waiting), "% of a core", cores[0], cores[1], atMost(5))
	return nil
}
