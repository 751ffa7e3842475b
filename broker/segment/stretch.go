package segment

import (
	"errors"
	"io"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
)

// An Indexer makes the indexes of batches that it is shown in order, from position 0
// on: those that a segment of just these batches would have.
type Indexer struct {
	opt    Options
	base   kafka.Offset
	pos    int64
	since  int
	maxTS  int64
	maxRel uint32
	lastTS int64
	index  []byte
	times  []byte
}

// NewIndexer returns an Indexer of no batches.
func NewIndexer(opt Options) *Indexer {
	return &Indexer{opt: opt, base: kafka.NoOffset, maxTS: NoTimestamp, lastTS: NoTimestamp}
}

// add takes note of the next batch, of which the header is enough.
func (x *Indexer) add(b record.Batch, size int64) {
	if x.base == kafka.NoOffset {
		x.base = b.BaseOffset()
	}
	last := uint32(b.LastOffset() - x.base)
	if ts := b.MaxTimestamp(); ts > x.maxTS {
		x.maxTS, x.maxRel = ts, last
	}
	if x.since > x.opt.IndexInterval {
		x.index = appendIndex(x.index, indexEntry{last, uint32(x.pos)})
		x.noteTime()
		x.since = 0
	}
	x.since += int(size)
	x.pos += size
}

func (x *Indexer) noteTime() {
	if x.maxTS > x.lastTS {
		x.times = appendTime(x.times, timeEntry{x.maxTS, x.maxRel})
		x.lastTS = x.maxTS
	}
}

// Finish returns the two indexes and the highest timestamp.
func (x *Indexer) Finish() (index, times []byte, maxTimestamp int64) {
	x.noteTime()
	return x.index, x.times, x.maxTS
}

// A Stretch is a run of a segment's batches.
type Stretch struct {
	Run         vfs.Run
	First, Next kafka.Offset
}

// Stretch finds the batches that end behind r.Start and at or below r.End, and shows
// them to ix. The run must be released.
func (s *Segment) Stretch(r kafka.Range, ix *Indexer) (Stretch, error) {
	_, size := s.extent()
	h, err := s.acquire()
	if err != nil {
		return Stretch{}, err
	}
	at, err := s.locate(h, r.Start, size)
	if err != nil || at.pos < 0 {
		h.Release()
		return Stretch{}, err
	}
	st := Stretch{First: at.base, Next: at.base}
	end := at.pos
	sc := newScanner(h.log, at.pos, size)
	defer sc.done()
	for {
		step, err := sc.Next()
		if errors.Is(err, io.EOF) || err == nil && step.Batch.NextOffset() > r.End {
			break
		}
		if err != nil {
			h.Release()
			return Stretch{}, s.damaged(sc.Pos(), err)
		}
		ix.add(step.Batch, step.Size)
		end, st.Next = step.Pos+step.Size, step.Batch.NextOffset()
	}
	if end == at.pos {
		h.Release()
		return Stretch{}, nil
	}
	st.Run = vfs.Run{File: h.log, Pos: at.pos, N: int(end - at.pos), Owner: h}
	return st, nil
}
