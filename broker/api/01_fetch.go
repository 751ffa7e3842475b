package api

import (
	"errors"
	"slices"
	"time"

	"varve/broker/conn"
	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/wire"
)

// Fetch, key 1.
//
//	v4   isolation level, last stable offset, aborted transactions
//	v5   log start offset
//	v7   sessions (KIP-227)
//	v9   current leader epoch (KIP-320)
//	v11  rack and preferred replica (KIP-392)
//	v12  last fetched epoch and diverging epoch (KIP-595)
//	v13  topic ids
//	v15  replica state in a tag (KIP-903)
//	v16  node endpoints (KIP-951)
//
// Errors per partition: OFFSET_OUT_OF_RANGE (below the log start or above the log end,
// nothing else), UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER,
// FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR. For the request:
// FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
// FETCH_SESSION_TOPIC_ID_ERROR. A time-out is an answer without records, never an
// error.
func (b *Broker) fetch(x *call) error {
	f := &x.client.fetch
	if err := f.req.Decode(x.body, x.h.Version); err != nil {
		return err
	}
	now := time.Now()
	s, full, code := b.session(f, now)
	if code != kafka.None {
		v := wire.FetchResponse(x.h.Version)
		x.out.Begin(x.h)
		x.out.B = v.End(v.Begin(x.out.B, 0, code, 0, 0), nil)
		x.out.End()
		return nil
	}
	defer b.sessions.give(s)
	if s.owner != x.c {
		b.resolve(s, x)
	}
	b.gather(x, f, s, full, now)
	return f.answer(x, s)
}

// A fetcher is what a connection keeps for its fetches.
type fetcher struct {
	call  call
	req   wire.FetchRequest
	alone *session // of fetches without a session
	last  *session // of those with one, the last
	got   []got
	look  []int
	bytes int
	fail  bool // something must be told at once
}

// got is a partition that goes into the answer.
type got struct {
	i    int
	code kafka.Code
	r    partition.ReadResult
}

// close takes back what the connection's sessions watch. A session itself may go on
// with another connection.
func (f *fetcher) close(c *conn.Conn) {
	if f.alone != nil {
		f.alone.unwatch()
	}
	if s := f.last; s != nil && s.busy.CompareAndSwap(false, true) {
		if s.owner == c {
			s.unwatch()
		}
		s.busy.Store(false)
	}
}

// The epochs of requests that are not incremental.
const (
	newSession = 0
	noSession  = -1
)

// session finds or makes what the request's partitions are held in. full says that the
// answer names all of them.
func (b *Broker) session(f *fetcher, now time.Time) (s *session, full bool, code kafka.Code) {
	req := &f.req
	if req.SessionEpoch != newSession && req.SessionEpoch != noSession {
		if s, code = b.sessions.take(req, now); code != kafka.None {
			return nil, false, code
		}
		if s.change(req) {
			s.unwatch()
		}
		if len(s.parts) == 0 {
			b.sessions.end(s)
		}
		f.last = s
		return s, false, kafka.None
	}
	if req.SessionID != 0 {
		b.sessions.close(req.SessionID)
	}
	if req.SessionEpoch == newSession && req.Version >= 7 {
		if s = b.sessions.open(req, now); s != nil {
			f.last = s
			return s, true, kafka.None
		}
	}
	if f.alone == nil {
		f.alone = &session{}
	}
	s = f.alone
	if s.same(req) && s.byID == (req.Version >= 13) {
		s.ask(req)
		return s, true, kafka.None
	}
	s.byID = req.Version >= 13
	s.fill(req)
	return s, true, kafka.None
}

// resolve looks the session's partitions up and watches them for this connection.
func (b *Broker) resolve(s *session, x *call) {
	s.unwatch()
	for i := range s.parts {
		t := &s.parts[i]
		t.p, _ = b.find(t.topic, t.id, t.n, s.byID)
	}
	s.watch(x.c)
}

// gather reads until there is enough to answer, or the time is over.
func (b *Broker) gather(x *call, f *fetcher, s *session, full bool, now time.Time) {
	deadline := now.Add(f.req.MaxWait)
	least := min(int(f.req.MinBytes), int(f.req.MaxBytes), b.opt.FetchMaxBytes) // more can never come
	f.reset()
	for {
		s.watcher.Look()
		f.marked(s, full)
		b.read(f, s, full)
		if f.fail || f.bytes >= least || f.req.MaxWait <= 0 || len(s.parts) == 0 || x.c.Stopping() || !now.Before(deadline) {
			return
		}
		need := least - f.bytes
		f.again(s)
		if s.watcher.Arm(int64(need)) && !x.c.Park(deadline) {
			now = deadline
		}
		s.watcher.Disarm()
	}
}

