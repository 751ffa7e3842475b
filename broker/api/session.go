package api

import (
	"slices"
	"strings"
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
