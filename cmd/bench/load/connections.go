package load

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Connections are many clients that each send one record a request and wait for
// its acknowledgement before the next.
type Connections struct {
	Target
	Conns       int
	RecordBytes int
	For         time.Duration
}

// ConnectionsResult also says what a connection cost in memory: the growth of
// the broker from before the first to when all had sent one request.
type ConnectionsResult struct {
	Result
	RSSPerConn int64
}

// Run opens all connections, then produces over them.
func (m Connections) Run(ctx context.Context) (ConnectionsResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := newBatch(0, m.RecordBytes)
	produce := Produce{Target: m.Target, Acks: 1}
	before, err := usageOf(m.PIDs)
	if err != nil {
		return ConnectionsResult{}, err
	}
	conns, err := dialMany(ctx, m.Addr, m.Conns)
	if err != nil {
		return ConnectionsResult{}, err
	}
	requests := make([][]byte, m.Partitions)
	for p := range requests {
		requests[p] = produce.request(p, p+1, b.bytes)
	}
	once := func(i int) error {
		if _, err := conns[i].Write(requests[i%len(requests)]); err != nil {
			return err
		}
		return readProduced(conns[i])
	}
	for i := range conns {
		if err := once(i); err != nil {
			return ConnectionsResult{}, err
		}
	}
	open, err := usageOf(m.PIDs)
	if err != nil {
		return ConnectionsResult{}, err
	}
	r, err := measured(m.Target, func() (Result, error) {
		var records atomic.Int64
		start := time.Now()
		errs := make(chan error, len(conns))
		for i := range conns {
			go func() {
				var err error
				for err == nil && time.Since(start) < m.For {
					err = once(i)
					records.Add(1)
				}
				errs <- err
			}()
		}
		err := firstOf(errs, len(conns), cancel)
		n := records.Load()
		return Result{Records: n, Bytes: n * int64(len(b.bytes)), Elapsed: time.Since(start)}, err
	})
	return ConnectionsResult{r, (open.rss - before.rss) / int64(max(1, m.Conns))}, err
}

// dialMany opens connections one after the other: Kafka's backlog of 50 resets
// a crowd that comes at once. They close with ctx.
func dialMany(ctx context.Context, addr string, n int) ([]*conn, error) {
	conns := make([]*conn, n)
	for i := range conns {
		c, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { c.Close() })
		conns[i] = c
	}
	return conns, nil
}

// Waits are many consumers that wait at the end of the log for what does not
// come: the CPU is what waiting costs.
type Waits struct {
	Target
	Conns int
	For   time.Duration // how long is measured; every wait is longer
}

// Run opens the connections, lets each wait, and measures once all do.
func (w Waits) Run(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends, err := w.offsets(ctx, -1)
	if err != nil {
		return Result{}, err
	}
	conns, err := dialMany(ctx, w.Addr, w.Conns)
	if err != nil {
		return Result{}, err
	}
	for i, c := range conns {
		p := i % w.Partitions
		f := fetcher{topic: w.Topic, next: map[int32]int64{int32(p): ends[p]}, max: 1 << 20, partitionMax: 1 << 20,
			wait: 10*w.For + time.Minute}
		if _, err := c.Write(f.request()); err != nil {
			return Result{}, err
		}
	}
	if err := rest(ctx, 2*time.Second); err != nil { // the broker has read the last request by then
		return Result{}, err
	}
	return measured(w.Target, func() (Result, error) {
		start := time.Now()
		err := rest(ctx, w.For)
		if answered(conns) {
			err = errors.Join(err, errors.New("a wait at the end of the log was answered: someone produces, or the broker refuses to wait"))
		}
		return Result{Elapsed: time.Since(start)}, err
	})
}

// answered says whether a response has come to any of them.
func answered(conns []*conn) bool {
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(time.Microsecond))
		if n, _ := c.Conn.Read(make([]byte, 1)); n > 0 {
			return true
		}
	}
	return false
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
