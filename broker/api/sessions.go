package api

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"varve/broker/kafka"
	"varve/broker/wire"
)

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
