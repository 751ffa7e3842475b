package hdfs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	library "github.com/colinmarc/hdfs/v2"

	"varve/tier"
	"varve/tier/hdfs/namenode"
)

// Create makes a new file for writing: by our own block writer where the size is known
// and the connections are plain, else by the library's. ctx bounds the file until Close returns: when
// it ends, the writer's connections are cut.
func (s *Store) Create(ctx context.Context, name string, opt tier.CreateOptions) (tier.Writer, error) {
	doing := "writing " + name
	if err := s.check(ctx, doing, name); err != nil {
		return nil, err
	}
	defaults, err := s.nn.ServerDefaults(ctx)
	if err != nil {
		return nil, s.fail(doing, err)
	}
	w := &writer{store: s, ctx: ctx, doing: doing, path: s.Path(name), size: opt.Size, want: s.o.Replication, block: defaults.BlockSize}
	if w.want == 0 {
		w.want = defaults.Replication
	}
	if opt.Size > 0 && !defaults.Encrypted {
		return s.newBlockWriter(ctx, name, opt.Size, w.want)
	}
	if opt.Size > 0 {
		w.block = s.pipeline.blockSize(opt.Size)
	}
	w.replicas = s.pipeline.replication(time.Now(), w.want, s.o.LeastReplication)
	if err := w.create(); err != nil {
		return nil, w.fail(err)
	}
	return w, nil
}

// A writer is one file on its way. err is its first error; after it the file is
// given up and Close fails.
type writer struct {
	store *Store
	ctx   context.Context
	doing string
	path  string

	client   *client
	file     *library.FileWriter
	block    int64 // block size in bytes
	replicas int   // asked for in the pipeline
	want     int   // that the file is to have

	size    int64 // at most, 0 = not known
	written int64
	err     error
	done    bool
}

// create makes the file, exclusively. A NameNode that cannot be reached is asked
// again; if an attempt that was lost made the file, the outcome is left unsettled:
// names are not used again, so nobody misses it.
func (w *writer) create() error {
	lost, end := false, time.Now().Add(w.store.o.Patience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := w.createOnce()
		least, tooSmall := leastBlock(err)
		switch {
		case err == nil:
			return nil
		case tooSmall && least > w.block:
			w.store.pipeline.setLeastBlock(least)
			w.block = w.store.pipeline.blockSize(w.block)
			continue
		case lost && errors.Is(err, tier.ErrExists):
			return fmt.Errorf("%w: made by an attempt whose answer was lost, or by another: %w", tier.ErrUnsettled, err)
		case w.ctx.Err() != nil || !away(err) || time.Now().Add(pause).After(end):
			return err
		}
		lost = true
		if !sleep(w.ctx, pause) {
			return err
		}
	}
}

func (w *writer) createOnce() error {
	c, err := w.store.pool.take()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(w.ctx, c.cut)
	f, err := c.CreateFile(w.path, w.replicas, w.block, fileMode)
	stop()
	if err != nil {
		if away(err) || w.ctx.Err() != nil {
			c.end()
		} else {
			w.store.pool.give(c)
		}
		return err
	}
	w.client, w.file = c, f
	return nil
}

var lessThanMinimum = regexp.MustCompile(`less than configured minimum value.*: \d+ < (\d+)`)

// leastBlock finds the NameNode's least block size in its refusal of a smaller one.
func leastBlock(err error) (int64, bool) {
	if err == nil {
		return 0, false
	}
	text := err.Error()
	if remote := library.Error(nil); errors.As(err, &remote) {
		text = remote.Message()
	}
	found := lessThanMinimum.FindStringSubmatch(text)
	if found == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	return n, err == nil
}

func (w *writer) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.done {
		return 0, w.fail(errClosed)
	}
	if w.size > 0 && w.written+int64(len(b)) > w.size {
		return 0, w.fail(fmt.Errorf("more than the %d bytes that were to come at most", w.size))
	}
	if len(b) == 0 { // the library would ask for a block and never fill it
		return 0, nil
	}
	stop := context.AfterFunc(w.ctx, w.client.cut)
	defer stop()
	n, err := w.file.Write(b)
	for err != nil && w.written == 0 && w.lower(err) {
		n, err = w.file.Write(b)
	}
	if err != nil {
		w.store.pipeline.broke(time.Now(), w.replicas, w.want)
		return n, w.fail(err)
	}
	w.written += int64(n)
	return n, nil
}

