package partition_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/vfs"
	"varve/tier"
	"varve/tier/archive"
	"varve/tier/cache"
	"varve/tier/faulty"
)

// A tieredRig is a partition of small segments that go to a store that can fail, in a
// bubble of fake time. Nothing stays local that the tier has.
type tieredRig struct {
	*rig
	store   *faulty.Store
	archive *archive.Archive
	wrote   []byte // all that was appended, as it lies in the log
}

func tieredSettings() *partition.Settings {
	s := settings()
	s.Tiered = true
	s.Log = commitlog.Config{SegmentBytes: 2000, Remote: true, RetentionMs: -1, LocalRetentionMs: 1, FileDeleteDelayMs: 1}
	s.Tier = archive.Config{RetentionMs: -1, RetentionBytes: -1, LocalRetentionMs: 1, LocalRetentionBytes: -1}
	return s
}

func inTier(t *testing.T, story func(r *tieredRig)) {
	synctest.Test(t, func(t *testing.T) {
		chunks, err := cache.Open(cache.Config{FS: vfs.NewMem(), Dir: "/cache"})
		if err != nil {
			t.Fatal(err)
		}
		defer chunks.Close()
		r := &tieredRig{rig: rest(t, tieredSettings()), store: faulty.New()}
		r.archive = archive.New(archive.Options{Store: r.store, Cache: chunks, Broker: 1, Copies: 1, Interval: time.Second, Grace: -1,
			Log: slog.New(slog.DiscardHandler)})
		defer r.archive.Close()
		r.lead(5, r.archive)
		defer r.Resign()
		r.open()
		story(r)
	})
}

// open waits until the partition is served: an empty log is shut until the tier has told
// what it holds.
func (r *tieredRig) open() {
	r.t.Helper()
	r.until("it is served", func() bool {
		_, err := r.Locate(r.t.Context(), partition.Latest, kafka.NoEpoch, false)
		return err == nil
	})
}

// until lets fake time pass until cond holds.
func (r *tieredRig) until(what string, cond func() bool) {
	r.t.Helper()
	for range 1000 {
		synctest.Wait()
		if cond() {
			return
		}
		time.Sleep(time.Second)
	}
	r.t.Fatalf("never: %s; %+v", what, r.archive.Stats())
}

// fill appends n batches of a kilobyte and waits until all but the last segment is in
// the tier only.
func (r *tieredRig) fill(n int) {
	r.t.Helper()
	for i := range n {
		records := batch(2, 500, noon.Add(time.Duration(i)*time.Second))
		r.put(records)
		r.wrote = append(r.wrote, records...)
	}
	segments, err := r.Log().Segments()
	if err != nil {
		r.t.Fatal(err)
	}
	active := segments[len(segments)-1].Base
	r.until("closed segments are in the tier only", func() bool { return r.Log().View().LocalStart == active })
}

// await reads at an offset until the tier has the bytes, as a fetch does.
func (r *tieredRig) await(q partition.Read, w *partition.Watcher, b *bell) ([]byte, partition.ReadResult) {
	r.t.Helper()
	q.Watcher, q.Max = w, 1<<20
	for {
		w.Look()
		for range w.Take {
		}
		got, res := r.get(q)
		if !res.Pending {
			return got, res
		}
		if w.Arm(1) {
			<-b.rung
		}
	}
}

func TestWhatTheTierHasComesBackByteForByte(t *testing.T) {
	inTier(t, func(r *tieredRig) {
		r.fill(8)
		b := newBell()
		w := fresh(1, b)
		var all []byte
		for next := kafka.Offset(0); next < 16; {
			got, res := r.await(plain(next), w, b)
			if res.High != 16 || res.LogStart != 0 {
				t.Fatalf("at %d: %+v", next, res)
			}
			all = append(all, got...)
			for len(got) > 0 {
				one, rest, err := record.Parse(got)
				if err != nil {
					t.Fatalf("at %d: %v", next, err)
				}
				next, got = one.NextOffset(), rest
			}
		}
		if !bytes.Equal(all, r.wrote) {
			t.Errorf("%d bytes came back and differ from the %d that were appended", len(all), len(r.wrote))
		}
		if n := b.wakes.Load(); n == 0 {
			t.Error("no read had to wait for the tier: this proves nothing")
		}
	})
}

func TestAReadWithoutAWatcherOnlyLooks(t *testing.T) {
	inTier(t, func(r *tieredRig) {
		r.fill(8)
		if got, res := r.get(plain(0)); !res.Pending || len(got) > 0 {
			t.Fatalf("%d bytes at the first look, %+v", len(got), res)
		}
		r.until("the bytes are there", func() bool {
			got, res := r.get(plain(0))
			return !res.Pending && len(got) > 0
		})
	})
}

