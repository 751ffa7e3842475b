// Package commitlog keeps one partition's log: its segments in order, which leader
// epoch began where, what its producers may append, and how far it is durable. Dir
// keeps all logs of one log.dir, with the files that Kafka keeps beside them.
//
// A folder of a partition, as Kafka's:
//
//	orders-3/
//	    partition.metadata           topic id; this alone until the first append
//	    leader-epoch-checkpoint      epoch and its first offset, a line each
//	    00000000000000000042.log     and its indexes: see package segment
//	    00000000000000000042.snapshot  producers, from the records below 42
//
// One caller appends at a time; readers hold a View and take no lock. A log at rest
// is a few numbers: its files, producers and epochs are read at first use, and let go
// by Dir.Sweep, the one thing that happens by itself.
package commitlog

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/record"
	"varve/broker/segment"
)

// A Log is one partition's log.
//
// mu is held across the write of a batch, not only for memory: one appender at a time
// is the point of it, and handing batches to a goroutine costs more than the write.
type Log struct {
	mu   sync.Mutex
	hot  *hot // nil at rest; guarded by mu
	dir  *Dir
	home segment.Home
	id   kafka.TopicID
	tp   kafka.TopicPartition

	cfg    atomic.Pointer[Config]
	view   atomic.Pointer[View]
	epochs atomic.Pointer[Epochs] // nil: not read yet
	failed atomic.Pointer[StorageError]
	end    atomic.Int64 // LEO
	high   atomic.Int64 // high watermark as the owner last told it
	synced atomic.Int64 // durable below it: the recovery point
	txns   atomic.Int32 // txnsUnknown, txnsNone, txnsSome
	epoch  atomic.Int32 // of the leader that appends here
}

// What is known of transactions without the producers' state.
const (
	txnsUnknown = iota
	txnsNone    // none is open, and none was decided at or above the high watermark
	txnsSome
)

// hot is what a log has while it is appended to. Guarded by Log.mu but for flush.
type hot struct {
	writer    *segment.Writer
	producers *producer.State
	firstTS   int64 // timestamp of the segment's first batch
	jitter    int64 // ms that this segment rolls earlier
	touched   int64 // ms, of the last append
	trimmed   bool
	unflushed int             // records since the last flush
	flushDue  int64           // ms; 0: nothing to flush
	unsynced  []*segment.Held // rolled, and not durable yet
	newNames  bool            // files were made that the folder must be synced for
	epochsDue bool            // the epoch in force is not in the checkpoint yet
	expired   int64           // ms, when producers were last looked through

	flush sync.Mutex // group commit: one fsync at a time, for all who wait
}

// A View is the log's segments and bounds as they were at one moment; it never changes.
type View struct {
	segs       []*segment.Segment
	LogStart   kafka.Offset // first offset that may be read, here or in the tier
	LocalStart kafka.Offset // first offset that is on this disk
}

