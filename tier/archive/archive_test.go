package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
	"varve/tier"
	"varve/tier/cache"
	"varve/tier/chain"
	"varve/tier/container"
	"varve/tier/faulty"
	"varve/tier/manifest"
)

var (
	testTP = kafka.TopicPartition{Topic: "orders", Partition: 3}
	testID = kafka.TopicID{1, 2, 3}
)

// A bench is an archive over a faulty store, in a bubble of fake time.
type bench struct {
	t       *testing.T
	store   *faulty.Store
	archive *Archive
	chunks  *cache.Cache
	lines   *bytes.Buffer
}

func inBubble(t *testing.T, opt Options, f func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, store: faulty.New(), lines: new(bytes.Buffer)}
		b.start(opt)
		defer b.chunks.Close()
		defer b.archive.Close()
		f(b)
	})
}

// start makes an archive on the bench's store.
func (b *bench) start(opt Options) {
	chunks, err := cache.Open(cache.Config{FS: vfs.NewMem(), Dir: "/cache"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.chunks = chunks
	opt.Store, opt.Cache, opt.Broker, opt.Copies = b.store, chunks, 1, 1
	opt.Log = slog.New(slog.NewTextHandler(b.lines, nil))
	b.archive = New(opt)
}

func (b *bench) lead(epoch kafka.LeaderEpoch, log Log) *Partition {
	return b.archive.Lead(testTP, testID, epoch, log)
}

// until lets fake time pass until cond holds.
func (b *bench) until(what string, cond func() bool) {
	b.t.Helper()
	for range 2000 {
		synctest.Wait()
		if cond() {
			return
		}
		time.Sleep(time.Second)
	}
	b.t.Fatalf("never: %s\nerrors: %+v\nlog:\n%s", what, b.archive.Stats(), b.lines)
}

// truth folds the chain, and holds its live containers to the store.
func (b *bench) truth() manifest.State {
	b.t.Helper()
	s, err := chain.At(b.store, testTP, testID).Load(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, seg := range s.Live {
		if _, err := b.store.Stat(b.t.Context(), chain.At(b.store, testTP, testID).Segment(seg)); err != nil {
			b.t.Errorf("version %d names %s: %v", s.Number, seg.Name(), err)
		}
	}
	return s
}

// files counts the names of a folder of the partition.
func (b *bench) files(folder string) (n int) {
	for _, name := range b.store.Names() {
		if strings.HasPrefix(name, manifest.PartitionDir(testTP, testID)+"/"+folder+"/") {
			n++
		}
	}
	return n
}

// readAll reads the tier from an offset on through Read, in requests of max bytes.
func (b *bench) readAll(p *Partition, from kafka.Offset, max int) []byte {
	b.t.Helper()
	var out []byte
	for {
		s, err := p.State()
		if err != nil {
			b.t.Fatal(err)
		}
		if from >= s.NextOffset() {
			return out
		}
		woken := make(chan struct{}, 16)
		f, err := p.Read(from, max, true, func() { woken <- struct{}{} })
		if err != nil {
			b.t.Fatalf("reading from %d: %v", from, err)
		}
		if f.Pending {
			<-woken
			continue
		}
		got := runBytes(b.t, &f.Run)
		batches := 0
		for rest := got; len(rest) > 0; batches++ {
			var batch record.Batch
			if batch, rest, err = record.Parse(rest); err != nil {
				b.t.Fatalf("from %d: %v", from, err)
			}
			from = batch.NextOffset()
		}
		if len(got) > max && batches > 1 {
			b.t.Fatalf("%d bytes in %d batches, at most %d were asked for", len(got), batches, max)
		}
		if f.Upper < from-2 {
			b.t.Fatalf("upper bound %d, the run ends at %d", f.Upper, from)
		}
		out = append(out, got...)
	}
}

func runBytes(t *testing.T, r *vfs.Run) []byte {
	t.Helper()
	defer r.Release()
	if r.File == nil {
		return bytes.Clone(r.Bytes[:r.N])
	}
	b := make([]byte, r.N)
	if n, err := r.File.ReadAt(b, r.Pos); n < len(b) {
		t.Fatal(err)
	}
	return b
}

func TestWhatTheTierGivesIsWhatWasLocal(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.cfg.LocalRetentionBytes = 0
		log.fill(700, 300, 1000)    // < 1 MiB
		log.fill(600, 10_000, 2000) // > 16 MiB: several files of the cache
		log.fill(3, 1<<20, 3000)    // batches of 3 MiB
		log.append(5, 10, 4000)
		p := b.lead(1, log)
		b.until("all closed segments are in the tier and gone from here", func() bool { return len(log.Segments()) == 1 })
		tiered := log.Segments()[0].Base
		want := log.all[:len(log.all)-len(log.segs[0].log)]
		if s := b.truth(); s.NextOffset() != tiered || log.tieredTo() != tiered || len(s.Live) != 3 {
			t.Errorf("the tier ends at %d with %d containers, the log was told %d; want %d and 3", s.NextOffset(), len(s.Live), log.tieredTo(), tiered)
		}
		for _, max := range []int{1 << 20, 1, 50_000, 40 << 20} {
			if got := b.readAll(p, 0, max); !bytes.Equal(got, want) {
				t.Errorf("in requests of %d bytes: %d bytes come back, %d went in", max, len(got), len(want))
			}
		}
		if log.held != 0 {
			t.Errorf("%d exports still hold files", log.held)
		}
		if _, err := p.Read(tiered, 100, true, nil); !errors.Is(err, ErrNotTiered) {
			t.Errorf("above the tier: %v", err)
		}
	})
}

// TestEveryStepMayFail makes each call of the store fail once, in four ways, at each
// place of a copy, and wants one copy of everything in the end.
func TestEveryStepMayFail(t *testing.T) {
	steps := []faulty.Fault{
		{Op: faulty.Mkdir}, {Op: faulty.List},
		{Op: faulty.Create, Name: ".json"}, {Op: faulty.Write, Name: ".json"}, {Op: faulty.Complete, Name: ".json"}, {Op: faulty.Rename, Name: ".json"},
		{Op: faulty.Create, Name: ".seg"}, {Op: faulty.Write, Name: ".seg"}, {Op: faulty.Complete, Name: ".seg"},
		{Op: faulty.Stat, Name: ".seg"}, {Op: faulty.Open, Name: ".seg"}, {Op: faulty.Read, Name: ".seg"}, {Op: faulty.Rename, Name: ".seg"},
		{Op: faulty.Delete}, {Op: faulty.Replicas},
	}
	for _, step := range steps {
		for skip := range 3 {
			for how := range 4 {
				f := step
				f.Skip, f.Times = skip, 1
				switch how {
				case 0:
					f.Err = tier.ErrUnavailable
				case 1:
					f.Err, f.After = tier.ErrUnsettled, true
				case 2:
					f.Err, f.Late = tier.ErrUnsettled, true
				case 3:
					f.Err = tier.ErrFull
				}
				t.Run(fmt.Sprintf("%v %s skip %d how %d", f.Op, f.Name, skip, how), func(t *testing.T) { copyUnder(t, f) })
			}
		}
	}
}

func copyUnder(t *testing.T, f faulty.Fault) {
	inBubble(t, Options{}, func(b *bench) {
		b.store.Inject(f)
		log := newFakeLog()
		log.cfg.LocalRetentionBytes = 0
		for i := range 3 {
			log.fill(10, 100, int64(1000*i))
		}
		p := b.lead(1, log)
		b.until("everything is copied", func() bool { return len(log.Segments()) == 1 })
		b.store.Land()
		for i := range 3 {
			log.fill(10, 100, int64(5000*i))
		}
		p.Kick()
		b.until("more is copied", func() bool { return len(log.Segments()) == 1 })
		if got := b.readAll(p, 0, 1000); !bytes.Equal(got, log.all) {
			t.Errorf("%d bytes come back, %d went in", len(got), len(log.all))
		}
		time.Sleep(2 * sweepEvery)
		// A rename that lands after its leader has forgotten it is the next leader's to sweep.
		p.Resign()
		q := b.lead(2, log)
		log.fill(1, 10, 9000)
		q.Kick()
		b.until("the next leader has copied", func() bool { return len(log.Segments()) == 1 })
		time.Sleep(2 * sweepEvery)
		synctest.Wait()
		s := b.truth()
		if n := b.files(manifest.SegmentsDir); n != len(s.Live) || b.files(manifest.ProgressDir) != 0 {
			t.Errorf("%d containers and %d files in progress for %d live segments:\n%s\n%s", n, b.files(manifest.ProgressDir), len(s.Live), strings.Join(b.store.Names(), "\n"), b.lines)
		}
	})
}

func TestStoreAwayKeepsLocalDataAndSaysSo(t *testing.T) {
	inBubble(t, Options{Outage: Block, BlockBytes: 1000}, func(b *bench) {
		log := newFakeLog()
		log.cfg.LocalRetentionBytes = 0
		log.cfg.RetentionMs = 3_600_000
		p := b.lead(1, log)
		synctest.Wait()
		b.store.SetAway(true)
		log.fill(10, 100, time.Now().UnixMilli())
		p.Kick()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if len(log.Segments()) != 2 || log.logStart != 0 {
			t.Errorf("local data went: %v, log start %d", log.Segments(), log.logStart)
		}
		s := b.archive.Stats()
		if s.Errors == 0 || s.LagSegments != 1 || s.OldestLag < time.Hour || !p.Blocked() || !strings.Contains(s.LastError, "orders-3") {
			t.Errorf("stats %+v, blocked %v", s, p.Blocked())
		}
		if !strings.Contains(b.lines.String(), "local data is kept") {
			t.Errorf("log:\n%s", b.lines)
		}
		b.store.SetAway(false)
		b.until("it goes on", func() bool { return !p.Blocked() && b.archive.Stats().LagSegments == 0 })
	})
}

func TestExpirePolicyLetsExpiredRecordsGoUncopied(t *testing.T) {
	inBubble(t, Options{Outage: Expire}, func(b *bench) {
		b.store.SetAway(true)
		log := newFakeLog()
		log.cfg.RetentionMs = 60_000
		log.fill(10, 100, time.Now().UnixMilli())
		b.lead(1, log)
		b.until("records expire", func() bool { return len(log.Segments()) == 1 })
		if log.logStart != 30 {
			t.Errorf("log start %d, want 30", log.logStart)
		}
	})
}

func TestRetentionRaisesTheLogStartThenRemoves(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.cfg.RetentionMs = 3_600_000
		log.fill(10, 100, time.Now().UnixMilli())
		p := b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 1 })
		time.Sleep(50 * time.Minute)
		log.fill(10, 100, time.Now().UnixMilli())
		p.Kick()
		b.until("copied", func() bool { return b.archive.Stats().Containers == 2 })
		time.Sleep(20 * time.Minute)
		b.until("the first expires", func() bool { return b.archive.Stats().Removed == 1 })
		synctest.Wait()
		if s := b.truth(); s.LogStart != 30 || log.logStart != 30 || b.files(manifest.SegmentsDir) != 1 || len(s.Deleting) != 0 {
			t.Errorf("log start %d in the chain, %d in the log, %d files, deleting %v", s.LogStart, log.logStart, b.files(manifest.SegmentsDir), s.Deleting)
		}
		if got := log.Segments()[0].Base; got != 30 {
			t.Errorf("the local log begins at %d", got)
		}
	})
}

