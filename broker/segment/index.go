package segment

import (
	"encoding/binary"
	"sort"
	"sync"
	"sync/atomic"

	"varve/broker/kafka"
	"varve/broker/vfs"
)

const (
	indexEntrySize = 8
	timeEntrySize  = 12
)

// indexEntry is a batch with a place in the offset index.
type indexEntry struct {
	last uint32 // the batch's last offset - base
	pos  uint32
}

// timeEntry is the highest timestamp so far and the batch that has it.
type timeEntry struct {
	ts   int64
	last uint32
}

func appendIndex(b []byte, e indexEntry) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, e.last), e.pos)
}

func decodeIndex(b []byte) indexEntry {
	return indexEntry{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

func appendTime(b []byte, e timeEntry) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, uint64(e.ts)), e.last)
}

func decodeTime(b []byte) timeEntry {
	return timeEntry{int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint32(b[8:])}
}

// live is what a segment that is being written keeps in memory for its readers: both
// indexes and the places of the last batches.
type live struct {
	index column[indexEntry]
	times column[timeEntry]
	tail  tail
}

// column is a list that one appends to while others read it.
type column[T any] struct {
	rows atomic.Pointer[[]T] // its length is its capacity
	n    atomic.Int64
}

func (c *column[T]) append(v T) {
	n := int(c.n.Load())
	rows := c.rows.Load()
	if rows == nil || n == len(*rows) {
		grown := make([]T, max(16, 2*n))
		if rows != nil {
			copy(grown, *rows)
		}
		rows = &grown
		c.rows.Store(rows)
	}
	(*rows)[n] = v
	c.n.Store(int64(n + 1))
}

// all is what was appended so far. n is read first: the rows are then as new at least.
func (c *column[T]) all() []T {
	n := c.n.Load()
	if n == 0 {
		return nil
	}
	return (*c.rows.Load())[:n]
}

// tailSize is how many of the last batches a live segment finds without reading.
const tailSize = 64

// tail is a ring of the places of the last batches.
type tail struct {
	n   atomic.Int64 // batches put so far
	row [tailSize]struct{ base, last, pos, end atomic.Int64 }
}

// place is where a batch lies.
type place struct {
	base kafka.Offset
	last kafka.Offset
	pos  int64
	end  int64
}

func (t *tail) put(p place) {
	n := t.n.Load()
	r := &t.row[n%tailSize]
	r.base.Store(int64(p.base))
	r.last.Store(int64(p.last))
	r.pos.Store(p.pos)
	r.end.Store(p.end)
	t.n.Store(n + 1)
}

func (t *tail) at(i int64) place {
	r := &t.row[i%tailSize]
	return place{kafka.Offset(r.base.Load()), kafka.Offset(r.last.Load()), r.pos.Load(), r.end.Load()}
}

// first finds the first batch of which after is true, among those remembered; it is
// false of none before it. ok tells that the answer is certain: the batch before it
// is remembered too, and none was overwritten meanwhile.
func (t *tail) first(after func(place) bool) (p place, ok bool) {
	n := t.n.Load()
	// The oldest row may be being overwritten: it is not looked at.
	lo, hi := max(0, n-tailSize+1), n
	oldest := lo
	for lo < hi {
		mid := (lo + hi) / 2
		if after(t.at(mid)) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == n || lo == oldest {
		return place{}, false
	}
	p = t.at(lo)
	return p, t.n.Load()-oldest < tailSize
}

// floorIndex is the last entry of which after is not true; entries are in order.
// Without one it is the segment's beginning.
func floorIndex(entries []indexEntry, after func(indexEntry) bool) indexEntry {
	i := sort.Search(len(entries), func(i int) bool { return after(entries[i]) })
	if i == 0 {
		return indexEntry{}
	}
	return entries[i-1]
}

// indexPage is how much of an index file is read at once.
const indexPage = 512

var pages = sync.Pool{New: func() any { return new([indexPage]byte) }}

// floorFile is floorIndex over an index file of n entries.
func floorFile(f vfs.File, n int64, after func(indexEntry) bool) (indexEntry, error) {
	const page = indexPage / indexEntrySize
	buf := pages.Get().(*[indexPage]byte)
	defer pages.Put(buf)
	lo, hi := int64(0), n // the answer's successor is in [lo, hi]
	for hi-lo > page {
		mid := (lo + hi) / 2
		if _, err := f.ReadAt(buf[:indexEntrySize], mid*indexEntrySize); err != nil {
			return indexEntry{}, err
		}
		if after(decodeIndex(buf[:indexEntrySize])) {
			hi = mid
		} else {
			lo = mid
		}
	}
	b := buf[:(hi-lo)*indexEntrySize]
	if _, err := f.ReadAt(b, lo*indexEntrySize); err != nil {
		return indexEntry{}, err
	}
	var found indexEntry
	for ; len(b) > 0; b = b[indexEntrySize:] {
		e := decodeIndex(b)
		if after(e) {
			break
		}
		found = e
	}
	return found, nil
}
