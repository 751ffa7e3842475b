package commitlog

import (
	"path"

	"varve/broker/segment"
	"varve/broker/vfs"
)

// How long a log is without an append, in ms, until what it holds is let go.
const (
	trimAfter     = 1_000       // zeros written ahead
	restAfter     = 30_000      // files, indexes
	restProducers = 10 * 60_000 // where clients may still repeat a batch of their window
	expireEvery   = 60_000
)

// healSpace is how much must be free before a log that met a full disk goes on.
const healSpace = 8 << 20

// Sweep does what is due at now (ms) in all logs that were written lately: flushes by
// time, flushes rolled segments, cuts zeros, brings logs to rest, goes on after a full
// disk, and removes deleted folders. It is to be called once a second; logs at rest
// cost it nothing.
func (d *Dir) Sweep(now int64) {
	if d.Failed() != nil {
		return
	}
	d.mu.Lock()
	logs := make([]*Log, 0, len(d.mu.hot))
	for l := range d.mu.hot {
		logs = append(logs, l)
	}
	d.mu.Unlock()
	for _, l := range logs {
		l.sweep(now)
	}
	d.sweepDoomed(now)
}

// sweep looks after one log.
func (l *Log) sweep(now int64) {
	if !l.mu.TryLock() { // being appended to, and not idle
		return
	}
	h := l.hot
	var flush bool
	if e := l.failed.Load(); e != nil {
		l.heal(e)
	} else if h != nil {
		if flush = len(h.unsynced) > 0 || h.flushDue > 0 && now >= h.flushDue; !flush {
			l.settleIdle(h, now)
		}
	}
	l.mu.Unlock()
	if flush {
		end := l.End()
		if l.Flushed() < end {
			l.syncTo(h, end)
		}
	}
}

// settleIdle lets go what an idle log holds; mu is held.
func (l *Log) settleIdle(h *hot, now int64) {
	idle := now - h.touched
	if now-h.expired >= expireEvery {
		h.expired = now
		h.producers.Expire(segment.NoTimestamp) // by the log's own time (§3-17)
	}
	if idle >= trimAfter && !h.trimmed {
		if err := l.trim(h); err != nil {
			l.fail("cutting what was written ahead", err)
			return
		}
	}
	rest := int64(restAfter)
	if h.producers.Len() > 0 {
		rest = restProducers
	}
	if idle >= rest && h.producers.OpenTxns() == 0 {
		l.coolLocked()
	}
}

// healable are the failed writes that leave no more behind than a torn tail.
var healable = map[string]bool{opAppend: true, opRoll: true, opEpochs: true}

// trim cuts the zeros behind the log. Where all records are durable their file's size
// becomes so too: a clean stop promises it.
func (l *Log) trim(h *hot) error {
	h.trimmed = true
	cut, err := h.writer.Trim()
	if err != nil || !cut || l.Flushed() < l.End() {
		return err
	}
	return h.writer.Sync()
}

// heal lets a log go on that met a full disk, when there is space again: what the
// failed write left is cut, and nothing acknowledged is behind it. A failed fsync, or a
// disk that failed otherwise, is not healed. mu is held.
func (l *Log) heal(e *StorageError) {
	if !vfs.Full(e.Err) || !healable[e.Op] {
		return
	}
	if _, free, err := l.dir.fs.Space(l.dir.path); err != nil || free < healSpace {
		return
	}
	if err := l.coolLocked(); err != nil {
		return
	}
	if err := l.active().TrimFile(); err != nil {
		l.dir.log.Warn("cutting a log after the disk was full", "partition", l.tp.String(), "error", err)
		l.dir.warm(l)
		return
	}
	l.failed.Store(nil)
	l.dir.log.Info("log goes on after the disk was full", "partition", l.tp.String(), "end", l.end.Load())
}

// sweepDoomed removes the deleted folders whose time is up.
func (d *Dir) sweepDoomed(now int64) {
	d.mu.Lock()
	var due []string
	kept := d.mu.doomed[:0]
	for _, x := range d.mu.doomed {
		if now >= x.at {
			due = append(due, x.name)
		} else {
			kept = append(kept, x)
		}
	}
	d.mu.doomed = kept
	d.mu.Unlock()
	for _, name := range due {
		if err := d.fs.RemoveAll(path.Join(d.path, name)); err != nil && !vfs.Full(err) {
			d.log.Warn("removing a deleted log", "folder", name, "error", err)
		}
	}
}