func TestPinDefersTheFileNotTheLogStart(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.cfg.RetentionMs = 60_000
		log.cfg.LocalRetentionMs = 60_000
		log.fill(10, 100, time.Now().UnixMilli())
		b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 1 })
		if _, _, err := chain.At(b.store, testTP, testID).Pin(b.t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		b.until("expired", func() bool { s := b.truthless(); return s.LogStart == 30 })
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if b.files(manifest.SegmentsDir) != 1 {
			t.Error("a pinned file went")
		}
		b.until("the pin dies and the file goes", func() bool { return b.files(manifest.SegmentsDir) == 0 && b.files(manifest.PinsDir) == 0 })
	})
}

func (b *bench) truthless() manifest.State {
	s, err := chain.At(b.store, testTP, testID).Load(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// A jumping clock is the machine's with a step in its wall time.
type jumpingClock struct{ step atomic.Int64 }

func (c *jumpingClock) WallMs() int64 {
	return time.Now().Add(time.Duration(c.step.Load())).UnixMilli()
}
func (c *jumpingClock) Mono() time.Duration { return time.Duration(time.Now().UnixNano()) }

func TestClockThatJumpsForwardDeletesNothing(t *testing.T) {
	clock := &jumpingClock{}
	inBubble(t, Options{Clock: clock}, func(b *bench) {
		log := newFakeLog()
		log.cfg.RetentionMs, log.cfg.LocalRetentionMs = 86_400_000, 3_600_000
		log.fill(10, 100, time.Now().UnixMilli())
		p := b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 1 })
		clock.step.Store(int64(30 * 24 * time.Hour)) // the store's clock stays
		for range 10 {
			p.Kick()
			time.Sleep(time.Hour / 60)
			synctest.Wait()
		}
		if s := b.truth(); s.LogStart != 0 || len(s.Live) != 1 || len(log.Segments()) != 2 || b.archive.Stats().ClockSkipped == 0 {
			t.Errorf("log start %d, %d live, %v local, skipped %d", s.LogStart, len(s.Live), log.Segments(), b.archive.Stats().ClockSkipped)
		}
		clock.step.Store(0)
		time.Sleep(2 * time.Hour)
		b.until("local retention goes on with a sound clock", func() bool { return len(log.Segments()) == 1 })
	})
}

