package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A history is what clients were told while a broker was tormented: what it
// acknowledged, and what it showed. Records of a key are numbered from 0, so that a
// lost, a doubled or a moved one shows by its number alone.
type history struct {
	topic string
	mu    struct {
		sync.Mutex
		acked map[string]int             // by key: how many, from 0 on
		shown map[int32]map[int64]string // by partition and offset
		err   error                      // the first broken promise
		done  int                        // records acknowledged in all
	}
}

func newHistory(topic string) *history {
	h := &history{topic: topic}
	h.mu.acked, h.mu.shown = map[string]int{}, map[int32]map[int64]string{}
	return h
}

func (h *history) broken(format string, args ...any) {
	if h.mu.err == nil {
		h.mu.err = fmt.Errorf(format, args...)
	}
}

// acknowledged takes note of an answer to a produce.
func (h *history) acknowledged(r *kgo.Record, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.broken("record %s was refused: %w", identity(r), err)
		return
	}
	key := string(r.Key)
	if n := h.mu.acked[key]; identity(r) != name(key, n) {
		h.broken("%s was acknowledged behind %s", identity(r), name(key, n-1))
	}
	h.mu.acked[key]++
	h.mu.done++
}

// show takes note of a record that a consumer saw: an offset holds one record, for
// ever.
func (h *history) show(r *kgo.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	part := h.mu.shown[r.Partition]
	if part == nil {
		part = map[int64]string{}
		h.mu.shown[r.Partition] = part
	}
	if was, ok := part[r.Offset]; ok && was != identity(r) {
		h.broken("offset %d of partition %d showed %s, and now %s", r.Offset, r.Partition, was, identity(r))
	}
	part[r.Offset] = identity(r)
}

// acknowledgedSoFar counts the records that are promised.
func (h *history) acknowledgedSoFar() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.done
}

// identity is what a record's value begins with: key and number.
func identity(r *kgo.Record) string {
	id, _, _ := strings.Cut(string(r.Value), " ")
	return id
}

func name(key string, n int) string { return key + ":" + strconv.Itoa(n) }

// produce writes records of eight keys, padded to size, until ctx ends; then it waits
// for what is under way. One record in flight per key would prove less: the client
// pipelines five batches.
func (h *history) produce(ctx context.Context, cl *kgo.Client, size int, pause time.Duration) error {
	pad := " " + strings.Repeat("x", size)
	for n := 0; ctx.Err() == nil; n++ {
		for k := range 8 {
			key := "k" + strconv.Itoa(k)
			cl.Produce(context.Background(), &kgo.Record{Topic: h.topic, Key: []byte(key), Value: []byte(name(key, n) + pad)}, h.acknowledged)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	flush, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return cl.Flush(flush)
}

// consume shows what it polls until ctx ends.
func (h *history) consume(ctx context.Context, cl *kgo.Client) {
	for ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(h.show)
	}
}

// check reads the topic from its beginning to its end and holds it to the promises:
// every acknowledged record once and in order, and nothing shown that is gone.
func (h *history) check(t *testing.T, addr string, ends map[int32]int64) {
	t.Helper()
	read := h.readAll(t, addr, ends)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.err != nil {
		t.Fatal(h.mu.err)
	}
	next := map[string]int{}
	for p, end := range ends {
		for o := range end {
			id, ok := read[p][o]
			if !ok {
				t.Fatalf("offset %d of partition %d is below the end %d and was not read", o, p, end)
			}
			key, _, _ := strings.Cut(id, ":")
			if want := name(key, next[key]); id != want {
				t.Fatalf("partition %d offset %d holds %s, want %s: a record is lost, doubled or moved", p, o, id, want)
			}
			next[key]++
		}
	}
	for key, acked := range h.mu.acked {
		if next[key] < acked {
			t.Errorf("%d records of %s were acknowledged, %d are there", acked, key, next[key])
		}
	}
	for p, part := range h.mu.shown {
		for o, id := range part {
			if read[p][o] != id {
				t.Fatalf("partition %d showed %s at offset %d, where %q is now", p, id, o, read[p][o])
			}
		}
	}
	if h.mu.done == 0 {
		t.Fatal("no record was acknowledged")
	}
}

// readAll reads up to ends with a consumer of its own, which never resets.
func (h *history) readAll(t *testing.T, addr string, ends map[int32]int64) map[int32]map[int64]string {
	t.Helper()
	at := map[int32]kgo.Offset{}
	left := 0
	for p, end := range ends {
		at[p] = kgo.NewOffset().At(0)
		if end > 0 {
			left++
		}
	}
	cl := client(t, addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{h.topic: at}), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read := map[int32]map[int64]string{}
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("reading it all again: %v", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if read[r.Partition] == nil {
				read[r.Partition] = map[int64]string{}
			}
			if _, ok := read[r.Partition][r.Offset]; ok {
				t.Fatalf("offset %d of partition %d came twice", r.Offset, r.Partition)
			}
			read[r.Partition][r.Offset] = identity(r)
			if r.Offset == ends[r.Partition]-1 {
				left--
			}
		})
	}
	return read
}

// client is a franz-go client that ends with the test and repeats for as long as it
// takes.
func client(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(addr), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.MetadataMaxAge(time.Second), kgo.UnknownTopicRetries(-1),
		kgo.DialTimeout(time.Second), kgo.RequestTimeoutOverhead(2 * time.Second),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// eventually asks until done is nil; the last refusal is the failure.
func eventually(t *testing.T, within time.Duration, what string, done func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	last := errors.New("never asked")
	for {
		if err := done(ctx); err == nil {
			return
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, within, last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
