package hdfs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"varve/tier"
	"varve/tier/hdfs/datanode"
	"varve/tier/hdfs/namenode"
)

// A blockWriter writes a file of one block, whose size is known, over a plain
// connection: containers. It takes half the CPU of the library's writer, and leaves a
// DataNode out of the pipeline that could not be reached. err is its first error; after
// it the file is given up and Close fails.
type blockWriter struct {
	store  *Store
	ctx    context.Context
	doing  string
	path   string
	holder string // of the lease: nobody else's
	id     int64
	size   int64 // at most
	want   int   // replicas that the file is to have

	dial    *dialler
	place   namenode.NewBlock
	block   *datanode.Block // nil: nothing was written
	renewed time.Time
	written int64
	err     error
	done    bool
}

// setupTries bounds the pipelines that are tried for one block.
const setupTries = 4

// renewEvery is well below the minute after which another may take a lease away.
const renewEvery = 20 * time.Second

func (s *Store) newBlockWriter(ctx context.Context, name string, size int64, want int) (tier.Writer, error) {
	var id [8]byte
	rand.Read(id[:])
	w := &blockWriter{store: s, ctx: ctx, doing: "writing " + name, path: s.Path(name), holder: "varve_" + hex.EncodeToString(id[:]), size: size, want: want,
		dial: newDialler(s.o.Connect)}
	blockSize, err := s.pipeline.blockSize(size), error(nil)
	for range 2 {
		w.id, err = s.nn.Create(ctx, w.path, w.holder, fileMode, want, blockSize)
		least, tooSmall := leastBlock(err)
		if !tooSmall || least <= blockSize {
			break
		}
		s.pipeline.setLeastBlock(least)
		blockSize = s.pipeline.blockSize(size)
	}
	var call *namenode.Error
	if errors.As(err, &call) && call.Lost && errors.Is(err, tier.ErrExists) {
		err = fmt.Errorf("%w: made by an attempt whose answer was lost, or by another: %w", tier.ErrUnsettled, err)
	}
	if err != nil {
		return nil, w.fail(err)
	}
	w.renewed = time.Now()
	return w, nil
}

func (w *blockWriter) Write(b []byte) (int, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.done:
		return 0, w.fail(errClosed)
	case w.written+int64(len(b)) > w.size:
		return 0, w.fail(fmt.Errorf("more than the %d bytes that were to come at most", w.size))
	case len(b) == 0:
		return 0, nil
	}
	stop := context.AfterFunc(w.ctx, w.dial.cut)
	defer stop()
	if w.block == nil {
		if err := w.open(); err != nil {
			return 0, w.fail(err)
		}
	}
	if time.Since(w.renewed) > renewEvery {
		if err := w.store.nn.RenewLease(w.ctx, w.holder); err != nil {
			return 0, w.fail(err)
		}
		w.renewed = time.Now()
	}
	n, err := w.block.Write(b)
	w.written += int64(n)
	if err != nil {
		return n, w.fail(broke(err))
	}
	return n, nil
}

// open makes the pipeline, without the DataNodes that failed in it so far.
func (w *blockWriter) open() error {
	var bad []namenode.Target
	var causes []error
	for range setupTries {
		place, err := w.store.nn.AddBlock(w.ctx, w.path, w.holder, w.id, bad)
		if err != nil {
			return errors.Join(append(causes, err)...)
		}
		if len(place.Targets) == 0 {
			return fmt.Errorf("%w: the NameNode named no DataNode for the block", tier.ErrUnavailable)
		}
		block, err := w.connect(place)
		if err == nil {
			w.place, w.block = place, block
			return nil
		}
		at := 0
		var setup *datanode.SetupError
		if errors.As(err, &setup) {
			at = setup.Bad
		}
		bad, causes = append(bad, place.Targets[at]), append(causes, err)
		if err := w.store.nn.AbandonBlock(w.ctx, w.path, w.holder, w.id, place); err != nil {
			return errors.Join(append(causes, err)...)
		}
		if w.ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("%w: %w", tier.ErrUnavailable, errors.Join(causes...))
}

func (w *blockWriter) connect(place namenode.NewBlock) (*datanode.Block, error) {
	addr := place.Targets[0].Address
	if w.store.o.UseDatanodeHostname {
		addr = place.Targets[0].Host
	}
	conn, err := w.dial.to(w.store.o.Write)(w.ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	block, err := datanode.Open(conn.(*guard), place, w.holder)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return block, nil
}

// Close completes the file: acknowledged by every DataNode, closed at the NameNode and
// of the length written.
func (w *blockWriter) Close() error {
	if w.done || w.err != nil {
		w.done = true
		return w.err
	}
	w.done = true
	stop := context.AfterFunc(w.ctx, w.dial.cut)
	defer stop()
	var last *namenode.NewBlock
	if w.block != nil {
		if err := w.block.Close(); err != nil {
			return w.fail(broke(err))
		}
		last = &w.place
	}
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 400*time.Millisecond) {
		closed, err := w.store.nn.Complete(w.ctx, w.path, w.holder, w.id, last, w.written)
		if err != nil {
			return w.fail(err)
		}
		if closed {
			return nil
		}
		if !sleep(w.ctx, pause) {
			return w.fail(errors.New("DataNodes have not reported the block yet"))
		}
	}
}

// Abort gives the file up: its connection is cut, its name is deleted if the NameNode
// answers.
func (w *blockWriter) Abort() {
	if w.done && w.err == nil {
		return
	}
	w.done = true
	if w.err == nil {
		w.err = w.store.fail(w.doing, errCut)
	}
	w.drop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), w.store.o.Call)
	defer cancel()
	_, _ = w.store.nn.Delete(ctx, w.path, false) // what stays is swept later (T4)
}

func (w *blockWriter) drop() {
	if w.block != nil {
		w.block.Abort()
	}
	w.dial.cut()
}

// broke makes of a pipeline that broke that the store is away for now.
func broke(err error) error { return fmt.Errorf("%w: %w", tier.ErrUnavailable, err) }

// fail notes the writer's first error, with its kind.
func (w *blockWriter) fail(err error) error {
	switch {
	case w.ctx.Err() != nil && !errors.Is(err, w.ctx.Err()):
		err = w.store.failAs(tier.ErrUnavailable, w.doing, errors.Join(w.ctx.Err(), err))
	default:
		err = w.store.fail(w.doing, w.store.room(w.ctx, err))
	}
	w.err = err
	w.drop()
	return err
}