func TestLocalCopiesWaitForReplicasAndGrace(t *testing.T) {
	inBubble(t, Options{Grace: time.Minute}, func(b *bench) {
		b.store.SetReplicas("", 1, 3)
		log := newFakeLog()
		log.cfg.LocalRetentionBytes = 0
		log.fill(10, 100, 1000)
		b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 1 })
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(log.Segments()) != 2 {
			t.Error("the local copy went with one live replica")
		}
		b.store.SetReplicas("", 2, 3)
		b.until("dropped", func() bool { return len(log.Segments()) == 1 })
	})
}

func TestFencedLeaderStopsAndKeepsItsData(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.cfg.LocalRetentionBytes = 0
		log.fill(10, 100, 1000)
		old := b.lead(4, log)
		b.until("copied", func() bool { return len(log.Segments()) == 1 })
		theirs := newFakeLog()
		theirs.fill(10, 100, 1000)
		theirs.fill(10, 100, 1500)
		next := b.lead(5, theirs)
		b.until("the new leader goes on behind the old", func() bool { s := b.truthless(); return s.NextOffset() == 60 })
		log.fill(10, 100, 2000)
		log.fill(10, 100, 2000)
		old.Kick()
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := b.truth(); b.archive.Stats().Fenced != 1 || s.Writer.LeaderEpoch != 5 || len(log.Segments()) == 1 {
			t.Errorf("fenced %d, writer %v, local %v", b.archive.Stats().Fenced, s.Writer, log.Segments())
		}
		if !strings.Contains(b.lines.String(), "leader epoch 5") {
			t.Errorf("the log does not name the other writer:\n%s", b.lines)
		}
		next.Resign()
	})
}

