package archive

import (
	"errors"
	"fmt"
	"sync"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
	"varve/tier"
	"varve/tier/cache"
	"varve/tier/container"
)

// ErrNotTiered: the offset is not in the tier.
var ErrNotTiered = errors.New("the offset is not in the tier")

// A Fetched is what a read of the tier found: whole batches of one container.
type Fetched struct {
	Run   vfs.Run // to be released; N is 0 where Pending, or where the limit had no room
	Base  kafka.Offset
	Upper kafka.Offset // no record of the run has an offset at or above it
	// Pending: the bytes are on their way; wake is called when it is worth asking
	// again. They come whether or not anybody asks.
	Pending bool

	container *opened
}

// Aborted are the aborted transactions that overlap the run (tiering 2.10): complete,
// because a container carries all of its own (T6).
func (f *Fetched) Aborted() []container.AbortedTxn {
	if f.container == nil {
		return nil
	}
	return f.container.overlapping(f.Base, f.Upper)
}

// eager is the share of what was asked for that is served while the rest is on its way.
const eager = 4

// Read finds record bytes from the batch that holds offset o on, at most limit bytes of them,
// but one whole batch where minOne. wake may be called at any later time, also after
// the answer, from any goroutine; it must not block. nil only looks.
func (p *Partition) Read(o kafka.Offset, limit int, minOne bool, wake func()) (Fetched, error) {
	s, err := p.State()
	if err != nil {
		return Fetched{}, err
	}
	seg, ok := s.Find(o)
	if !ok {
		return Fetched{}, fmt.Errorf("%s offset %d: %w (it holds [%d,%d))", p.tp, o, ErrNotTiered, s.LogStart, s.NextOffset())
	}
	c, err := p.archive.reads.get(seg, p.chain.Segment(seg), wake)
	if err != nil {
		return Fetched{}, p.stale(err)
	}
	if c == nil {
		return Fetched{Pending: true}, nil
	}
	f, err := c.read(p.archive.opt.Cache, o, limit, minOne, wake)
	return f, p.stale(err)
}

// stale asks for a new look at the chain where a file of it is not there: another
// leader may have let it go.
func (p *Partition) stale(err error) error {
	if errors.Is(err, tier.ErrNotFound) {
		p.reload.Store(true)
		p.Kick()
	}
	return err
}

// read cuts whole batches out of the log: from the batch that holds offset o, up to the
// last place that the offset index knows within limit bytes.
func (c *opened) read(chunks *cache.Cache, o kafka.Offset, limit int, minOne bool, wake func()) (Fetched, error) {
	pos, head, err := c.seek(chunks, o, wake)
	if err != nil || head == nil {
		return Fetched{Pending: head == nil && err == nil}, err
	}
	first := record.SizeOf(head)
	if first > int64(limit) && !minOne {
		return Fetched{}, nil
	}
	want := min(pos+max(first, int64(limit)), c.Size())
	there, err := chunks.Want(c, pos, want, nil)
	if err != nil {
		return Fetched{}, err
	}
	run := chunks.View(c, pos, int(want-pos))
	end, upper, ok := c.tail.Cut(pos, pos+int64(run.N))
	if ok && !there && end-pos < (want-pos)/eager {
		// Too little to be worth a response. If the rest came just now, it will do.
		if there, err = chunks.Want(c, pos, want, wake); err != nil || !there {
			run.Release()
			return Fetched{Pending: err == nil}, err
		}
	}
	base := head.BaseOffset()
	if !ok {
		// The index knows no cut within: it is one batch, or it crosses two files.
		if int64(run.N) < first {
			run.Release()
			return c.single(chunks, pos, head, wake)
		}
		end, upper = pos+first, head.NextOffset()
	}
	run.N = int(end - pos)
	return Fetched{Run: run, Base: base, Upper: upper, container: c}, nil
}

// seek finds the batch that holds offset o, or the next one: its position and header.
// A nil header means that bytes are on their way.
func (c *opened) seek(chunks *cache.Cache, o kafka.Offset, wake func()) (int64, record.Batch, error) {
	pos := c.tail.Position(o)
	var head [record.HeaderSize]byte
	for pos+record.HeaderSize <= c.Size() {
		there, err := chunks.Want(c, pos, pos+record.HeaderSize, wake)
		if err != nil || !there {
			return 0, nil, err
		}
		n, err := chunks.ReadAt(c, head[:], pos)
		if err != nil || n < len(head) {
			return 0, nil, err
		}
		b := record.Batch(head[:])
		if b.LastOffset() >= o {
			return pos, b, nil
		}
		size := record.SizeOf(b)
		if size < record.HeaderSize {
			break
		}
		pos += size
	}
	return 0, nil, &CorruptSegmentError{c.name, fmt.Errorf("no batch with offset %d behind position %d", o, pos)}
}

// single gives one batch from memory, gathered from two files of the cache.
func (c *opened) single(chunks *cache.Cache, pos int64, head record.Batch, wake func()) (Fetched, error) {
	size := record.SizeOf(head)
	if pos+size > c.Size() {
		return Fetched{}, &CorruptSegmentError{c.name, fmt.Errorf("a batch of %d bytes at position %d leaves the log", size, pos)}
	}
	there, err := chunks.Want(c, pos, pos+size, wake)
	if err != nil || !there {
		return Fetched{Pending: err == nil}, err
	}
	m := memory.Get().(*pooled)
	if int64(cap(m.b)) < size {
		m.b = make([]byte, size)
	}
	m.b = m.b[:size]
	n, err := chunks.ReadAt(c, m.b, pos)
	if err != nil || n < len(m.b) {
		memory.Put(m)
		return Fetched{Pending: err == nil}, err
	}
	return Fetched{Run: vfs.Run{Bytes: m.b, N: n, Owner: m}, Base: head.BaseOffset(), Upper: head.NextOffset(), container: c}, nil
}

// pooled is a buffer that goes back when its run is sent.
type pooled struct{ b []byte }

// Release gives the buffer back.
func (m *pooled) Release() {
	if cap(m.b) <= pooledMax {
		memory.Put(m)
	}
}

const pooledMax = 4 << 20

var memory = sync.Pool{New: func() any { return new(pooled) }}
