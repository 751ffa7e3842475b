package api

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"varve/broker/conn"
	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/wire"
)

// A session is the set of partitions that one reader fetches, and what it was told of
// them (KIP-227). A fetch without a session has one too, which its connection keeps: so
// the watches stay from fetch to fetch where the partitions do.
type session struct {
	id    int32 // 0: of a connection only
	next  int32 // the epoch that the next request must carry
	byID  bool  // topics are named by id (v13 on)
	parts []part
	at    map[place]int // parts by name; nil for id 0
	from  int           // where the next incremental answer begins to look: fairness

	busy    atomic.Bool // a request is being served with it
	used    time.Time   // guarded by sessions.mu
	size    int         // partitions, as counted in sessions.mu
	watcher *partition.Watcher
	owner   *conn.Conn // whom the watcher wakes
}

// A place names a partition as requests do.
type place struct {
	topic string
	id    kafka.TopicID
	n     int32
}

// A part is one partition of a session.
type part struct {
	place
	p    *partition.Partition // nil: not here
	q    wire.FetchPartition  // as last asked for
	told told
}

// told is what the last answer said, so that an incremental one can leave out what has
// not changed.
type told struct{ high, logStart kafka.Offset }

// never is what a partition was told that has to be told whatever comes.
var never = told{-2, -2}

// watch registers the session's partitions with a watcher that wakes c.
func (s *session) watch(c *conn.Conn) {
	s.unwatch()
	s.watcher, s.owner = partition.NewWatcher(len(s.parts), c.Waker()), c
	for i := range s.parts {
		if p := s.parts[i].p; p != nil {
			p.Watch(s.watcher, i)
		}
	}
}

func (s *session) unwatch() {
	if s.watcher == nil {
		return
	}
	for i := range s.parts {
		if p := s.parts[i].p; p != nil {
			p.Unwatch(s.watcher, i)
		}
	}
	s.watcher, s.owner = nil, nil
}

// same tells whether a full request asks for exactly these partitions in this order.
func (s *session) same(req *wire.FetchRequest) bool {
	i := 0
	for t := range req.Topics {
		for k := range req.Topics[t].Partitions {
			if i >= len(s.parts) {
				return false
			}
			x := &s.parts[i]
			if x.n != req.Topics[t].Partitions[k].Partition || x.id != req.Topics[t].ID || x.topic != req.Topics[t].Name {
				return false
			}
			i++
		}
	}
	return i == len(s.parts)
}

// fill makes the session that of a full request.
func (s *session) fill(req *wire.FetchRequest) {
	s.unwatch()
	s.parts = s.parts[:0]
	for t := range req.Topics {
		name := strings.Clone(req.Topics[t].Name)
		for k := range req.Topics[t].Partitions {
			q := &req.Topics[t].Partitions[k]
			s.parts = append(s.parts, part{place: place{name, req.Topics[t].ID, q.Partition}, q: *q, told: never})
		}
	}
}

// ask takes over the offsets of a full request for the same partitions.
func (s *session) ask(req *wire.FetchRequest) {
	i := 0
	for t := range req.Topics {
		for k := range req.Topics[t].Partitions {
			s.parts[i].q = req.Topics[t].Partitions[k]
			i++
		}
	}
}

// change takes over an incremental request; it tells whether partitions came or went.
func (s *session) change(req *wire.FetchRequest) (moved bool) {
	for t := range req.Topics {
		topic := &req.Topics[t]
		for k := range topic.Partitions {
			q := &topic.Partitions[k]
			key := place{topic.Name, topic.ID, q.Partition}
			i, ok := s.at[key]
			if !ok {
				key.topic = strings.Clone(key.topic)
				i = len(s.parts)
				s.parts, moved = append(s.parts, part{place: key, told: never}), true
				s.at[key] = i
			}
			s.parts[i].q = *q
			if s.watcher != nil && !moved {
				s.watcher.Set(i)
			}
		}
	}
	return s.forget(req) || moved
}

