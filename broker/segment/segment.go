// Package segment keeps one stretch of a partition's log in files named by the
// offset it begins at. The files are Kafka's, bit for bit:
//
//	00000000000000000042.log        record batches, back to back
//	00000000000000000042.index      relative last offset u32 | position u32, for a batch every 4 KiB
//	00000000000000000042.timeindex  max timestamp so far i64 | relative last offset u32 of its batch
//	00000000000000000042.txnindex   aborted transactions, 34 bytes each, in order of their markers
//
// The indexes are derived: losing one costs time at open, never a record. Of the
// .log only the bytes below Size count; behind them there may be zeros, written
// ahead so that batches overwrite pages that are there already.
//
// One Writer appends to the last segment; any number of readers read beside it
// without a lock. A segment at rest has no file open: files are opened at first use
// through Files, which bounds their number, and close with their last reader.
package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"varve/broker/kafka"
	"varve/broker/vfs"
)

// Suffixes of a segment's files.
const (
	LogSuffix      = ".log"
	IndexSuffix    = ".index"
	TimeSuffix     = ".timeindex"
	TxnSuffix      = ".txnindex"
	SnapshotSuffix = ".snapshot"
)

// maxSpan is how far a batch's last offset may lie from the segment's base.
const maxSpan = math.MaxInt32

// NoTimestamp is the maximum timestamp of a segment without a time index entry.
const NoTimestamp int64 = -1

// unknownTimestamp stands for one that is still in the time index only.
const unknownTimestamp int64 = math.MinInt64

// A Home is where a partition's segments lie: a folder in a log.dir.
type Home struct {
	Store *Store
	Name  string // the folder's name under the Store's path
}

// A Store is one log.dir as segments see it.
type Store struct {
	FS    vfs.FS
	Path  string
	Files *Files
}

// Path is the folder's path.
func (h *Home) Path() string { return path.Join(h.Store.Path, h.Name) }

// File is the path of the file of the segment (or snapshot) at base.
func (h *Home) File(base kafka.Offset, suffix string) string {
	return path.Join(h.Store.Path, h.Name, FileName(base, suffix))
}

// FileName is a file's name: twenty digits and a suffix.
func FileName(base kafka.Offset, suffix string) string { return fmt.Sprintf("%020d%s", base, suffix) }

// ParseName is the inverse of FileName; ok is false for other files.
func ParseName(name string) (base kafka.Offset, suffix string, ok bool) {
	dot := strings.IndexByte(name, '.')
	if dot != 20 {
		return 0, "", false
	}
	n, err := strconv.ParseInt(name[:dot], 10, 64)
	if err != nil || n < 0 {
		return 0, "", false
	}
	return kafka.Offset(n), name[dot:], true
}

// A Segment is one stretch. Its Writer alone moves next, size and maxTS, in such an
// order that a reader who sees an offset sees its bytes.
type Segment struct {
	Base  kafka.Offset
	home  *Home
	next  atomic.Int64 // first offset behind the segment's batches; stored after size
	size  atomic.Int64 // bytes of whole batches
	maxTS atomic.Int64
	open  atomic.Pointer[handle]
}

// Facts are what is known of a segment without opening it.
type Facts struct {
	Base         kafka.Offset
	Next         kafka.Offset
	Size         int64
	MaxTimestamp int64 // ms; NoTimestamp if there is none
	TimestampSet bool  // false: MaxTimestamp is to be read from the time index at need
}

// New makes a segment of what is known of it; no file is touched.
func New(home *Home, f Facts) *Segment {
	s := &Segment{Base: f.Base, home: home}
	s.next.Store(int64(f.Next))
	s.size.Store(f.Size)
	s.maxTS.Store(f.MaxTimestamp)
	if !f.TimestampSet {
		s.maxTS.Store(unknownTimestamp)
	}
	return s
}

// Next is the first offset behind the segment's batches.
func (s *Segment) Next() kafka.Offset { return kafka.Offset(s.next.Load()) }

// Size is the bytes of the segment's batches.
func (s *Segment) Size() int64 { return s.size.Load() }

// MaxTimestamp is the highest timestamp of the segment in ms, or NoTimestamp; it is
// read from the time index where it is not known yet.
func (s *Segment) MaxTimestamp() (int64, error) {
	if ts := s.maxTS.Load(); ts != unknownTimestamp {
		return ts, nil
	}
	last, err := s.lastTimeEntry()
	if err != nil {
		return 0, err
	}
	s.maxTS.CompareAndSwap(unknownTimestamp, last.ts)
	return s.maxTS.Load(), nil
}

// lastTimeEntry is the last entry of the time index; without one, NoTimestamp.
func (s *Segment) lastTimeEntry() (timeEntry, error) {
	none := timeEntry{ts: NoTimestamp}
	f, err := s.home.Store.FS.Open(s.file(TimeSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return none, err
	}
	n := info.Size() / timeEntrySize
	if n == 0 {
		return none, nil
	}
	var b [timeEntrySize]byte
	if _, err := f.ReadAt(b[:], (n-1)*timeEntrySize); err != nil {
		return none, err
	}
	return decodeTime(b[:]), nil
}

// LastModified is when the segment's .log was written last.
func (s *Segment) LastModified() (time.Time, error) {
	info, err := s.home.Store.FS.Stat(s.file(LogSuffix))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Remove unlinks the segment's files, the .log first. Readers that have it open read on.
func (s *Segment) Remove() error {
	s.Retire()
	fsys := s.home.Store.FS
	for _, suffix := range []string{LogSuffix, IndexSuffix, TimeSuffix, TxnSuffix} {
		if err := fsys.Remove(s.file(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a segment: %w", err)
		}
	}
	return nil
}

func (s *Segment) file(suffix string) string { return s.home.File(s.Base, suffix) }

// Facts are what is known of the segment now.
func (s *Segment) Facts() Facts {
	next, size := s.extent()
	ts := s.maxTS.Load()
	return Facts{Base: s.Base, Next: next, Size: size, MaxTimestamp: ts, TimestampSet: ts != unknownTimestamp}
}
