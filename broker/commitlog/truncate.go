package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/segment"
	"varve/broker/vfs"
)

// TruncateTo cuts the log so that it ends at o, or before the batch that holds o.
func (l *Log) TruncateTo(o kafka.Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o >= l.End() {
		return nil
	}
	v := l.view.Load()
	if o < v.LocalStart {
		return fmt.Errorf("truncating %v to %d: below the local start %d: %w", l.tp, o, v.LocalStart, ErrOffsetOutOfRange)
	}
	if err := l.coolLocked(); err != nil {
		return err
	}
	if err := l.truncate(v, o); err != nil {
		return l.fail("truncating", err)
	}
	l.dir.log.Info("log truncated", "partition", l.tp.String(), "end", l.end.Load())
	return nil
}

func (l *Log) truncate(v *View, o kafka.Offset) error {
	i := max(v.find(o), 0)
	if i > 0 && v.segs[i].Base == o {
		i-- // the segment goes as a whole, the one before stays as it is
	}
	for k := len(v.segs) - 1; k > i; k-- {
		if err := v.segs[k].Remove(); err != nil {
			return err
		}
	}
	cut := v.segs[i]
	if cut.Next() > o {
		var err error
		if cut, err = cut.Truncate(o, l.cfg.Load().options()); err != nil {
			return err
		}
	}
	end := cut.Next()
	segs := append(append([]*segment.Segment(nil), v.segs[:i]...), cut)
	l.publish(segs, min(v.LogStart, end), v.LocalStart)
	l.end.Store(int64(end))
	l.high.Store(min(l.high.Load(), int64(end)))
	l.synced.Store(min(l.synced.Load(), int64(end)))
	l.txns.Store(txnsUnknown)
	l.dir.touch()
	if err := l.cutDerived(cut.Base, end); err != nil {
		return err
	}
	e, err := l.Epochs()
	if err != nil {
		return err
	}
	l.epochs.Store(e.upTo(end))
	return l.writeEpochs(e.upTo(end), true)
}

// cutDerived removes what snapshots and the index of aborted transactions tell of
// offsets that are gone.
func (l *Log) cutDerived(base, end kafka.Offset) error {
	offsets, err := l.snapshots()
	if err != nil {
		return err
	}
	for _, o := range offsets {
		if o > end {
			l.removeSnapshot(o)
		}
	}
	name := l.home.File(base, segment.TxnSuffix)
	b, err := vfs.ReadFile(l.dir.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []byte
	for ; len(b) >= producer.AbortedSize; b = b[producer.AbortedSize:] {
		if t, err := producer.DecodeAborted(b); err == nil && t.Last < end {
			kept = producer.EncodeAborted(kept, t)
		}
	}
	return vfs.WriteFile(l.dir.fs, name, kept, false)
}

// TruncateFullyAndStartAt removes everything; the log begins and ends at o, locally
// and, unless keepLogStart, as a whole (a follower's bootstrap, T12).
func (l *Log) TruncateFullyAndStartAt(o kafka.Offset, keepLogStart bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.coolLocked(); err != nil {
		return err
	}
	v := l.view.Load()
	start := o
	if keepLogStart {
		start = min(v.LogStart, o)
	}
	l.beginAt(o, start)
	for _, s := range v.segs {
		if err := s.Remove(); err != nil {
			return l.fail("truncating", err)
		}
	}
	offsets, err := l.snapshots()
	if err != nil {
		return l.fail("truncating", err)
	}
	for _, s := range offsets {
		l.removeSnapshot(s)
	}
	if err := l.writeEpochs(&Epochs{}, false); err != nil {
		return l.fail("truncating", err)
	}
	return nil
}

// LeaveBehind sets what the log holds aside, in a folder of its own for people to
// decide on, and begins it anew at o, in a fresh folder (T12).
func (l *Log) LeaveBehind(o kafka.Offset) (folder string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.coolLocked(); err != nil {
		return "", err
	}
	v := l.view.Load()
	l.beginAt(o, min(v.LogStart, o))
	for _, s := range v.segs {
		s.Retire()
	}
	d := l.dir
	folder = path.Join(d.path, asideName(l.home.Name, "stray"))
	if err := d.fs.Rename(l.home.Path(), folder); err != nil {
		return "", l.fail("setting records aside", err)
	}
	if err := d.fs.Mkdir(l.home.Path(), 0o755); err != nil {
		return "", l.fail("setting records aside", err)
	}
	if err := d.writeTopicID(l); err != nil {
		return "", l.fail("setting records aside", err)
	}
	return folder, nil
}

// beginAt makes the log an empty one that ends at o; mu is held.
func (l *Log) beginAt(o, start kafka.Offset) {
	l.publish(nil, start, o)
	l.end.Store(int64(o))
	l.high.Store(int64(o))
	l.synced.Store(int64(o))
	l.txns.Store(txnsUnknown)
	l.epochs.Store(&Epochs{})
	l.dir.touch()
}

// Adopt puts the epochs and the producers of a tiered log's end into a log that begins
// there: after TruncateFullyAndStartAt, before the first append (T12).
func (l *Log) Adopt(epochs []kafka.EpochStart, snapshot []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.view.Load().segs) > 0 {
		panic(fmt.Sprintf("commitlog: %v: adopting into a log that has records", l.tp))
	}
	e := &Epochs{}
	for _, s := range epochs {
		e = e.assign(s.Epoch, s.Start)
	}
	if err := l.writeEpochs(e, true); err != nil {
		return l.fail("adopting epochs", err)
	}
	l.epochs.Store(e)
	if len(snapshot) == 0 {
		return nil
	}
	if err := vfs.WriteFile(l.dir.fs, l.home.File(l.End(), segment.SnapshotSuffix), snapshot, true); err != nil {
		return l.fail("adopting producers", err)
	}
	return nil
}