// forget lets go of the partitions that the request names so.
func (s *session) forget(req *wire.FetchRequest) bool {
	before := len(s.at)
	for f := range req.Forgotten {
		t := &req.Forgotten[f]
		for _, n := range t.Partitions {
			delete(s.at, place{t.Name, t.ID, n})
		}
	}
	if len(s.at) == before {
		return false
	}
	s.unwatch() // while they have their places
	s.parts = slices.DeleteFunc(s.parts, func(p part) bool {
		_, stays := s.at[p.place]
		return !stays
	})
	s.reindex()
	return true
}

func (s *session) reindex() {
	s.at = make(map[place]int, len(s.parts))
	for i := range s.parts {
		s.at[s.parts[i].place] = i
	}
}

// sessions are the fetch sessions of the broker, a bounded number.
type sessions struct {
	mu struct {
		sync.Mutex
		byID  map[int32]*session
		parts int // of all of them
	}
	most      int
	mostParts int
}

// partsMost bounds the partitions of all sessions: some 500 bytes each, that their
// readers need not come back for.
const partsMost = 500_000

// evictAfter is how long a session must have been idle to make room for another.
const evictAfter = 2 * time.Minute

func (ss *sessions) init(most int) {
	ss.most, ss.mostParts = most, partsMost
	ss.mu.byID = map[int32]*session{}
}

// open gives a full request a session; nil where there is no room: the reader goes on
// without one.
func (ss *sessions) open(req *wire.FetchRequest, now time.Time) *session {
	s := &session{next: 1, byID: req.Version >= 13, used: now}
	s.fill(req)
	if len(s.parts) == 0 {
		return nil
	}
	if !ss.enter(s, now) {
		return nil
	}
	s.reindex()
	return s
}

// enter gives a session an id, busy, where there is room or may be made.
func (ss *sessions) enter(s *session, now time.Time) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for len(ss.mu.byID) >= ss.most || ss.mu.parts+len(s.parts) > ss.mostParts {
		if !ss.evict(now) {
			return false
		}
	}
	for s.id == 0 || ss.mu.byID[s.id] != nil {
		s.id = rand.Int32N(math.MaxInt32-1) + 1
	}
	s.busy.Store(true)
	ss.mu.byID[s.id] = s
	ss.count(s)
	return true
}

// evict removes the session that was idle longest, if that was long; the lock is held.
func (ss *sessions) evict(now time.Time) bool {
	var oldest *session
	for _, s := range ss.mu.byID {
		if !s.busy.Load() && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest == nil || now.Sub(oldest.used) < evictAfter || !oldest.busy.CompareAndSwap(false, true) {
		return false
	}
	oldest.unwatch()
	ss.remove(oldest)
	return true
}

// count notes how many partitions a session has now; the lock is held, and the session
// is the caller's.
func (ss *sessions) count(s *session) {
	ss.mu.parts += len(s.parts) - s.size
	s.size = len(s.parts)
}

// remove takes a session out; the lock is held.
func (ss *sessions) remove(s *session) {
	if ss.mu.byID[s.id] == s {
		delete(ss.mu.byID, s.id)
		ss.mu.parts -= s.size
	}
}

// take finds the session of an incremental request and checks its epoch. It is the
// caller's until give.
func (ss *sessions) take(req *wire.FetchRequest, now time.Time) (*session, kafka.Code) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.mu.byID[req.SessionID]
	switch {
	case s == nil:
		return nil, kafka.FetchSessionIDNotFound
	case s.next != req.SessionEpoch:
		return nil, kafka.InvalidFetchSessionEpoch
	case s.byID != (req.Version >= 13):
		return nil, kafka.FetchSessionTopicIDError
	case !s.busy.CompareAndSwap(false, true):
		return nil, kafka.InvalidFetchSessionEpoch
	}
	s.used = now
	ss.count(s) // what the last request brought
	if s.next++; s.next < 0 {
		s.next = 1
	}
	return s, kafka.None
}

func (ss *sessions) give(s *session) { s.busy.Store(false) }

// close ends the session that a full request names, if it is there.
func (ss *sessions) close(id int32) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.mu.byID[id]
	if s != nil && s.busy.CompareAndSwap(false, true) {
		s.unwatch()
		ss.remove(s)
	}
}

// end ends a session that is being served and has no partitions left; the answer says
// so by having no id.
func (ss *sessions) end(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.remove(s)
	s.id = 0
}

// number is how many sessions there are.
func (ss *sessions) number() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.mu.byID)
}
