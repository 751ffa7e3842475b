package archive

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"varve/broker/kafka"
	"varve/tier"
	"varve/tier/cache"
	"varve/tier/container"
	"varve/tier/manifest"
)

// A CorruptSegmentError names the file whose bytes are not what was written. Other
// segments are served.
type CorruptSegmentError struct {
	File string
	Err  error
}

func (e *CorruptSegmentError) Error() string { return fmt.Sprintf("%s: %v", e.File, e.Err) }

// Unwrap gives the cause.
func (e *CorruptSegmentError) Unwrap() error { return e.Err }

// reader keeps the tails of the containers that are being read. Opening is done by
// few goroutines that live as long as there is something to open; nobody's time-out
// ends it.
type reader struct {
	opt  Options
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu struct {
		sync.Mutex
		open    map[string]*opened
		lru     list.List // of *opened, the most recent in front
		bytes   int64
		queue   []*opened
		workers int
		failed  int64 // openings
	}
}

const (
	openers  = 4
	openTime = time.Minute
)

// opened is a container that is open, is being opened, or could not be.
type opened struct {
	reads   *reader
	segment manifest.Segment
	name    string // on the store
	elem    *list.Element

	// Under reads.mu until ready; not changed afterwards, but for file.
	ready   bool
	err     error
	retry   time.Time // err stands until then
	wakes   []func()
	file    tier.Reader
	tail    *container.Tail
	aborted []container.AbortedTxn

	refs int // fills under way, under reads.mu
	gone bool
}

func newReader(opt Options) *reader {
	r := &reader{opt: opt}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.mu.open = map[string]*opened{}
	return r
}

func (r *reader) close() {
	r.stop()
	r.wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.mu.open {
		r.dropLocked(o)
	}
}

// stats are how many containers are open, and how many openings have failed.
func (r *reader) stats() (open int, failed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.open), r.mu.failed
}

// get finds a container's tail, or begins to open it: nil means that wake will be
// called once it is there or has failed.
func (r *reader) get(s manifest.Segment, name string, wake func()) (*opened, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.mu.open[s.ID]
	switch {
	case o == nil:
	case o.ready && o.err == nil:
		r.mu.lru.MoveToFront(o.elem)
		return o, nil
	case o.ready && time.Now().Before(o.retry):
		return nil, o.err
	case o.ready:
		r.dropLocked(o)
		o = nil
	}
	if o == nil {
		o = &opened{reads: r, segment: s, name: name}
		r.mu.open[s.ID] = o
		o.elem = r.mu.lru.PushFront(o)
		r.mu.queue = append(r.mu.queue, o)
		if r.mu.workers < openers && r.ctx.Err() == nil {
			r.mu.workers++
			r.wg.Add(1)
			go r.work()
		}
	}
	if wake != nil {
		o.wakes = append(o.wakes, wake)
	}
	return nil, nil
}

func (r *reader) work() {
	defer r.wg.Done()
	r.mu.Lock()
	for len(r.mu.queue) > 0 && r.ctx.Err() == nil {
		o := r.mu.queue[0]
		r.mu.queue = r.mu.queue[1:]
		r.mu.Unlock()
		file, tail, aborted, err := r.load(o)
		r.mu.Lock()
		o.file, o.tail, o.aborted, o.err = file, tail, aborted, err
		o.ready, o.retry = true, time.Now().Add(time.Second)
		if err == nil {
			r.mu.bytes += tail.Bytes()
		} else {
			r.mu.failed++
		}
		wakes := o.wakes
		o.wakes = nil
		r.evictLocked()
		r.mu.Unlock()
		for _, wake := range wakes {
			wake()
		}
		r.mu.Lock()
	}
	r.mu.workers--
	r.mu.Unlock()
}

// load opens the file and reads everything behind its log in one range.
func (r *reader) load(o *opened) (tier.Reader, *container.Tail, []container.AbortedTxn, error) {
	ctx, cancel := context.WithTimeout(r.ctx, openTime)
	defer cancel()
	file, err := r.opt.Store.Open(ctx, o.name)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("opening %s: %w", o.name, err)
	}
	tail, aborted, err := readTail(file, &o.segment)
	if err != nil {
		file.Close()
		return nil, nil, nil, blame(o.name, err)
	}
	return file, tail, aborted, nil
}