// find is the index of the last segment that begins at or before o; -1 if none does.
func (v *View) find(o kafka.Offset) int {
	lo, hi := 0, len(v.segs)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if v.segs[mid].Base <= o {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// Size is the bytes of all segments.
func (v *View) Size() (n int64) {
	for _, s := range v.segs {
		n += s.Size()
	}
	return n
}

// Errors that readers decide on.
var (
	// ErrOffsetOutOfRange: below the log start, or above the log end.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrNotLocal: in the log, but on this disk no more: ask the tier.
	ErrNotLocal = errors.New("offset is below the local log start")
	// ErrClosed: the log was closed or deleted.
	ErrClosed = errors.New("log is closed")
)

// A StorageError says that the disk failed a log, which takes no appends since.
type StorageError struct {
	Op   string
	Path string
	Err  error
}

func (e *StorageError) Error() string { return fmt.Sprintf("%s in %s: %v", e.Op, e.Path, e.Err) }

// Unwrap is the cause.
func (e *StorageError) Unwrap() error { return e.Err }

// Partition names the log.
func (l *Log) Partition() kafka.TopicPartition { return l.tp }

// TopicID is the id of the topic that the log belongs to.
func (l *Log) TopicID() kafka.TopicID { return l.id }

// Dir is the log.dir that the log lies in.
func (l *Log) Dir() *Dir { return l.dir }

// View is the log as it is now.
func (l *Log) View() *View { return l.view.Load() }

// End is the log end offset: what the next record gets.
func (l *Log) End() kafka.Offset { return kafka.Offset(l.end.Load()) }

// Start is the log start offset.
func (l *Log) Start() kafka.Offset { return l.view.Load().LogStart }

// Flushed is the offset below which everything is durable.
func (l *Log) Flushed() kafka.Offset { return kafka.Offset(l.synced.Load()) }

// HighWatermark is what SetHighWatermark told, or what the checkpoint had.
func (l *Log) HighWatermark() kafka.Offset { return kafka.Offset(l.high.Load()) }

// SetHighWatermark tells the high watermark, for the checkpoint.
func (l *Log) SetHighWatermark(o kafka.Offset) {
	if end := l.End(); o > end {
		panic(fmt.Sprintf("commitlog: %v: high watermark %d above log end %d", l.tp, o, end))
	}
	l.high.Store(int64(o))
	l.dir.touch()
}

// Config is the config in force.
func (l *Log) Config() *Config { return l.cfg.Load() }

// SetConfig replaces the config; c must not change afterwards. A log that the tier takes
// part in from now on has its log start in the checkpoint at once: the first local
// segment will not tell it any more.
func (l *Log) SetConfig(c *Config) {
	was := l.cfg.Swap(c)
	if was.Remote || !c.Remote || l.Start() == 0 {
		return
	}
	l.dir.touch()
	if err := l.dir.Checkpoint(); err != nil {
		l.dir.log.Warn("writing checkpoints failed; they are written again", "dir", l.dir.path, "error", err)
	}
}

// Failed is why the log takes no appends, or nil.
func (l *Log) Failed() error {
	if e := l.failed.Load(); e != nil {
		return e
	}
	return nil
}

// SegmentInfo is what retention and the tier want to know of a segment.
type SegmentInfo struct {
	Base         kafka.Offset
	Next         kafka.Offset
	Size         int64
	MaxTimestamp int64 // ms; segment.NoTimestamp if there is none
	Sealed       bool
}

// Segments lists the local segments.
func (l *Log) Segments() ([]SegmentInfo, error) {
	v := l.View()
	out := make([]SegmentInfo, len(v.segs))
	for i, s := range v.segs {
		ts, err := s.MaxTimestamp()
		if err != nil {
			return nil, fmt.Errorf("listing segments of %v: %w", l.tp, err)
		}
		if ts == segment.NoTimestamp && s.Size() > 0 { // as Kafka: records without a time are as old as the file
			at, err := s.LastModified()
			if err != nil {
				return nil, fmt.Errorf("listing segments of %v: %w", l.tp, err)
			}
			ts = at.UnixMilli()
		}
		out[i] = SegmentInfo{Base: s.Base, Next: s.Next(), Size: s.Size(), MaxTimestamp: ts, Sealed: i < len(v.segs)-1}
	}
	return out, nil
}

// FirstTimestamp is the time of the first batch of the segment that is written, in ms;
// segment.NoTimestamp where it has none. It reads the disk.
func (l *Log) FirstTimestamp() (int64, error) {
	v := l.View()
	ts := int64(segment.NoTimestamp)
	if len(v.segs) == 0 {
		return ts, nil
	}
	err := v.segs[len(v.segs)-1].First(func(b record.Batch) { ts = b.MaxTimestamp() })
	return ts, err
}

// publish replaces the view; mu is held.
func (l *Log) publish(segs []*segment.Segment, logStart, localStart kafka.Offset) {
	l.view.Store(&View{segs: segs, LogStart: logStart, LocalStart: localStart})
}

// fail closes the log for appends after a failed write (protocols §3-6): nothing may be
// written behind what may be torn, and a failed fsync is not tried again.
func (l *Log) fail(op string, err error) error {
	if l.view.Load() == closedView { // taken out meanwhile: its folder has another name, and the disk no fault
		return ErrClosed
	}
	e := &StorageError{Op: op, Path: l.home.Path(), Err: err}
	if l.failed.CompareAndSwap(nil, e) {
		l.dir.logFailed(l, e)
	}
	return e
}

// closedView is the view of a log that is no more.
var closedView = &View{}