func TestFencedLeaderStillReadsWhatTheTierHas(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.fill(10, 100, 1000)
		b.lead(5, log)
		b.until("copied", func() bool { return log.tieredTo() == 30 })
		late := newFakeLog()
		late.fill(10, 100, 1000)
		p := b.lead(4, late)
		b.until("fenced", func() bool { return b.archive.Stats().Fenced == 1 })
		if got := b.readAll(p, 0, 1<<20); !bytes.Equal(got, log.all) {
			t.Errorf("%d bytes from the tier, want the %d that were copied", len(got), len(log.all))
		}
	})
}

func TestLogThatEndsBelowTheTierBeginsBehindIt(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.fill(10, 100, 1000)
		first := b.lead(4, log)
		b.until("copied", func() bool { return log.tieredTo() == 30 })
		first.Resign()
		lost := newFakeLog() // a new disk
		lost.epochs = nil
		p := b.lead(5, lost)
		b.until("the log begins behind the tier", func() bool { return lost.Offsets().End == 30 && lost.tieredTo() == 30 })
		if got, want := lost.Epochs(), []kafka.EpochStart{{Epoch: 1, Start: 0}}; !slices.Equal(got, want) {
			t.Errorf("epochs %v, want the container's %v", got, want)
		}
		lost.epochs = append(lost.epochs, kafka.EpochStart{Epoch: 5, Start: 30})
		lost.fill(10, 100, 2000)
		p.Kick()
		b.until("it goes on", func() bool { s := b.truthless(); return s.NextOffset() == 60 && len(s.Live) == 2 })
		if got := b.readAll(p, 0, 1<<20); !bytes.Equal(got, append(log.all, lost.all...)) {
			t.Errorf("%d bytes in the tier, want %d of before and %d of after", len(got), len(log.all), len(lost.all))
		}
	})
}