// readTail reads what stands behind the log and holds it to the chain's entry.
func readTail(file tier.Reader, s *manifest.Segment) (*container.Tail, []container.AbortedTxn, error) {
	if file.Size() != s.Size {
		return nil, nil, &container.CorruptError{Part: "file", Err: fmt.Errorf("it has %d bytes, the manifest says %d", file.Size(), s.Size)}
	}
	b := make([]byte, s.Size-s.LogSize)
	if err := readFull(file, b, s.LogSize); err != nil {
		return nil, nil, err
	}
	tail, err := container.DecodeTail(b, s.Size)
	if err != nil {
		return nil, nil, err
	}
	if tail.ID != s.ID || tail.Base != s.Base || tail.End != s.End {
		return nil, nil, &container.CorruptError{Part: "footer", Err: fmt.Errorf("it is of segment %s [%d,%d], the manifest says %s [%d,%d]", tail.ID, tail.Base, tail.End, s.ID, s.Base, s.End)}
	}
	aborted, err := container.DecodeAborted(tail.Part(container.Aborted))
	return tail, aborted, err
}

func readFull(r io.ReaderAt, b []byte, pos int64) error {
	n, err := r.ReadAt(b, pos)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// blame makes of damage an error that names the file.
func blame(name string, err error) error {
	var c *container.CorruptError
	var f *container.FeatureError
	if errors.As(err, &c) || errors.As(err, &f) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &CorruptSegmentError{File: name, Err: err}
	}
	return fmt.Errorf("reading %s: %w", name, err)
}

// evictLocked closes what was read longest ago while the tails take too much memory.
func (r *reader) evictLocked() {
	for e := r.mu.lru.Back(); e != nil && r.mu.bytes > r.opt.TailBytes && r.mu.lru.Len() > 1; {
		o := e.Value.(*opened)
		e = e.Prev()
		if o.ready {
			r.dropLocked(o)
		}
	}
}

func (r *reader) dropLocked(o *opened) {
	r.mu.lru.Remove(o.elem)
	delete(r.mu.open, o.segment.ID)
	o.gone = true
	if o.tail != nil {
		r.mu.bytes -= o.tail.Bytes()
	}
	if o.refs == 0 && o.file != nil {
		o.file.Close()
		o.file = nil
	}
}

// forget closes a container, as after an error that opening it again may mend.
func (r *reader) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.mu.open[id]; o != nil && o.ready {
		r.dropLocked(o)
	}
}

var _ cache.Source = (*opened)(nil)

// ID is the container's uuid: never another's.
func (o *opened) ID() string { return o.segment.ID }

// Size is the length of the log in bytes.
func (o *opened) Size() int64 { return o.segment.LogSize }

// Fill reads a chunk from the store and holds it to its sum. The file stays open while
// it does, also where the tail is let go meanwhile.
func (o *opened) Fill(ctx context.Context, b []byte, pos int64) error {
	r := o.reads
	r.mu.Lock()
	file := o.file
	o.refs++
	r.mu.Unlock()
	var err error
	if file == nil { // it was let go since it was asked for
		if file, err = r.opt.Store.Open(ctx, o.name); err == nil {
			defer file.Close()
		}
	}
	if err == nil {
		if err = readFull(file, b, pos); err == nil {
			err = o.tail.CheckChunk(pos, b)
		}
	}
	r.mu.Lock()
	o.refs--
	if o.gone && o.refs == 0 && o.file != nil {
		o.file.Close()
		o.file = nil
	}
	r.mu.Unlock()
	if err != nil {
		r.forget(o.segment.ID) // a stream that broke, a file that moved: open it anew
		return blame(o.name, err)
	}
	return nil
}

// overlapping are the aborted transactions that have records in [from, to).
func (o *opened) overlapping(from, to kafka.Offset) []container.AbortedTxn {
	var out []container.AbortedTxn
	for _, t := range o.aborted {
		if t.First < to && t.Last >= from {
			out = append(out, t)
		}
	}
	return out
}