// lower begins the file anew with one replica less: the pipeline could not be made
// and nothing has been written yet.
func (w *writer) lower(err error) bool {
	var remote library.Error
	if w.ctx.Err() != nil || errors.As(err, &remote) && remote.Exception() != "" || w.replicas <= w.store.o.LeastReplication {
		return false
	}
	w.store.pipeline.broke(time.Now(), w.replicas, w.want)
	w.replicas--
	w.drop()
	if _, err := w.store.nn.Delete(w.ctx, w.path, false); err != nil {
		return false
	}
	return w.create() == nil
}

// Close completes the file: everything acknowledged, closed at the NameNode and of
// the length written. Close of the library is called again only where it says that
// the NameNode waits for a DataNode's report; after any other error it would report
// success for a file without its end.
func (w *writer) Close() error {
	if w.done || w.err != nil {
		w.done = true
		return w.err
	}
	w.done = true
	if err := w.complete(); err != nil {
		return w.fail(err)
	}
	w.store.pool.give(w.client)
	w.client, w.file = nil, nil
	if w.replicas < w.want {
		// the NameNode makes up for the rest when it can; LiveReplicas tells when
		if _, err := w.store.nn.SetReplication(w.ctx, w.path, w.want); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

func (w *writer) complete() error {
	stop := context.AfterFunc(w.ctx, w.client.cut)
	defer stop()
	err := w.file.Close()
	for pause := 2 * time.Millisecond; library.IsErrReplicating(err); pause = min(2*pause, 400*time.Millisecond) {
		if !sleep(w.ctx, pause) {
			return fmt.Errorf("waiting for DataNodes to report the last block: %w", w.ctx.Err())
		}
		err = w.file.Close()
	}
	status, statErr := w.store.nn.BlockLocations(w.ctx, w.path)
	switch {
	case statErr != nil:
		return errors.Join(err, statErr)
	case err != nil && !status.Open && status.Length == w.written && away(err):
		return nil // only the answer to the last call was lost
	case err != nil:
		return err
	case status.Open || status.Length != w.written:
		return fmt.Errorf("%w: closed with %d bytes (still open: %v), %d were written", tier.ErrUnavailable, status.Length, status.Open, w.written)
	}
	return nil
}

// Abort gives the file up: its connections are cut, its name is deleted if the
// NameNode answers.
func (w *writer) Abort() {
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

// drop cuts the writer's client off. The library wants one Close of the file, or a
// goroutine of it stays.
func (w *writer) drop() {
	if w.client == nil {
		return
	}
	w.client.cut()
	_ = w.file.Close()
	w.client.end()
	w.client, w.file = nil, nil
}

// fail notes the writer's first error, with its kind.
func (w *writer) fail(err error) error {
	var call *namenode.Error
	switch {
	case w.ctx.Err() != nil:
		err = w.store.failAs(tier.ErrUnavailable, w.doing, errors.Join(w.ctx.Err(), err))
	case errors.As(err, &call), errors.Is(err, tier.ErrUnsettled), errors.Is(err, tier.ErrUnavailable):
		err = w.store.fail(w.doing, err)
	default:
		err = w.store.fail(w.doing, w.store.room(w.ctx, kind(err)))
	}
	w.err = err
	w.drop()
	return err
}

// room looks twice at "no DataNode can take the block": with space left in HDFS it
// is not full, its DataNodes are away or busy.
func (s *Store) room(ctx context.Context, err error) error {
	var remote *namenode.RemoteError
	if !errors.Is(err, tier.ErrFull) || !errors.As(err, &remote) || !namenode.NoTargets(remote.Message) {
		return err
	}
	stats, statErr := s.nn.FsStats(ctx)
	if statErr == nil && stats.Remaining > stats.Capacity/20 {
		return fmt.Errorf("%w: no DataNode takes the block, though %d of %d bytes are free: %s", tier.ErrUnavailable, stats.Remaining, stats.Capacity, remote.Message)
	}
	return err
}

// sleep waits d; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
