package partition_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/vfs"
)

// codeOf is the code of a refusal, of the partition or of the records.
func codeOf(err error) kafka.Code {
	var e *kafka.Error
	var records *record.Refusal
	switch {
	case err == nil:
		return kafka.None
	case errors.As(err, &e):
		return e.Code
	case errors.As(err, &records):
		return records.Code
	}
	return kafka.UnknownServerError
}

// codes collects what waits are answered.
type codes struct {
	mu struct {
		sync.Mutex
		got []kafka.Code
	}
}

func (c *codes) done(code kafka.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.got = append(c.mu.got, code)
}

func (c *codes) want(t *testing.T, when string, want ...kafka.Code) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.mu.got, want) {
		t.Errorf("%s: answered %v, want %v", when, c.mu.got, want)
	}
}

func TestALeaderAloneRevealsWhatItAppends(t *testing.T) {
	r := led(t, settings())
	done, err := r.produce(-1, batch(3, 10, noon))
	if err != nil {
		t.Fatal(err)
	}
	if done.Base != 0 || done.Next != 3 || !done.Revealed || done.AppendTime != -1 {
		t.Errorf("appended: %+v", done)
	}
	wantOffset(t, "the high watermark", r.HighWatermark(), 3)
	var c codes
	r.Await(done.Next, c.done)
	c.want(t, "Await of what is revealed", kafka.None)
}

func TestWhoDoesNotLeadRefuses(t *testing.T) {
	r := rest(t, settings())
	_, err := r.produce(1, batch(1, 10, noon))
	wantCode(t, "append", err, kafka.NotLeaderOrFollower)
	var res partition.ReadResult
	wantCode(t, "read", r.Read(plain(0), &res), kafka.NotLeaderOrFollower)
	_, err = r.Locate(t.Context(), partition.Latest, kafka.NoEpoch, false)
	wantCode(t, "locate", err, kafka.NotLeaderOrFollower)
	_, err = r.EndOffsetFor(kafka.NoEpoch, 5)
	wantCode(t, "end of an epoch", err, kafka.NotLeaderOrFollower)
	var c codes
	r.Await(1, c.done)
	c.want(t, "await", kafka.NotLeaderOrFollower)
}

func TestAcksAreMinusOneToOne(t *testing.T) {
	r := led(t, settings())
	for _, acks := range []int16{-2, 2} {
		_, err := r.produce(acks, batch(1, 10, noon))
		wantCode(t, "acks", err, kafka.InvalidRequiredAcks)
	}
	wantOffset(t, "the log end", r.Log().End(), 0)
}

func TestTooFewInSyncRefuseAcksAllOnly(t *testing.T) {
	s := settings()
	s.MinISR = 2
	r := led(t, s)
	_, err := r.produce(-1, batch(1, 10, noon))
	wantCode(t, "acks=all", err, kafka.NotEnoughReplicas)
	wantOffset(t, "the log end", r.Log().End(), 0)
	done, err := r.produce(1, batch(1, 10, noon))
	wantCode(t, "acks=1", err, kafka.None)
	if done.Revealed {
		t.Error("revealed with fewer in sync than min.insync.replicas (A7)")
	}
	wantOffset(t, "the high watermark", r.HighWatermark(), 0)
}

// belowMinISR is a partition with one record that is not revealed: fewer replicas are
// in sync than the topic asks for.
func belowMinISR(t *testing.T) (*rig, kafka.Offset) {
	s := settings()
	s.MinISR = 2
	r := led(t, s)
	return r, r.put(batch(1, 10, noon)).Next
}

func TestALoweredMinISRRevealsAnswersAndWakes(t *testing.T) {
	r, next := belowMinISR(t)
	var c codes
	r.Await(next, c.done)
	c.want(t, "before")
	b := newBell()
	w := fresh(1, b)
	r.Watch(w, 0)
	w.Arm(1)
	r.Set(settings())
	c.want(t, "after min.insync.replicas is 1", kafka.None)
	wantOffset(t, "the high watermark", r.HighWatermark(), next)
	if n := b.wakes.Load(); n != 1 {
		t.Errorf("the watcher was woken %d times, want once", n)
	}
}

func TestResignAnswersEveryWaitOnce(t *testing.T) {
	r, next := belowMinISR(t)
	var c codes
	r.Await(next, c.done)
	r.Await(next+7, c.done)
	b := newBell()
	w := fresh(1, b)
	r.Watch(w, 0)
	w.Arm(1 << 30)
	r.Resign()
	r.Resign()
	c.want(t, "after Resign", kafka.NotLeaderOrFollower, kafka.NotLeaderOrFollower)
	if n := b.wakes.Load(); n != 1 {
		t.Errorf("the watcher was woken %d times, want once", n)
	}
	r.lead(6, nil)
	r.Set(settings())
	c.want(t, "in the next term", kafka.NotLeaderOrFollower, kafka.NotLeaderOrFollower)
}

