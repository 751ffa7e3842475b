package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/record"
	"varve/broker/segment"
	"varve/broker/vfs"
)

// listing is what a partition's folder holds.
type listing struct {
	segs    []segment.Facts       // by base; Next is not known yet
	indexed map[kafka.Offset]bool // has a .index
	txns    map[kafka.Offset]bool // has a .txnindex
	snaps   []kafka.Offset        // in order
	swapped bool                  // a compaction was finished for a killed Kafka
}

// load makes the log of its folder: listed after a clean stop, recovered after another.
func (l *Log) load() error {
	ls, err := l.list()
	if err != nil {
		return err
	}
	d := l.dir
	recovery := d.recovery[l.home.Name]
	start := d.starts[l.home.Name]
	var segs []*segment.Segment
	if d.clean && !ls.swapped {
		segs, err = l.trust(ls, recovery)
	} else {
		segs, err = l.recover(ls, recovery)
	}
	if err != nil {
		return err
	}
	return l.settle(segs, start, recovery)
}

// settle sets the bounds by what is there and what the checkpoints say.
func (l *Log) settle(segs []*segment.Segment, start, recovery kafka.Offset) error {
	if n := len(segs); n > 0 && segs[n-1].Next() < start {
		l.dir.log.Warn("log ends below its log start and begins anew there", "partition", l.tp.String(),
			"end", int64(segs[n-1].Next()), "start", int64(start))
		for _, s := range segs {
			if err := s.Remove(); err != nil {
				return err
			}
		}
		segs = nil
	}
	end := max(start, recovery)
	local := end
	if n := len(segs); n > 0 {
		end, local = segs[n-1].Next(), max(segs[0].Base, start)
	}
	logStart := local
	if l.cfg.Load().Remote {
		// KAFKA-15351: the tier's part begins where the checkpoint says. One without the
		// log says nothing: the log may have been made since, and its first segments
		// may be in the tier alone. The manifest raises a start that is too low.
		logStart = min(start, local)
	}
	l.publish(segs, logStart, local)
	l.end.Store(int64(end))
	// KAFKA-16452: neither may be below what is there.
	l.high.Store(int64(max(min(l.dir.highs[l.home.Name], end), local)))
	l.synced.Store(int64(max(min(recovery, end), local)))
	if l.dir.clean {
		l.synced.Store(int64(end))
	}
	return nil
}

// list reads the folder, finishing what a Kafka was killed in.
func (l *Log) list() (listing, error) {
	ls := listing{indexed: map[kafka.Offset]bool{}, txns: map[kafka.Offset]bool{}}
	entries, err := l.dir.fs.ReadDir(l.home.Path())
	if err != nil {
		return ls, err
	}
	if unfinished(entries) {
		if err := l.finishSwaps(&ls, entries); err != nil {
			return ls, err
		}
		if entries, err = l.dir.fs.ReadDir(l.home.Path()); err != nil {
			return ls, err
		}
	}
	for _, e := range entries {
		base, suffix, ok := segment.ParseName(e.Name())
		if !ok {
			continue
		}
		switch suffix {
		case segment.IndexSuffix:
			ls.indexed[base] = true
		case segment.TxnSuffix:
			ls.txns[base] = true
		case segment.SnapshotSuffix:
			ls.snaps = append(ls.snaps, base)
		case segment.LogSuffix:
			info, err := e.Info()
			if err != nil {
				return ls, err
			}
			ls.segs = append(ls.segs, segment.Facts{Base: base, Size: info.Size()})
		}
	}
	slices.SortFunc(ls.segs, func(a, b segment.Facts) int { return int(max(-1, min(1, a.Base-b.Base))) })
	for i := range ls.segs[:max(0, len(ls.segs)-1)] {
		ls.segs[i].Next = ls.segs[i+1].Base
	}
	return ls, nil
}

// unfinished tells whether there is something for finishSwaps.
func unfinished(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		suffix := path.Ext(e.Name())
		return suffix == ".swap" || suffix == ".cleaned" || suffix == ".deleted" || suffix == ".tmp"
	})
}

