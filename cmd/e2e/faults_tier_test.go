package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/e2e/servers"
)

// settled is a stopped broker whose topic cold lies in the tier but for its end, and how
// many records it has.
func settled(t *testing.T) (*servers.Varve, int64) {
	t.Helper()
	v := servers.VarveFor(t, servers.VarveOptions{Properties: restless})
	tieredTopic(t, admin(t, v), "cold", 1)
	records := fill(t, v)
	eventually(t, 30*time.Second, "the closed segments to settle", func(context.Context) error { return allSettled(t, v, v.TierDir) })
	if err := v.Stop(); err != nil {
		t.Fatal(err)
	}
	return v, records
}

// allSettled is nil when one segment is here and the others are in the tier.
func allSettled(t *testing.T, v *servers.Varve, tier string) error {
	local, err := filepath.Glob(filepath.Join(v.DataDir, "log", "cold-0", "*.log"))
	if found := containers(t, tier, "cold"); len(local) != 1 || len(found) < 5 {
		return fmt.Errorf("local %v, in the tier %v, %v", local, found, err)
	}
	return nil
}

// fill writes numbered records of 1 kB to the topic cold and tells how many.
func fill(t *testing.T, v *servers.Varve) (records int64) {
	t.Helper()
	cl := client(t, v.Addr, kgo.ProducerBatchCompression(kgo.NoCompression()))
	records = 6000
	pad := make([]byte, 1000)
	r := rand.NewChaCha8([32]byte{})
	for n := range records {
		r.Read(pad)
		cl.Produce(t.Context(), &kgo.Record{Topic: "cold", Value: append([]byte(strconv.FormatInt(n, 10)+" "), pad...)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return records
}

// firstOf is the first offset of a container, by its name.
func firstOf(t *testing.T, container string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(filepath.Base(container)[:20], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// read consumes from an offset until something comes to tell: records in order up to an
// offset, or an error of the partition.
func read(t *testing.T, addr string, from, to int64) (next int64, _ error) {
	t.Helper()
	cl := client(t, addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"cold": {0: kgo.NewOffset().At(from)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepRetryableFetchErrors())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for next = from; next < to; {
		fetches := cl.PollFetches(ctx)
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != next || identity(r) != strconv.FormatInt(next, 10) {
				t.Fatalf("offset %d with record %s came where %d was due", r.Offset, identity(r), next)
			}
			next++
		})
		if err := fetches.Err(); err != nil {
			return next, err
		}
	}
	return next, nil
}

// A container that is damaged is an error that names it: never a record left out, never
// an offset that is out of range. The others are served.
func TestADamagedContainerIsNamedAndTheOthersAreServed(t *testing.T) {
	v, records := settled(t)
	all := containers(t, v.TierDir, "cold")
	slices.Sort(all)
	victim, after := all[2], firstOf(t, all[3])
	whole, err := os.ReadFile(victim)
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(at int) []byte { b := bytes.Clone(whole); b[at] ^= 0x10; return b }
	for name, damaged := range map[string][]byte{"a bit of the log": flipped(len(whole) / 3), "a bit of the footer": flipped(len(whole) - 60),
		"cut": whole[:len(whole)/2], "gone": nil} {
		t.Run(name, func(t *testing.T) {
			if err := os.Remove(victim); err != nil {
				t.Fatal(err)
			}
			if damaged != nil {
				if err := os.WriteFile(victim, damaged, 0o440); err != nil {
					t.Fatal(err)
				}
			}
			if err := v.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() {
				v.Stop()
				os.WriteFile(victim, whole, 0o640)
			}()
			if next, err := read(t, v.Addr, 0, records); next != firstOf(t, victim) || !errors.Is(err, kerr.KafkaStorageError) {
				t.Errorf("reading from the beginning ends at %d with %v, want %d and KAFKA_STORAGE_ERROR", next, err, firstOf(t, victim))
			}
			if next, err := read(t, v.Addr, after, records); next != records || err != nil {
				t.Errorf("reading behind it ends at %d with %v, want all up to %d", next, err, records)
			}
			if !strings.Contains(v.Tail(30), filepath.Base(victim)) {
				t.Errorf("the log does not name %s", filepath.Base(victim))
			}
		})
	}
}

// An empty folder is what a file system looks like that is not mounted.
func TestATierThatIsAwayIsWaitedForAndComesBack(t *testing.T) {
	v, records := settled(t)
	away := v.TierDir + ".away"
	if err := os.Rename(v.TierDir, away); err != nil {
		t.Fatal(err)
	}
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	cl := client(t, v.Addr)
	for n := range 4 { // the broker takes records, and has segments that are due
		r := &kgo.Record{Topic: "cold", Value: append([]byte(strconv.FormatInt(records+int64(n), 10)+" "), make([]byte, 900_000)...)}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if next, err := read(t, v.Addr, 0, 1); next != 0 || err == nil || errors.Is(err, kerr.OffsetOutOfRange) {
		t.Fatalf("reading what is away gives %d records and %v, want an error after which a client tries again", next, err)
	}
	eventually(t, 10*time.Second, "the log to say what to do", func(context.Context) error {
		if !strings.Contains(v.Tail(50), "is tier.url right") {
			return errors.New("it does not")
		}
		return nil
	})
	if found := containers(t, v.TierDir, "cold"); len(found) > 0 {
		t.Fatalf("%v were written to the wrong folder", found)
	}
	v.Kill()
	if err := errors.Join(os.RemoveAll(v.TierDir), os.Rename(away, v.TierDir)); err != nil {
		t.Fatal(err)
	}
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "all records", func(context.Context) error {
		next, err := read(t, v.Addr, 0, records+4)
		if next < records+4 {
			return fmt.Errorf("%d records of %d, %v", next, records+4, err)
		}
		return nil
	})
}

// A run without its tier must not make the tier forget.
func TestARunWithoutTheTierForgetsNothing(t *testing.T) {
	v, records := settled(t)
	without := servers.VarveFor(t, servers.VarveOptions{Properties: map[string]string{
		"log.dirs": v.DataDir + "/log", "metadata.log.dir": v.DataDir + "/metadata", "log.flush.offset.checkpoint.interval.ms": "100"},
		Tier: "none"})
	if next, err := read(t, without.Addr, 0, 1); next != 0 || err == nil || errors.Is(err, kerr.OffsetOutOfRange) {
		t.Fatalf("without the tier reading gives %d records and %v, want an error after which a client tries again", next, err)
	}
	if err := without.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next, err := read(t, v.Addr, 0, records); next != records {
		t.Fatalf("with it again %d records of %d, %v", next, records, err)
	}
}

func TestAFullTierKeepsRecordsHereUntilThereIsSpace(t *testing.T) {
	disk := smallDisk(t, "3m")
	tier := filepath.Join(disk, "tier")
	v := servers.VarveFor(t, servers.VarveOptions{Properties: restless, Tier: "file://" + tier})
	tieredTopic(t, admin(t, v), "cold", 1)
	records := fill(t, v)
	eventually(t, 20*time.Second, "the log to tell of the full tier", func(context.Context) error {
		if !strings.Contains(v.Tail(50), "no space left") {
			return errors.New("it does not")
		}
		return nil
	})
	if next, err := read(t, v.Addr, 0, records); next != records {
		t.Fatalf("with a full tier %d records of %d, %v", next, records, err)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=100m", disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, 30*time.Second, "the segments to settle", func(context.Context) error { return allSettled(t, v, tier) })
	if next, err := read(t, v.Addr, 0, records); next != records {
		t.Fatalf("with space again %d records of %d, %v", next, records, err)
	}
}