// remote.log.copy.disable at run time (KIP-950): nothing more is copied, what is there is
// read, and copying goes on where it stopped.
func TestCopyingStopsAndGoesOnAsTheTopicSays(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.cfg.LocalRetentionBytes = 0
		log.fill(10, 100, 1000)
		p := b.lead(4, log)
		b.until("only in the tier", func() bool { return log.Offsets().LocalStart == 30 })
		disable := func(off bool) {
			c := log.Config()
			c.CopyDisabled = off
			log.setConfig(c)
			p.Kick()
		}
		disable(true)
		log.fill(10, 100, 2000)
		time.Sleep(time.Hour)
		synctest.Wait()
		if to, local := log.tieredTo(), log.Offsets().LocalStart; to != 30 || local != 30 {
			t.Fatalf("the tier ends at %d and local begins at %d while copying is off, want 30", to, local)
		}
		if got := b.readAll(p, 0, 1<<20); !bytes.Equal(got, log.all[:len(log.all)/2]) {
			t.Errorf("%d bytes come from the tier, want the first half of %d", len(got), len(log.all))
		}
		disable(false)
		b.until("copied on", func() bool { return log.tieredTo() == 60 })
	})
}

func TestPartitionThatLeavesTheTierTakesItsFilesAlong(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.cfg.LocalRetentionBytes = 0
		log.fill(10, 100, 1000)
		log.fill(10, 100, 2000)
		p := b.lead(4, log)
		b.until("only in the tier", func() bool { return log.Offsets().LocalStart == 60 })
		if err := log.SetLogStart(60); err != nil {
			t.Fatal(err)
		}
		p.Leave()
		b.until("the files are gone", func() bool { return b.files("segments") == 0 })
		if s := b.truth(); len(s.Live) != 0 || s.LogStart != 60 {
			t.Errorf("live %v, log start %d, want none and 60", s.Live, s.LogStart)
		}
		log.fill(10, 100, 3000)
		p = b.lead(4, log) // tiered again, in the same term
		b.until("copied again", func() bool { return log.tieredTo() == 90 })
		if got := b.readAll(p, 60, 1<<20); !bytes.Equal(got, log.all[len(log.all)*2/3:]) {
			t.Errorf("%d bytes in the tier, want the last third of %d", len(got), len(log.all))
		}
	})
}

func TestSlowPartitionIsInTheTierWithinTheInterval(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.cfg.UploadInterval = time.Hour
		b.lead(1, log)
		log.append(1, 10, 1000)
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if len(log.Segments()) != 1 {
			t.Error("rolled too early")
		}
		time.Sleep(11 * time.Minute)
		b.until("rolled and copied", func() bool { return b.archive.Stats().Containers == 1 })
	})
}

func TestContainerBeginsWhereTheTierEnds(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.fill(4, 10, 1000)
		p := b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 1 })
		p.Resign()
		// The next leader never heard of that roll: its segment straddles (T7).
		theirs := newFakeLog()
		theirs.epochs = append(theirs.epochs, kafka.EpochStart{Epoch: 2, Start: 12})
		theirs.append(4, 10, 1000)
		theirs.fill(4, 10, 1500)
		q := b.lead(2, theirs)
		b.until("the rest is copied", func() bool { s := b.truthless(); return s.NextOffset() == 24 })
		if s := b.truth(); len(s.Live) != 2 || s.Live[1].Base != 12 {
			t.Errorf("containers %v", s.Live)
		}
		if got := b.readAll(q, 0, 100); len(got) != len(theirs.all) {
			t.Errorf("%d bytes, want %d", len(got), len(theirs.all))
		}
	})
}

func TestDamagedFileIsNamedAndOthersAreServed(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.fill(10, 100, 1000)
		log.fill(10, 100, 2000)
		p := b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 2 })
		s := b.truth()
		name := chain.At(b.store, testTP, testID).Segment(s.Live[0])
		b.store.Damage(name, 500)
		err := readUntilError(p, 0)
		var c *CorruptSegmentError
		if !errors.As(err, &c) || !strings.Contains(err.Error(), s.Live[0].Name()) {
			t.Errorf("got %v", err)
		}
		if got := b.readAll(p, 30, 1000); len(got) != len(log.all)/2 {
			t.Errorf("the other segment gives %d bytes", len(got))
		}
	})
}

func readUntilError(p *Partition, o kafka.Offset) error {
	for {
		woken := make(chan struct{}, 16)
		f, err := p.Read(o, 1<<20, true, func() { woken <- struct{}{} })
		if err != nil || !f.Pending {
			return err
		}
		<-woken
	}
}

