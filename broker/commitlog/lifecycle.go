package commitlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"varve/broker/kafka"
	"varve/broker/vfs"
)

// A MismatchError says that a folder is of another creation of the topic.
type MismatchError struct {
	Folder   string
	Got, Had kafka.TopicID
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s belongs to topic id %v, not %v: an older topic of that name", e.Folder, e.Had, e.Got)
}

// Create makes a partition's folder, with its topic id and nothing else: log files come
// with the first append.
func (d *Dir) Create(tp kafka.TopicPartition, id kafka.TopicID, cfg *Config) (*Log, error) {
	if err := d.Failed(); err != nil {
		return nil, err
	}
	l := d.newLog(tp, id, cfg)
	fail := func(err error) (*Log, error) {
		d.fail(err)
		return nil, fmt.Errorf("creating the log of %v: %w", tp, err)
	}
	if err := d.fs.Mkdir(l.home.Path(), 0o755); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("creating the log of %v: %w", tp, err)
	} else if err != nil {
		return fail(err)
	}
	if err := d.writeTopicID(l); err != nil {
		d.fs.RemoveAll(l.home.Path()) // made just now: the next try begins anew
		return fail(err)
	}
	l.publish(nil, 0, 0)
	l.epochs.Store(&Epochs{})
	l.txns.Store(txnsNone)
	return l, d.enter(l)
}

func (d *Dir) writeTopicID(l *Log) error {
	if l.id.IsZero() {
		return nil
	}
	return vfs.WriteFile(d.fs, path.Join(l.home.Path(), partitionFile), encodePartitionMetadata(l.id), false)
}

func (d *Dir) newLog(tp kafka.TopicPartition, id kafka.TopicID, cfg *Config) *Log {
	l := &Log{dir: d, tp: tp, id: id}
	l.home.Store, l.home.Name = &d.store, tp.String()
	l.cfg.Store(cfg)
	return l
}

// enter makes the log one of the Dir's.
func (d *Dir) enter(l *Log) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.mu.closed:
		return ErrClosed
	case d.mu.logs[l.home.Name] != nil:
		return fmt.Errorf("the log of %v is open already", l.tp)
	}
	d.mu.logs[l.home.Name] = l
	d.changed.Store(true)
	return nil
}

// Open opens the log of a folder that is there. Many may be opened at once. After a
// clean stop with its summary nothing is read; without, the folder is listed; after an
// unclean stop, what lies behind the recovery point is read and checked. id, if not
// zero, must be the folder's (*MismatchError).
func (d *Dir) Open(tp kafka.TopicPartition, id kafka.TopicID, cfg *Config) (*Log, error) {
	if err := d.Failed(); err != nil {
		return nil, err
	}
	l := d.newLog(tp, id, cfg)
	s := d.takeSummary(l.home.Name)
	f := Found{Name: l.home.Name}
	if s != nil {
		f.ID = s.id
	}
	had, err := d.TopicID(f)
	if err != nil {
		return nil, err
	}
	switch {
	case id.IsZero():
		l.id = had
	case had.IsZero():
		if err := d.writeTopicID(l); err != nil {
			return nil, fmt.Errorf("opening the log of %v: %w", tp, err)
		}
	case had != id:
		return nil, &MismatchError{path.Join(d.path, f.Name), id, had}
	}
	if s != nil {
		l.restore(s)
	} else if err := l.load(); err != nil {
		d.fail(err)
		return nil, fmt.Errorf("opening the log of %v: %w", tp, err)
	}
	return l, d.enter(l)
}

// takeSummary takes a log's entry out of the summary; it is of use once.
func (d *Dir) takeSummary(name string) *summaryEntry {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.summary[name]
	delete(d.summary, name)
	return s
}