func (f *fetcher) reset() {
	clear(f.got[:cap(f.got)])
	f.got, f.look, f.bytes, f.fail = f.got[:0], f.look[:0], 0, false
}

// marked chooses the partitions to look at: all, or those that have news.
func (f *fetcher) marked(s *session, full bool) {
	f.look = f.look[:0]
	if full {
		s.watcher.Take(func(int) bool { return true })
		for i := range s.parts {
			f.look = append(f.look, i)
		}
		return
	}
	behind := 0
	s.watcher.Take(func(i int) bool {
		if i < s.from {
			behind++
		}
		f.look = append(f.look, i)
		return true
	})
	rotate(f.look, behind)
}

// rotate moves the first n to the end.
func rotate(s []int, n int) {
	slices.Reverse(s[:n])
	slices.Reverse(s[n:])
	slices.Reverse(s)
}

// read reads what was chosen, within the request's limits. The first batch of all comes
// whole, however large.
func (b *Broker) read(f *fetcher, s *session, full bool) {
	left := max(min(int(f.req.MaxBytes), b.opt.FetchMaxBytes), 0)
	for _, i := range f.look {
		t := &s.parts[i]
		if left <= 0 && f.bytes > 0 && !full {
			s.watcher.Set(i) // not looked at: next time
			continue
		}
		f.got = append(f.got, got{i: i})
		g := &f.got[len(f.got)-1]
		g.code = b.readOne(f, s, i, max(min(left, int(t.q.MaxBytes)), 0), &g.r)
		f.bytes += g.r.Run.N
		left -= g.r.Run.N
		if g.code != kafka.None || g.r.Diverged {
			f.fail = true
			s.watcher.Set(i)
		}
		if g.r.Run.N > 0 {
			s.from = i + 1
		}
		if t.behind(g, f.req.ReadCommitted) {
			s.watcher.Set(i) // there is more, or the limits left no room for it
		}
		if !full && !t.news(g) {
			f.got = f.got[:len(f.got)-1]
		}
	}
}

// behind tells whether the reader has not all that it may see.
func (t *part) behind(g *got, committed bool) bool {
	if committed {
		return t.q.Offset < g.r.Stable
	}
	return t.q.Offset < g.r.High
}

// news tells whether an incremental answer has to name the partition.
func (t *part) news(g *got) bool {
	return g.code != kafka.None || g.r.Diverged || g.r.Run.N > 0 || t.told != told{g.r.High, g.r.LogStart}
}

func (b *Broker) readOne(f *fetcher, s *session, i, most int, r *partition.ReadResult) kafka.Code {
	t := &s.parts[i]
	q := partition.Read{From: t.q.Offset, Max: most, MinOne: f.bytes == 0, Committed: f.req.ReadCommitted,
		Epoch: t.q.LeaderEpoch, LastEpoch: t.q.LastFetchedEpoch, Watcher: s.watcher, Index: i}
	code := b.tryRead(f, t, q, r)
	if code != kafka.NotLeaderOrFollower && code != kafka.UnknownTopicOrPartition && code != kafka.UnknownTopicID {
		return code
	}
	// The partition may have been made, or made again, since it was looked up.
	p, found := b.find(t.topic, t.id, t.n, s.byID)
	if p == t.p {
		if found != kafka.None {
			return found
		}
		return code
	}
	if t.p != nil {
		t.p.Unwatch(s.watcher, i)
	}
	if t.p = p; p == nil {
		return found
	}
	p.Watch(s.watcher, i)
	return b.tryRead(f, t, q, r)
}

func (b *Broker) tryRead(f *fetcher, t *part, q partition.Read, r *partition.ReadResult) kafka.Code {
	*r = partition.ReadResult{High: kafka.NoOffset, Stable: kafka.NoOffset, LogStart: kafka.NoOffset}
	if t.p == nil {
		return kafka.UnknownTopicOrPartition
	}
	if f.req.Replica >= 0 {
		return kafka.NotLeaderOrFollower // no other broker replicates from this one
	}
	err := t.p.Read(q, r)
	if err == nil {
		return kafka.None
	}
	var e *kafka.Error
	if !errors.As(err, &e) {
		e = asRefusal(err)
	}
	if e.Code != kafka.NotLeaderOrFollower {
		b.refused(&f.call, t.p.Name().Topic, t.n, e)
	}
	return e.Code
}

// again gives back what was read, to read it again with what comes.
func (f *fetcher) again(s *session) {
	for k := range f.got {
		g := &f.got[k]
		s.watcher.Set(g.i)
		g.r.Run.Release()
	}
	f.got, f.bytes = f.got[:0], 0
}
