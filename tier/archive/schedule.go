package archive

import (
	"container/heap"
	"sync"
	"time"
)

// passWorkers look at partitions; copies have workers of their own.
const passWorkers = 2

// A task is something to be done once, by a worker. It says itself when it is to be
// looked at again.
type task interface{ run() }

// An entry is a task's place in the schedule. It is in the heap at most once, and not
// while a worker has its task: who asks then is remembered in again.
type entry struct {
	task  task
	due   time.Duration
	index int // in the heap, plus one; 0 = not in it
	busy  bool
	again bool
}

type schedule []*entry

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due < s[j].due }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i+1, j+1
}

func (s *schedule) Push(x any) {
	e := x.(*entry)
	*s = append(*s, e)
	e.index = len(*s)
}

func (s *schedule) Pop() any {
	old := *s
	e := old[len(old)-1]
	*s = old[:len(old)-1]
	e.index = 0
	return e
}

// schedule makes a task due in d, or earlier if it was due earlier.
func (a *Archive) schedule(e *entry, t task, d time.Duration) {
	due := a.opt.Clock.Mono() + d
	a.mu.Lock()
	defer a.mu.Unlock()
	e.task = t
	switch {
	case e.busy:
		e.again = e.again || d == 0
		return
	case e.index == 0:
		e.due = due
		heap.Push(&a.mu.heap, e)
	case due < e.due:
		e.due = due
		heap.Fix(&a.mu.heap, e.index-1)
	default:
		return
	}
	if a.mu.heap[0] == e {
		select {
		case a.poke <- struct{}{}:
		default:
		}
	}
}

// done gives a task back to the schedule, due in d.
func (a *Archive) done(e *entry, d time.Duration) {
	a.mu.Lock()
	e.busy = false
	if e.again {
		d, e.again = 0, false
	}
	a.mu.Unlock()
	a.schedule(e, e.task, d)
}

// dispatch hands due tasks to the workers of passes, in order of time.
func (a *Archive) dispatch() {
	defer a.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		t, wait := a.pop()
		if t != nil {
			select {
			case a.passes <- t:
				continue
			case <-a.ctx.Done():
				return
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-a.poke:
		case <-a.ctx.Done():
			return
		}
	}
}

// pop takes the next due task, or tells how long to wait for it.
func (a *Archive) pop() (task, time.Duration) {
	now := a.opt.Clock.Mono()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.mu.heap) == 0 {
		return nil, time.Hour
	}
	e := a.mu.heap[0]
	if e.due > now {
		return nil, e.due - now
	}
	heap.Pop(&a.mu.heap)
	e.busy = true
	return e.task, 0
}

// workers start n workers that take tasks from a channel.
func (a *Archive) workers(n int, tasks <-chan task) {
	for range n {
		a.wg.Add(1)
		go func() {
			defer a.wg.Done()
			for {
				select {
				case t := <-tasks:
					t.run()
				case <-a.ctx.Done():
					return
				}
			}
		}()
	}
}

// A queue is tasks that wait for a worker of their own kind; putting never waits.
type queue struct {
	poke chan struct{}
	mu   struct {
		sync.Mutex
		tasks []task
	}
}

func newQueue(workers int) *queue { return &queue{poke: make(chan struct{}, workers)} }

func (q *queue) put(t task) {
	q.mu.Lock()
	q.mu.tasks = append(q.mu.tasks, t)
	q.mu.Unlock()
	select {
	case q.poke <- struct{}{}:
	default: // that many workers look already
	}
}

func (q *queue) take() task {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.tasks) == 0 {
		return nil
	}
	t := q.mu.tasks[0]
	q.mu.tasks = q.mu.tasks[1:]
	return t
}

// work does the tasks of a queue until the archive closes.
func (a *Archive) work(q *queue) {
	defer a.wg.Done()
	for {
		for t := q.take(); t != nil && a.ctx.Err() == nil; t = q.take() {
			t.run()
		}
		select {
		case <-q.poke:
		case <-a.ctx.Done():
			return
		}
	}
}
