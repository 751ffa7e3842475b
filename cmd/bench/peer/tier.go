package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"varve/cmd/bench/load"
	"varve/cmd/e2e/servers"
)

// tierRoot is where Varve keeps its tier on the HDFS of these scenarios.
const tierRoot = "/varve"

// segments of 64 MiB: what one round writes is a dozen of them.
var segmented = map[string]string{"segment.bytes": "67108864"}

// remote switches a topic's tier on, without local copies for longer than need be.
var remote = map[string]string{"remote.storage.enable": "true", "local.retention.bytes": "1"}

// remoteAndKept leaves the local copies where they are.
var remoteAndKept = map[string]string{"remote.storage.enable": "true"}

func with(configs ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range configs {
		maps.Copy(all, m)
	}
	return all
}

// onHDFS starts an HDFS and a Varve whose tier is there.
func onHDFS(ctx context.Context, s settings, run func(*servers.HDFS, *broker) error) error {
	h, err := servers.StartHDFS(ctx, servers.HDFSOptions{})
	if err != nil {
		return err
	}
	defer h.Close()
	b, err := startVarve(ctx, s, h.URL+tierRoot)
	if err != nil {
		return err
	}
	defer b.close()
	return run(h, b)
}

// offload compares copying closed segments with hadoop fs -put of the same
// files, then producing at 50 MB/s with and without offload.
func offload(ctx context.Context, s settings, t *table) error {
	return onHDFS(ctx, s, func(h *servers.HDFS, b *broker) error {
		var put, copied best
		for round := range s.rounds {
			to, err := b.topic(ctx, 1, segmented)
			if err != nil {
				return err
			}
			produce := load.Produce{Target: to, RecordBytes: 1024, BatchBytes: 128 << 10, Acks: 1, For: time.Minute, MaxBytes: s.maxMB << 20}
			if _, err := produce.Run(ctx); err != nil {
				return err
			}
			closed, size, err := closedSegments(b, to)
			if err != nil {
				return err
			}
			r, err := hadoopPut(ctx, h, closed, fmt.Sprintf("/put-%d", round), size)
			if err != nil {
				return err
			}
			put.take(0, r, round == 0)
			if r, err = offloadNow(ctx, h, b, to, size); err != nil {
				return err
			}
			copied.take(0, r, round == 0)
			if err := b.forget(ctx, to); err != nil {
				return err
			}
		}
		// Records are kilobytes here: a thousand a second are a megabyte.
		t.add("offload to HDFS, beside hadoop fs -put", "MB/s", put.rate[0]*1.024/1e3, copied.rate[0]*1.024/1e3, timesAtLeast(1.5))
		t.add("offload to HDFS, beside hadoop fs -put", "CPU s/GB", put.cpu[0]/1.024, copied.cpu[0]/1.024, timesAtMost(0.5))
		return producingMeanwhile(ctx, s, b, t)
	})
}

// closedSegments returns the log files of the topic's only partition, less the
// one that is being written.
func closedSegments(b *broker, t load.Target) (files []string, size int64, err error) {
	files, err = filepath.Glob(filepath.Join(b.dataDir, t.Topic+"-0", "*.log"))
	if err != nil {
		return nil, 0, err
	}
	if len(files) < 2 {
		return nil, 0, fmt.Errorf("%d log files of %s in %s: none is closed", len(files), t.Topic, b.dataDir)
	}
	slices.Sort(files)
	files = files[:len(files)-1]
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return nil, 0, err
		}
		size += info.Size()
	}
	return files, size, nil
}

func hadoopPut(ctx context.Context, h *servers.HDFS, files []string, to string, size int64) (load.Result, error) {
	if _, err := h.Shell(ctx, "-mkdir", to); err != nil {
		return load.Result{}, err
	}
	cmd := h.Command(ctx, servers.FsShell, append(append([]string{"-put"}, files...), to)...)
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return load.Result{}, fmt.Errorf("hadoop fs -put: %w\n%s", err, out)
	}
	r := load.Result{Records: size / 1024, Bytes: size, Elapsed: time.Since(begin),
		CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	_, err := h.Shell(ctx, "-rm", "-r", "-skipTrash", to)
	return r, err
}

// offloadNow switches the topic's tier on and waits until so many more bytes lie
// in HDFS.
func offloadNow(ctx context.Context, h *servers.HDFS, b *broker, t load.Target, size int64) (load.Result, error) {
	had, err := hdfsBytes(ctx, h)
	if err != nil {
		return load.Result{}, err
	}
	cpu, err := load.CPUOf(b.daemon.PID())
	if err != nil {
		return load.Result{}, err
	}
	begin := time.Now()
	if err := b.set(ctx, t, remoteAndKept); err != nil {
		return load.Result{}, err
	}
	err = until(ctx, 5*time.Minute, fmt.Sprintf("%d bytes in HDFS", size), func() (bool, error) {
		has, err := hdfsBytes(ctx, h)
		return has-had >= size, err
	})
	if err != nil {
		return load.Result{}, err
	}
	r := load.Result{Records: size / 1024, Bytes: size, Elapsed: time.Since(begin)}
	after, err := load.CPUOf(b.daemon.PID())
	r.CPU = after - cpu
	return r, err
}