// A file system that is not mounted looks like an empty tier.
func TestATierThatVanishedIsNotBegunAnew(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		for range 4 {
			log.fill(3, 100, 1000)
		}
		log.logStart = 0
		log.segs = log.segs[2:] // the first went after they were tiered, elsewhere
		p := b.lead(1, log)
		b.until("the loss is told", func() bool { return b.archive.Stats().Errors > 2 })
		if got := b.archive.Stats().LastError; !strings.Contains(got, "[0,18)") || !strings.Contains(got, "tier.url") {
			t.Errorf("the error is %q, want what is missing and what to do", got)
		}
		if n := len(b.store.Names()); n != 0 {
			t.Errorf("%d files were written to the empty tier", n)
		}
		if _, err := p.Read(3, 100, true, nil); !errors.Is(err, ErrNotReady) {
			t.Errorf("reading what is missing gives %v, want %v: clients try again", err, ErrNotReady)
		}
	})
}

func TestSlowFillOutlivesWhoAskedForIt(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.fill(10, 100, 1000)
		p := b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 1 })
		b.store.Inject(faulty.Fault{Op: faulty.Read, Name: ".seg", Delay: 3 * time.Second})
		polls := 0
		for ; ; polls++ { // a consumer that gives up after 500 ms and asks again
			f, err := p.Read(0, 1<<20, true, func() {})
			if err != nil {
				t.Fatal(err)
			}
			if !f.Pending {
				f.Run.Release()
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		if s := b.archive.Stats(); s.Cache.Fills != 1 || polls > 14 {
			t.Errorf("%d fills, %d polls", s.Cache.Fills, polls)
		}
	})
}

func TestTimesAndAbortedAreFoundInTheTier(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.aborted = []container.AbortedTxn{{Producer: 9, First: 20, Last: 40, LastStable: 20}}
		log.fill(10, 100, 1000)
		log.fill(10, 100, 5000)
		log.fill(10, 100, 3000)
		p := b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 3 })
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		defer cancel()
		for _, c := range []struct {
			ts   int64
			want kafka.Offset
		}{{0, 0}, {1001, 1}, {1003, 30}, {5002, 32}, {5003, -1}} {
			f, ok, err := p.OffsetForTime(ctx, c.ts, 0)
			if err != nil || ok != (c.want >= 0) || ok && f.Offset != c.want {
				t.Errorf("at %d: %+v %v %v, want %d", c.ts, f, ok, err, c.want)
			}
		}
		if f, ok, err := p.MaxTimestamp(ctx); err != nil || !ok || f.Offset != 32 || f.Timestamp != 5002 {
			t.Errorf("max %+v %v %v", f, ok, err)
		}
		for _, o := range []kafka.Offset{0, 30} { // the transaction overlaps both (T6)
			var f Fetched
			err := wait(ctx, func(wake func()) (done bool, err error) {
				f, err = p.Read(o, 1<<20, true, wake)
				return !f.Pending, err
			})
			if err != nil || len(f.Aborted()) != 1 {
				t.Errorf("from %d: aborted %v, %v", o, f.Aborted(), err)
			}
			f.Run.Release()
		}
		seed, ok, err := p.Seed(ctx)
		if err != nil || !ok || seed.Next != 90 || string(seed.Producers) != "p" || len(seed.Epochs) != 1 {
			t.Errorf("seed %+v %v %v", seed, ok, err)
		}
	})
}

func TestDeletedTopicLeavesNothingAndNoLateLeaderGoesOn(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		log := newFakeLog()
		log.fill(10, 100, 1000)
		p := b.lead(1, log)
		b.until("copied", func() bool { return b.archive.Stats().Containers == 1 })
		b.store.Inject(faulty.Fault{Op: faulty.DeleteAll, Times: 2, Err: tier.ErrUnavailable})
		var gone atomic.Bool
		b.archive.DeleteTopic("orders", testID, func() { gone.Store(true) })
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if s := b.truthless(); !s.Deleted || s.Writer.LeaderEpoch != 1<<31-1 {
			t.Errorf("the chain goes on: %+v", s)
		}
		log.fill(10, 100, 1000)
		p.Kick()
		b.until("gone", gone.Load)
		p.Resign()
		for _, n := range b.store.Names() {
			if strings.Contains(n, "orders") {
				t.Errorf("left: %s", n)
			}
		}
	})
}