// TestAwaitAndResignMeet has waits begin while the term ends: each is answered once,
// whichever comes first.
func TestAwaitAndResignMeet(t *testing.T) {
	for round := range 200 {
		r, next := belowMinISR(t)
		answers := make(chan kafka.Code, 8)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { r.Await(next, func(code kafka.Code) { answers <- code }) })
		}
		wg.Go(r.Resign)
		wg.Wait()
		if len(answers) != 4 {
			t.Fatalf("round %d: %d answers to 4 waits", round, len(answers))
		}
		for range 4 {
			if code := <-answers; code != kafka.NotLeaderOrFollower {
				t.Fatalf("round %d: answered %v", round, code)
			}
		}
	}
}

func TestLogAppendTimeIsTheBrokers(t *testing.T) {
	s := settings()
	s.Policy.LogAppendTime = true
	r := led(t, s)
	done := r.put(batch(2, 10, noon.Add(-time.Hour)))
	if done.AppendTime != noon.UnixMilli() {
		t.Errorf("the answer says %d, want %d", done.AppendTime, noon.UnixMilli())
	}
	bytes, _ := r.get(plain(0))
	b, _, err := record.Parse(bytes)
	if err != nil || !b.ValidCRC() || !b.LogAppendTime() || b.MaxTimestamp() != noon.UnixMilli() {
		t.Errorf("stored as %v (%v)", b, err)
	}
}

func TestARepeatedBatchIsAnsweredAsTheFirst(t *testing.T) {
	r := led(t, settings())
	w := record.Builder{Producer: &record.Producer{ID: 9}}
	w.Add(record.Record{Timestamp: noon.UnixMilli(), Value: []byte("once")})
	first := r.put(w.AppendTo(nil))
	r.put(batch(1, 10, noon))
	again := r.put(w.AppendTo(nil))
	if again.Base != first.Base || again.Next != first.Next || !again.Revealed {
		t.Errorf("first %+v, again %+v", first, again)
	}
	wantOffset(t, "the log end", r.Log().End(), 2)
}

func TestDamagedRecordsAreRefusedAndNotWritten(t *testing.T) {
	r := led(t, settings())
	b := batch(1, 10, noon)
	b[len(b)-1] ^= 1
	_, err := r.produce(1, b)
	wantCode(t, "append", err, kafka.CorruptMessage)
	wantOffset(t, "the log end", r.Log().End(), 0)
}

func TestAFailedDiskAnswersStorageError(t *testing.T) {
	r := led(t, settings())
	r.put(batch(1, 10, noon))
	r.disk.Rule(func(op vfs.Op) error {
		if op.Changes() {
			return errors.New("disk on fire")
		}
		return nil
	})
	_, err := r.produce(1, batch(1, 10, noon))
	wantCode(t, "append", err, kafka.KafkaStorageError)
	wantOffset(t, "the high watermark", r.HighWatermark(), 1)
}

func TestADeletedPartitionSendsItsClientsElsewhere(t *testing.T) {
	r := led(t, settings())
	r.put(batch(1, 10, noon))
	if err := r.dir.Delete(r.Log(), noon.UnixMilli()); err != nil {
		t.Fatal(err)
	}
	_, err := r.produce(1, batch(1, 10, noon))
	wantCode(t, "append", err, kafka.NotLeaderOrFollower)
}

func TestTheTermIsOnEveryBatch(t *testing.T) {
	r := led(t, settings())
	r.put(batch(1, 10, noon))
	r.Resign()
	r.lead(7, nil)
	r.put(batch(1, 10, noon))
	for _, want := range []struct {
		at    kafka.Offset
		epoch kafka.LeaderEpoch
	}{{0, 5}, {1, 7}} {
		q := plain(want.at)
		q.Max = 1
		bytes, _ := r.get(q)
		if b, _, err := record.Parse(bytes); err != nil || b.LeaderEpoch() != want.epoch {
			t.Errorf("at %d: %v (%v), want epoch %d", want.at, b, err, want.epoch)
		}
	}
}

func TestAFullSegmentIsRolled(t *testing.T) {
	s := settings()
	s.Log = commitlog.Config{SegmentBytes: 500}
	r := led(t, s)
	for range 4 {
		r.put(batch(1, 200, noon))
	}
	segments, err := r.Log().Segments()
	if err != nil || len(segments) != 4 && len(segments) != 2 {
		t.Errorf("%d segments (%v)", len(segments), err)
	}
}

// BenchmarkAppend asks what a batch of 16 KiB costs above its log: validation, the
// high watermark, a watcher's mark.
func BenchmarkAppend(b *testing.B) {
	r := led(b, settings())
	r.Watch(fresh(1, newBell()), 0)
	records := batch(16, 1000, noon)
	b.SetBytes(int64(len(records)))
	b.ReportAllocs()
	for b.Loop() {
		clear(records[:8]) // the base offset, as a producer sends it
		if _, err := r.produce(-1, records); err != nil {
			b.Fatal(err)
		}
	}
}