// finishSwaps removes what a Kafka had begun and not finished (.cleaned, .deleted, our
// own .tmp), and puts in place what it had finished (.swap), instead of the segments
// that a swapped one covers.
func (l *Log) finishSwaps(ls *listing, entries []fs.DirEntry) error {
	fsys, dir := l.dir.fs, l.home.Path()
	var swaps []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasSuffix(name, ".cleaned"), strings.HasSuffix(name, ".deleted"), strings.HasSuffix(name, ".tmp"):
			if err := fsys.Remove(path.Join(dir, name)); err != nil {
				return err
			}
		case strings.HasSuffix(name, ".swap"):
			swaps = append(swaps, strings.TrimSuffix(name, ".swap"))
		}
	}
	for _, name := range swaps {
		ls.swapped = true
		base, suffix, ok := segment.ParseName(name)
		if ok && suffix == segment.LogSuffix {
			if err := l.dropCovered(path.Join(dir, name+".swap"), base, entries); err != nil {
				return err
			}
		}
	}
	for _, name := range swaps {
		if err := fsys.Rename(path.Join(dir, name+".swap"), path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// dropCovered removes the segments whose records a swapped one holds.
func (l *Log) dropCovered(swap string, base kafka.Offset, entries []fs.DirEntry) error {
	f, err := l.dir.fs.Open(swap)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	next := base
	for sc := segment.NewScanner(f, 0, info.Size()); ; {
		step, err := sc.Next()
		if err != nil {
			break
		}
		next = step.Batch.NextOffset()
	}
	for _, e := range entries {
		o, suffix, ok := segment.ParseName(e.Name())
		if ok && o >= base && o < next && suffix != segment.SnapshotSuffix && !strings.HasSuffix(suffix, ".swap") {
			if err := l.dir.fs.Remove(path.Join(l.home.Path(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// trust takes the files of a clean stop as they are. The recovery point is the end.
func (l *Log) trust(ls listing, recovery kafka.Offset) ([]*segment.Segment, error) {
	segs := make([]*segment.Segment, len(ls.segs))
	for i, f := range ls.segs {
		if i == len(ls.segs)-1 {
			f.Next = recovery
			if f.Size == 0 {
				f.Next = f.Base
			} else if recovery <= f.Base {
				next, err := segment.Discover(&l.home, f.Base, f.Size)
				if err != nil {
					l.dir.log.Warn("log was not closed well, though the stop was clean, and is checked", "partition", l.tp.String(), "error", err)
					return l.recover(ls, f.Base)
				}
				f.Next = next
			}
		}
		segs[i] = segment.New(&l.home, f)
		if f.Size > 4096 && !ls.indexed[f.Base] {
			if err := segs[i].RemakeIndexes(l.cfg.Load().options()); err != nil {
				return nil, err
			}
		}
	}
	return segs, nil
}

// recovering is the state of a log's recovery.
type recovering struct {
	producers *producer.State
	were      *Epochs // in the checkpoint
	epochs    *Epochs
	aborted   []byte
	listing
}

// recover checks every segment that is not wholly below the recovery point, from its
// beginning: batches are read, their checksums checked, indexes, producers and epochs
// made again. At the first batch that is not whole the log is cut; segments behind it
// are set aside.
func (l *Log) recover(ls listing, recovery kafka.Offset) ([]*segment.Segment, error) {
	var segs []*segment.Segment
	i := 0
	for ; i < len(ls.segs)-1 && ls.segs[i].Next <= recovery; i++ {
		s := segment.New(&l.home, ls.segs[i])
		if ls.segs[i].Size > 4096 && !ls.indexed[s.Base] {
			if err := s.RemakeIndexes(l.cfg.Load().options()); err != nil {
				return nil, err
			}
		}
		segs = append(segs, s)
	}
	if i == len(ls.segs) {
		return segs, nil
	}
	rec, err := l.beginRecovery(ls, segs, ls.segs[i].Base)
	if err != nil {
		return nil, err
	}
	for ; i < len(ls.segs); i++ {
		base := ls.segs[i].Base
		if n := len(segs); n > 0 && base < segs[n-1].Next() {
			err := l.setSegmentsAside(ls.segs[i:], fmt.Errorf("it overlaps the segment before it, which ends at %d", segs[n-1].Next()))
			return segs, l.endRecovery(rec, segs, err)
		}
		r, err := segment.Recover(&l.home, base, l.cfg.Load().options(), rec.see)
		if err != nil {
			return nil, err
		}
		if err := l.writeAborted(rec, base); err != nil {
			return nil, err
		}
		segs = append(segs, r.Segment)
		if r.Cut > 0 || r.Reason != nil {
			l.dir.log.Warn("log did not end well and was cut", "partition", l.tp.String(), "segment", l.home.File(base, segment.LogSuffix),
				"end", int64(r.Segment.Next()), "bytes cut", r.Cut, "reason", fmt.Sprint(r.Reason))
			if i+1 < len(ls.segs) {
				err := l.setSegmentsAside(ls.segs[i+1:], fmt.Errorf("the segment before it is damaged behind offset %d", r.Segment.Next()-1))
				return segs, l.endRecovery(rec, segs, err)
			}
		}
	}
	return segs, l.endRecovery(rec, segs, nil)
}

// beginRecovery makes the state as of the first segment that is checked.
func (l *Log) beginRecovery(ls listing, trusted []*segment.Segment, base kafka.Offset) (*recovering, error) {
	l.publish(trusted, 0, 0)
	l.end.Store(int64(base))
	s := producer.New(producer.Params{Partition: l.tp, ExpireMs: l.cfg.Load().ProducerExpireMs})
	var err error
	if len(trusted) > 0 || len(ls.snaps) > 0 && ls.snaps[0] <= base {
		s, err = l.loadProducers(base)
	}
	if err != nil {
		l.dir.log.Warn("producers begin anew", "partition", l.tp.String(), "error", err)
		s = producer.New(producer.Params{Partition: l.tp, ExpireMs: l.cfg.Load().ProducerExpireMs})
	}
	e, err := l.readEpochs()
	if err != nil {
		l.dir.log.Warn("leader epochs begin anew", "partition", l.tp.String(), "error", err)
		e = &Epochs{}
	}
	return &recovering{producers: s, were: e, epochs: e.upTo(base), listing: ls}, nil
}

// see takes note of a batch that stays.
func (r *recovering) see(b record.Batch) error {
	r.epochs = r.epochs.assign(b.LeaderEpoch(), b.BaseOffset())
	aborted, err := note(r.producers, b)
	if err == nil && aborted != nil {
		r.aborted = producer.EncodeAborted(r.aborted, *aborted)
	}
	return nil
}

// writeAborted writes the index of aborted transactions of a recovered segment.
func (l *Log) writeAborted(r *recovering, base kafka.Offset) error {
	b := r.aborted
	if len(b) == 0 && !r.txns[base] {
		return nil
	}
	r.aborted = nil
	return vfs.WriteFile(l.dir.fs, l.home.File(base, segment.TxnSuffix), b, false)
}

// endRecovery writes what was made again. Snapshots of offsets that are gone go.
func (l *Log) endRecovery(r *recovering, segs []*segment.Segment, err error) error {
	if err != nil {
		return err
	}
	end := segs[len(segs)-1].Next()
	l.epochs.Store(r.epochs)
	if !slices.Equal(r.were.list, r.epochs.list) {
		if err := l.writeEpochs(r.epochs, false); err != nil {
			return err
		}
	}
	for _, o := range r.snaps {
		if o > end {
			l.removeSnapshot(o)
		}
	}
	return nil
}

// setSegmentsAside moves segments into a -stray folder beside the log's.
func (l *Log) setSegmentsAside(segs []segment.Facts, why error) error {
	dir := path.Join(l.dir.path, asideName(l.home.Name, "stray"))
	if err := l.dir.fs.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, s := range segs {
		for _, suffix := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeSuffix, segment.TxnSuffix} {
			name := segment.FileName(s.Base, suffix)
			err := l.dir.fs.Rename(path.Join(l.home.Path(), name), path.Join(dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	l.dir.log.Error("segments were set aside", "partition", l.tp.String(), "from", int64(segs[0].Base), "segments", len(segs), "to", dir, "reason", why)
	return nil
}