func TestPlacesOfATieredLog(t *testing.T) {
	inTier(t, func(r *tieredRig) {
		r.fill(8)
		local := r.Log().View().LocalStart
		if local == 0 || local >= 16 {
			t.Fatalf("the local log starts at %d", local)
		}
		ms := noon.UnixMilli()
		for _, c := range []struct {
			name string
			ts   int64
			want partition.Place
		}{
			{"latest", partition.Latest, partition.Place{Offset: 16, Timestamp: -1, Epoch: 5}},
			{"earliest", partition.Earliest, partition.Place{Offset: 0, Timestamp: -1, Epoch: 5}},
			{"earliest local", partition.EarliestLocal, partition.Place{Offset: local, Timestamp: -1, Epoch: 5}},
			{"latest tiered", partition.LatestTiered, partition.Place{Offset: local - 1, Timestamp: -1, Epoch: 5}},
			{"earliest pending", partition.EarliestPending, partition.Place{Offset: local, Timestamp: -1, Epoch: 5}},
			{"a time in the tier", ms + 1001, partition.Place{Offset: 3, Timestamp: ms + 1001, Epoch: 5}},
			{"a time on this disk", ms + 7000, partition.Place{Offset: 14, Timestamp: ms + 7000, Epoch: 5}},
			{"the newest", partition.MaxTimestamp, partition.Place{Offset: 15, Timestamp: ms + 7001, Epoch: 5}},
		} {
			if got := r.locate(c.ts); got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
		}
	})
}

func TestAReaderIsNotResetWhileTheManifestLoads(t *testing.T) {
	inTier(t, func(r *tieredRig) {
		r.fill(8)
		r.Resign()
		r.store.SetAway(true)
		r.lead(6, r.archive)
		var res partition.ReadResult
		wantCode(t, "read", r.Read(plain(0), &res), kafka.ReplicaNotAvailable)
		_, err := r.Locate(t.Context(), noon.UnixMilli(), kafka.NoEpoch, false)
		wantCode(t, "locate", err, kafka.ReplicaNotAvailable)
		r.store.SetAway(false)
		r.until("the tier is read again", func() bool { return r.Read(plain(0), &res) == nil && !res.Pending })
		res.Run.Release()
	})
}

func TestAStoreThatFailsIsAStorageErrorNotAReset(t *testing.T) {
	inTier(t, func(r *tieredRig) {
		r.fill(8)
		r.store.Inject(faulty.Fault{Op: faulty.Read, Err: tier.ErrUnavailable})
		r.store.Inject(faulty.Fault{Op: faulty.Open, Err: tier.ErrUnavailable})
		b := newBell()
		q := plain(0)
		q.Watcher, q.Max = fresh(1, b), 1<<20
		var res partition.ReadResult
		q.Watcher.Arm(1)
		if err := r.Read(q, &res); err != nil || !res.Pending {
			t.Fatalf("the first look: %+v (%v), want one that waits", res, err)
		}
		<-b.rung
		wantCode(t, "read", r.Read(q, &res), kafka.KafkaStorageError)
	})
}

func TestTheTierBeginsAndEndsWithTheTopicsConfig(t *testing.T) {
	inTier(t, func(r *tieredRig) {
		r.fill(4)
		r.Set(settings())
		r.Tier(r.archive)
		if r.Remote() != nil {
			t.Error("the tier goes on after remote.storage.enable=false")
		}
		r.Set(tieredSettings())
		r.Tier(r.archive)
		if r.Remote() == nil {
			t.Fatal("the tier does not begin with remote.storage.enable=true")
		}
		r.until("what the tier has counts again", func() bool { return r.Tiered() == r.Log().View().LocalStart })
	})
}

func TestABlockedTierRefusesAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chunks, err := cache.Open(cache.Config{FS: vfs.NewMem(), Dir: "/cache"})
		if err != nil {
			t.Fatal(err)
		}
		defer chunks.Close()
		store := faulty.New()
		a := archive.New(archive.Options{Store: store, Cache: chunks, Broker: 1, Outage: archive.Block, BlockBytes: 3000,
			Interval: time.Second, Log: slog.New(slog.DiscardHandler)})
		defer a.Close()
		r := rest(t, tieredSettings())
		r.lead(5, a)
		defer r.Resign()
		synctest.Wait() // the manifest is loaded
		store.SetAway(true)
		for i := range 100 {
			if _, err := r.produce(1, batch(2, 500, noon)); err != nil {
				wantCode(t, "append", err, kafka.KafkaStorageError)
				if i < 3 {
					t.Errorf("refused after %d batches", i)
				}
				return
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		t.Error("100 kB wait for a tier that is away, and appends are still taken")
	})
}