// Delete takes a log out: its folder is renamed and goes after file.delete.delay.ms.
func (d *Dir) Delete(l *Log, now int64) error {
	name, err := d.setAside(l, "delete")
	if err != nil {
		return fmt.Errorf("deleting the log of %v: %w", l.tp, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.doomed = append(d.mu.doomed, doomed{name, now + l.cfg.Load().deleteDelay()})
	return nil
}

// SetAside takes a log out and leaves its folder as a stray, for people to decide on.
func (d *Dir) SetAside(l *Log) (string, error) {
	name, err := d.setAside(l, "stray")
	if err != nil {
		return "", fmt.Errorf("setting the log of %v aside: %w", l.tp, err)
	}
	return path.Join(d.path, name), nil
}

// setAside closes a log and renames its folder.
func (d *Dir) setAside(l *Log, kind string) (string, error) {
	l.mu.Lock()
	err := l.coolLocked()
	segs := l.view.Load().segs
	l.view.Store(closedView)
	l.mu.Unlock()
	if err != nil {
		d.log.Warn("closing a log that is taken out", "partition", l.tp.String(), "error", err)
	}
	for _, s := range segs {
		s.Retire()
	}
	d.mu.Lock()
	if d.mu.logs[l.home.Name] == l {
		delete(d.mu.logs, l.home.Name)
	}
	d.mu.Unlock()
	d.touch()
	name := asideName(l.home.Name, kind)
	if err := d.fs.Rename(l.home.Path(), path.Join(d.path, name)); err != nil {
		return "", d.fail(err)
	}
	return name, nil
}

// asideName is a folder's name as Kafka makes it, of at most 255 bytes.
func asideName(name, kind string) string {
	var b [16]byte
	rand.Read(b[:])
	suffix := "." + hex.EncodeToString(b[:]) + "-" + kind
	return name[:min(len(name), 255-len(suffix))] + suffix
}

// coolLocked brings a log to rest: what is derived reaches its files, and they close.
// What is not durable stays above the recovery point. mu is held.
func (l *Log) coolLocked() error {
	h := l.hot
	if h == nil {
		return nil
	}
	l.hot = nil
	l.dir.cooled(l)
	for _, f := range h.unsynced {
		f.Release() // the recovery point is below it still
	}
	if l.failed.Load() != nil {
		h.writer.Abandon()
		return nil
	}
	err := l.trim(h)
	if cerr := h.writer.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return l.fail("closing a segment", err)
	}
	if err := l.writeSnapshot(h.producers, l.End()); err != nil {
		return l.fail("writing a producer snapshot", err)
	}
	l.dropSnapshots(l.End())
	return nil
}

// CloseClean closes all logs durably and marks the stop as clean, unless the disk
// failed, ctx ends before, or the ends are still in doubt. The Dir is not to be used
// afterwards.
func (d *Dir) CloseClean(ctx context.Context, brokerEpoch int64) error {
	err := d.closeLogs(ctx)
	if err == nil {
		d.changed.Store(true)
		err = d.Checkpoint()
	}
	switch {
	case err == nil && d.doubt:
		d.log.Info("the stop is not marked as clean: logs may have lost their end in a power cut, and nobody was told yet", "dir", d.path)
	case err == nil:
		err = d.writeMarker(brokerEpoch)
	}
	d.release()
	if err != nil {
		return fmt.Errorf("closing log dir %s: %w", d.path, err)
	}
	return nil
}

// Abandon closes the Dir as a crash would: nothing is written.
func (d *Dir) Abandon() {
	for _, l := range d.Logs() {
		l.mu.Lock()
		if h := l.hot; h != nil {
			l.hot = nil
			for _, f := range h.unsynced {
				f.Release()
			}
			h.writer.Abandon()
		}
		segs := l.view.Load().segs
		l.view.Store(closedView)
		l.mu.Unlock()
		for _, s := range segs {
			s.Retire()
		}
	}
	d.release()
}

func (d *Dir) release() {
	d.mu.Lock()
	closed := d.mu.closed
	d.mu.closed = true
	d.mu.Unlock()
	if !closed {
		d.lock.Close()
	}
}

// closers is how many logs are closed at a time: fsyncs share the journal's commits.
const closers = 32

func (d *Dir) closeLogs(ctx context.Context) error {
	if err := d.Failed(); err != nil {
		return err
	}
	logs := d.Logs()
	errs := make(chan error, closers)
	for w := range closers {
		go func() {
			var err error
			for i := w; i < len(logs) && err == nil; i += closers {
				if err = ctx.Err(); err == nil {
					err = logs[i].closeClean()
				}
			}
			errs <- err
		}()
	}
	var err error
	for range closers {
		if werr := <-errs; err == nil {
			err = werr
		}
	}
	if err == nil {
		err = d.fs.SyncDir(d.path)
	}
	return err
}

// closeClean brings a log to rest for good, all of it durable.
func (l *Log) closeClean() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Failed(); err != nil {
		return err
	}
	if err := l.coolLocked(); err != nil {
		return err
	}
	if err := l.flushCold(true); err != nil {
		return err
	}
	for _, s := range l.view.Load().segs {
		s.Retire()
	}
	return nil
}
