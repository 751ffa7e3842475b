package chain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"varve/broker/kafka"
	"varve/tier"
	"varve/tier/faulty"
	"varve/tier/manifest"
)

// A world is one partition's chain under leaders of rising epochs that upload, expire,
// sweep and prune, deposed ones going on until something stops them, and readers that
// pin. Every call on the store may be where another takes its turn; its reply may be
// lost, done, never done, or done later.
type world struct {
	t       *testing.T
	r       *rand.Rand
	store   *faulty.Store
	folder  Folder
	procs   []*proc
	epoch   kafka.LeaderEpoch
	end     kafka.Offset    // of the log: all below is closed
	expired kafka.Offset    // all below may go
	local   [2]kafka.Offset // local starts of two brokers
	pinned  map[string][]manifest.Segment
	trace   []string
	fail    string
	commits int
	fenced  int
}

type proc struct {
	w     *world
	name  string
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

type stopped struct{}

func (w *world) spawn(name string, f func(p *proc)) {
	p := &proc{w: w, name: name}
	p.next, p.stop = iter.Pull(func(y func(struct{}) bool) {
		defer func() {
			if e := recover(); e != nil && e != (any)(stopped{}) {
				panic(e)
			}
		}()
		p.yield = y
		f(p)
	})
	w.procs = append(w.procs, p)
}

func (p *proc) logf(f string, a ...any) {
	p.w.trace = append(p.w.trace, p.name+": "+fmt.Sprintf(f, a...))
}

func (w *world) bad(f string, a ...any) {
	if w.fail == "" {
		w.fail = fmt.Sprintf(f, a...)
	}
}

// turns is the store as a process sees it: every call is a turn.
type turns struct {
	tier.Store
	p *proc
}

func (s turns) turn() {
	if !s.p.yield(struct{}{}) {
		panic(stopped{})
	}
}

func (s turns) List(ctx context.Context, dir string) ([]tier.FileInfo, error) {
	s.turn()
	return s.Store.List(ctx, dir)
}

func (s turns) Open(ctx context.Context, name string) (tier.Reader, error) {
	s.turn()
	return s.Store.Open(ctx, name)
}

func (s turns) Create(ctx context.Context, name string, opt tier.CreateOptions) (tier.Writer, error) {
	s.turn()
	return s.Store.Create(ctx, name, opt)
}

func (s turns) Rename(ctx context.Context, from, to string) error {
	return s.mutate(faulty.Rename, to, func() error { return s.Store.Rename(ctx, from, to) })
}

func (s turns) Delete(ctx context.Context, name string) error {
	return s.mutate(faulty.Delete, name, func() error { return s.Store.Delete(ctx, name) })
}

func (s turns) mutate(op faulty.Op, name string, f func() error) error {
	s.turn()
	fault := faulty.Fault{Op: op, Times: 1, Err: tier.ErrUnsettled}
	switch s.p.w.r.IntN(14) {
	case 0:
		fault.After = true
	case 1:
		fault.Late = true
	case 2:
	default:
		return f()
	}
	remove := s.p.w.store.Inject(fault)
	defer remove()
	err := f()
	s.p.logf("%v %s: reply lost (after %v, late %v): %v", op, name, fault.After, fault.Late, err)
	return err
}

// quiet reads the world's truth without a turn and without faults.
func (w *world) quiet() manifest.State {
	s, err := w.folder.Load(context.Background())
	if err != nil {
		w.bad("the chain does not read: %v", err)
	}
	return s
}

// check holds the world to what must always be so.
func (w *world) check() {
	s := w.quiet()
	files := map[string]bool{}
	for _, n := range w.store.Names() {
		files[n] = true
	}
	seen := map[kafka.Offset]int{}
	for _, seg := range s.Live {
		if !files[w.folder.Segment(seg)] {
			w.bad("version %d names %s, which is gone", s.Number, seg.Name())
		}
		for o := seg.Base; o <= seg.End; o++ {
			if seen[o]++; seen[o] > 1 && o >= s.LogStart {
				w.bad("version %d covers offset %d twice", s.Number, o)
			}
		}
	}
	if s.LogStart > w.expired {
		w.bad("log start %d, but only %d may go", s.LogStart, w.expired)
	}
	for b, start := range w.local {
		for o := s.LogStart; o < start; o++ {
			if seen[o] == 0 {
				w.bad("offset %d is neither on broker %d nor in version %d", o, b, s.Number)
			}
		}
	}
	for who, segs := range w.pinned {
		for _, seg := range segs {
			if !files[w.folder.Segment(seg)] {
				w.bad("%s pinned %s, which is gone", who, seg.Name())
			}
		}
	}
}

// A leader is a process with a chain, on one of the brokers.
type leader struct {
	*proc
	Chain
	broker int
	shift  kafka.Offset // its segments end elsewhere (T7)
}

var lineage = manifest.Lineage{{Epoch: 0, Start: 0}}

func (w *world) lead() {
	w.epoch++
	epoch := w.epoch
	w.spawn(fmt.Sprintf("L%d", epoch), func(p *proc) {
		l := &leader{proc: p, broker: w.r.IntN(2), shift: kafka.Offset(w.r.IntN(2))}
		l.Chain = Chain{Folder: Folder{turns{w.store, p}, w.folder.Path}, Writer: manifest.Writer{LeaderEpoch: epoch, Broker: kafka.BrokerID(l.broker), Incarnation: NewID()}}
		for {
			err := l.Fence(context.Background(), func(*manifest.State) (manifest.Change, bool) { return manifest.FenceChange(0, 0, lineage), true })
			if l.over(err) {
				return
			}
			if err == nil {
				break
			}
		}
		p.logf("leads with version %d", l.State.Number)
		for !l.over(l.step()) {
		}
	})
}

// over tells whether an error ends the leadership; others are tried again.
func (l *leader) over(err error) bool {
	if errors.Is(err, manifest.ErrFenced) {
		l.w.fenced++
		l.logf("%v", err)
		return true
	}
	return false
}

func (l *leader) step() error {
	ctx := context.Background()
	if l.Unsettled() {
		if err := l.Load(ctx); err != nil {
			return err
		}
		return l.State.MayWrite(l.Writer)
	}
	switch l.w.r.IntN(6) {
	case 0, 1:
		return l.upload(ctx)
	case 2:
		return l.expire(ctx)
	case 3:
		return l.sweep(ctx)
	case 4:
		pins, err := l.Pins(ctx)
		if err != nil {
			return err
		}
		return l.Prune(ctx, pins, 100)
	default:
		l.Store.(turns).turn()
		b := l.w.r.IntN(2)
		if next := l.State.NextOffset(); next > l.w.local[b] {
			l.w.local[b] = next
			l.logf("broker %d drops below %d", b, next)
		}
		return nil
	}
}

func (l *leader) upload(ctx context.Context) error {
	base := l.State.NextOffset()
	end := base + 1
	if l.shift > 0 && end%2 == 0 {
		end++
	}
	if end >= l.w.end || base < l.w.local[l.broker] {
		return nil
	}
	seg := manifest.Segment{ID: NewID(), Base: base, End: end, Size: 2, LogSize: 1, LeaderEpoch: l.Writer.LeaderEpoch, Epochs: manifest.Lineage{{Epoch: 0, Start: base}}}
	l.Store.(turns).turn()
	l.w.store.Put(l.Segment(seg), []byte("xx"))
	err := l.Commit(ctx, func(s *manifest.State) (manifest.Change, bool) {
		return s.AddChange([]manifest.Segment{seg}, end+1, lineage)
	})
	if err == nil && l.State.IsLive(seg.ID) {
		l.w.commits++
		l.logf("version %d adds [%d,%d]", l.State.Number, base, end)
	}
	return err
}

func (l *leader) expire(ctx context.Context) error {
	err := l.Commit(ctx, func(s *manifest.State) (manifest.Change, bool) {
		return s.ExpireChange(manifest.Retention{Ms: -1, Bytes: -1, LogStart: min(l.w.expired, s.NextOffset())})
	})
	if err != nil {
		return err
	}
	pins, err := l.Pins(ctx) // marked, then looked for (T9)
	if err != nil {
		return err
	}
	var gone []string
	for _, seg := range l.State.Removable(pins) {
		if err := l.Store.Delete(ctx, l.Segment(seg)); err != nil {
			return err
		}
		gone = append(gone, seg.ID)
	}
	return l.Commit(ctx, func(s *manifest.State) (manifest.Change, bool) { return s.DropChange(gone) })
}

func (l *leader) sweep(ctx context.Context) error {
	files, err := l.Store.List(ctx, l.Path+"/"+manifest.SegmentsDir)
	if err != nil {
		return err
	}
	if err := l.Load(ctx); err != nil {
		return err
	}
	for _, f := range files {
		n, err := manifest.ParseSegmentName(f.Name)
		if err != nil {
			return err
		}
		if l.State.MaySweepContainer(n, l.Writer.LeaderEpoch, func(string) bool { return false }) {
			l.logf("sweeps %s", f.Name)
			if err := l.Store.Delete(ctx, l.Path+"/"+manifest.SegmentsDir+"/"+f.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) read(n int) {
	w.spawn(fmt.Sprintf("reader%d", n), func(p *proc) {
		f := Folder{turns{w.store, p}, w.folder.Path}
		ctx := context.Background()
		s, pin, err := f.Pin(ctx, 1e12)
		if err != nil || s.Number == 0 {
			return
		}
		w.pinned[p.name] = s.Live
		p.logf("pinned version %d with %d containers", s.Number, len(s.Live))
		for range 20 {
			f.Store.(turns).turn()
		}
		delete(w.pinned, p.name)
		for f.Unpin(ctx, pin) != nil {
		}
	})
}

func (w *world) kill(i int) {
	p := w.procs[i]
	p.logf("killed")
	p.stop()
	delete(w.pinned, p.name)
	w.procs = append(w.procs[:i], w.procs[i+1:]...)
}

func (w *world) run(steps int) {
	w.lead()
	fault := 30 + w.r.IntN(200)
	for i := 0; i < steps && w.fail == ""; i++ {
		switch k := w.r.IntN(fault); {
		case k == 0 && len(w.procs) < 5:
			w.lead()
		case k == 1 && len(w.procs) < 6:
			w.read(i)
		case k == 3 && len(w.procs) > 1:
			w.kill(w.r.IntN(len(w.procs)))
		case k < 10:
			w.end++
		case k < 13:
			w.expired = max(w.expired, min(w.expired+2, w.end-6))
		case k < 17:
			w.store.Land()
		default:
			if len(w.procs) == 0 {
				w.lead()
			}
			// Bursts, so that one can be far behind another.
			j := w.r.IntN(len(w.procs))
			for range 1 + w.r.IntN(40) {
				if _, ok := w.procs[j].next(); !ok {
					w.procs = append(w.procs[:j], w.procs[j+1:]...)
					break
				}
			}
		}
		w.check()
	}
	for _, p := range w.procs {
		p.stop()
	}
}

func TestChainHoldsUnderLostAndLateReplies(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 15
	}
	commits, fenced := 0, 0
	for seed := range seeds {
		w := &world{t: t, r: rand.New(rand.NewPCG(seed, 7)), store: faulty.New(), pinned: map[string][]manifest.Segment{}}
		w.folder = Folder{w.store, "topics/t/id/0"}
		if err := w.folder.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.run(300)
		commits, fenced = commits+w.commits, fenced+w.fenced
		if w.fail != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.fail, strings.Join(w.trace, "\n"))
		}
	}
	t.Logf("%d containers committed, %d leaders fenced", commits, fenced)
	if commits < int(seeds) || fenced == 0 {
		t.Errorf("the model did little: %d commits, %d fenced", commits, fenced)
	}
}
