package commitlog

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/segment"
	"varve/broker/vfs"
)

// rollFor begins a new segment where Kafka would before this batch: the segment would
// become too long, is too old by the batches' timestamps, an index is full, or the
// offset is too far from the base.
func (l *Log) rollFor(h *hot, b record.Batch, now int64) (bool, error) {
	s := l.active()
	size := s.Size()
	if size == 0 {
		return false, nil
	}
	c := l.cfg.Load()
	if size > c.segmentBytes()-int64(len(b)) ||
		b.MaxTimestamp()-h.firstTS > c.segmentMs()-h.jitter ||
		h.writer.IndexFull() ||
		b.LastOffset()-s.Base > math.MaxInt32 {
		return true, l.roll(h, b.BaseOffset(), now)
	}
	return false, nil
}

// roll closes the active segment and begins one at base; mu is held.
func (l *Log) roll(h *hot, base kafka.Offset, now int64) error {
	held := h.writer.Retain()
	h.unsynced = append(h.unsynced, held)
	if err := h.writer.Close(); err != nil {
		return l.fail(opRoll, err)
	}
	if err := l.writeSnapshot(h.producers, base); err != nil {
		return l.fail(opRoll, err)
	}
	s := segment.New(&l.home, segment.Facts{Base: base, Next: base, MaxTimestamp: segment.NoTimestamp, TimestampSet: true})
	w, err := segment.OpenWriter(s, l.cfg.Load().options())
	if err != nil {
		s.Remove() // an empty file would stand between records
		return l.fail(opRoll, err)
	}
	v := l.view.Load()
	l.publish(append(v.segs[:len(v.segs):len(v.segs)], s), v.LogStart, v.LocalStart)
	l.end.Store(int64(base))
	h.newNames = true
	l.begin(h, w, now)
	l.dropSnapshots(base)
	return nil
}

// Roll begins a new segment, unless the active one is empty.
func (l *Log) Roll(now int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if segs := l.view.Load().segs; len(segs) == 0 || segs[len(segs)-1].Size() == 0 {
		return nil
	}
	h, err := l.wake(now)
	if err != nil {
		return err
	}
	return l.roll(h, l.End(), now)
}

// Flush makes everything appended so far durable.
func (l *Log) Flush() error {
	l.mu.Lock()
	h := l.hot
	l.mu.Unlock()
	if h == nil || l.Flushed() >= l.End() {
		return l.flushCold(false)
	}
	return l.syncTo(h, l.End())
}

// flushCold makes durable what a log at rest has not synced. At the close of a Dir the
// folder of all logs is synced once for all.
func (l *Log) flushCold(closing bool) error {
	end := l.End()
	if l.Flushed() >= end {
		return nil
	}
	for _, s := range l.View().segs {
		if s.Next() <= l.Flushed() {
			continue
		}
		if err := s.Sync(); err != nil {
			return l.fail("flushing", err)
		}
	}
	if err := l.syncFolder(); err != nil {
		return l.fail("flushing", err)
	}
	if !closing {
		if err := l.dir.fs.SyncDir(l.dir.path); err != nil {
			return l.fail("flushing", err)
		}
	}
	l.advance(end)
	return nil
}

// syncTo is the group commit: one caller syncs for all that wait; who comes after and
// finds its records durable does nothing.
func (l *Log) syncTo(h *hot, end kafka.Offset) error {
	h.flush.Lock()
	defer h.flush.Unlock()
	if l.Flushed() >= end {
		return nil
	}
	l.mu.Lock()
	if e := l.failed.Load(); e != nil {
		l.mu.Unlock()
		return e
	}
	if l.hot != h { // went to rest meanwhile
		l.mu.Unlock()
		return l.flushCold(false)
	}
	held := append(h.unsynced, h.writer.Retain())
	names, upTo := h.newNames, l.End()
	h.unsynced, h.newNames, h.unflushed, h.flushDue = nil, false, 0, 0
	l.mu.Unlock()

	var err error
	for _, f := range held {
		if serr := f.Sync(); err == nil {
			err = serr
		}
	}
	if err == nil && names {
		err = l.syncNames()
	}
	if err != nil {
		return l.fail("flushing", err)
	}
	l.advance(upTo)
	return nil
}

// syncNames makes the names of files durable, and the epochs that the records rest on.
func (l *Log) syncNames() error {
	if err := l.syncFolder(); err != nil {
		return err
	}
	return l.dir.fs.SyncDir(l.dir.path)
}

// syncFolder is syncNames but for the name of the log's own folder.
func (l *Log) syncFolder() error {
	f, err := l.dir.fs.OpenFile(path.Join(l.home.Path(), epochFile), os.O_RDWR, 0)
	if err == nil {
		err = f.Sync()
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.dir.fs.SyncDir(l.home.Path())
}

// advance raises the recovery point.
func (l *Log) advance(to kafka.Offset) {
	for {
		at := l.synced.Load()
		if at >= int64(to) {
			return
		}
		if l.synced.CompareAndSwap(at, int64(to)) {
			l.dir.touch()
			return
		}
	}
}

// writeSnapshot writes the producers' state as of offset end. It is not synced: a
// snapshot carries its checksum, and recovery does without one.
func (l *Log) writeSnapshot(s stateWriter, end kafka.Offset) error {
	return vfs.WriteFile(l.dir.fs, l.home.File(end, segment.SnapshotSuffix), s.MarshalSnapshot(nil), false)
}

type stateWriter interface{ MarshalSnapshot([]byte) []byte }