// hdfsBytes is how much lies below the tier's root; 0 before it is there.
func hdfsBytes(ctx context.Context, h *servers.HDFS) (int64, error) {
	me, err := user.Current()
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, "GET", h.WebURL+tierRoot+"?op=GETCONTENTSUMMARY&user.name="+me.Username, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return 0, nil
	}
	var answer struct{ ContentSummary struct{ Length int64 } }
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("asking HDFS how much it holds: %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, fmt.Errorf("asking HDFS how much it holds: %w", err)
	}
	return answer.ContentSummary.Length, nil
}

// producingMeanwhile paces 50 MB/s into a topic without and one with a tier.
func producingMeanwhile(ctx context.Context, s settings, b *broker, t *table) error {
	var seen best
	var cores [2]float64
	for round := range s.rounds {
		for i, config := range []map[string]string{segmented, with(segmented, remote)} {
			to, err := b.topic(ctx, 1, config)
			if err != nil {
				return err
			}
			r, err := load.Produce{Target: to, RecordBytes: 1024, BatchBytes: 64 << 10, Acks: 1, Rate: 50e6 / 1024, For: 5 * s.length}.Run(ctx)
			if err != nil {
				return err
			}
			seen.take(i, r, round == 0)
			if round == 0 || r.Cores() < cores[i] {
				cores[i] = r.Cores()
			}
			if err := b.forget(ctx, to); err != nil {
				return err
			}
		}
	}
	t.add("produce at 50 MB/s: without (left), with offload (right)", "p99 ms", seen.p99[0], seen.p99[1], timesAtMost(1.25))
	t.add("offload at 50 MB/s, cores more than without", "cores", none, cores[1]-cores[0], atMost(1))
	return nil
}

// coldRead compares reading from the tier: Varve's on HDFS, Kafka's its own
// store of plain files; then Varve's second read with reading what is local.
func coldRead(ctx context.Context, s settings, t *table) error {
	kafka, err := startKafka(ctx, true)
	if err != nil {
		return err
	}
	defer kafka.close()
	return onHDFS(ctx, s, func(h *servers.HDFS, varve *broker) error {
		var cold, again, local [2]load.Result
		for i, b := range (pair{kafka, varve}) {
			if err := warm(ctx, s, b); err != nil {
				return err
			}
			if cold[i], again[i], err = readTwice(ctx, s, b, with(segmented, remote), true); err != nil {
				return fmt.Errorf("%s from its tier: %w", b.name, err)
			}
			if _, local[i], err = readTwice(ctx, s, b, segmented, false); err != nil {
				return fmt.Errorf("%s from local files: %w", b.name, err)
			}
		}
		t.add("first read from the tier, 1 KiB", "MB/s", cold[0].MBPerSecond(), cold[1].MBPerSecond(), timesAtLeast(0.8))
		t.add("first read from the tier, 1 KiB", "CPU s/million", cold[0].CPUPerMillion(), cold[1].CPUPerMillion(), timesAtMost(1))
		t.note("second read from the tier, 1 KiB", "MB/s", again[0].MBPerSecond(), again[1].MBPerSecond())
		t.add("Varve: local read (left), second read from the tier (right)", "MB/s", local[1].MBPerSecond(), again[1].MBPerSecond(), timesAtLeast(0.9))
		return nil
	})
}

// readTwice fills a topic, waits until only the segment that is being written is
// local, if that is wanted, and reads it twice.
func readTwice(ctx context.Context, s settings, b *broker, config map[string]string, gone bool) (first, second load.Result, err error) {
	t, err := b.topic(ctx, 1, config)
	if err != nil {
		return first, second, err
	}
	produce := load.Produce{Target: t, RecordBytes: 1024, BatchBytes: 128 << 10, Acks: 1, For: time.Minute, MaxBytes: s.maxMB << 20}
	if _, err := produce.Run(ctx); err != nil {
		return first, second, err
	}
	if gone {
		err := until(ctx, 5*time.Minute, "closed segments to go from local disk", func() (bool, error) {
			files, err := filepath.Glob(filepath.Join(b.dataDir, t.Topic+"-0", "*.log"))
			return len(files) == 1, err
		})
		if err != nil {
			return first, second, err
		}
	}
	read := load.Consume{Target: t}
	if first, err = read.Run(ctx); err != nil {
		return first, second, err
	}
	if second, err = read.Run(ctx); err != nil {
		return first, second, err
	}
	return first, second, b.forget(ctx, t)
}

// until asks ten times a second.
func until(ctx context.Context, limit time.Duration, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if err := pass(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}
