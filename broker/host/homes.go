package host

import (
	"sync"

	"varve/broker/commitlog"
	"varve/broker/kafka"
)

// homes knows which log folder a partition lies in.
type homes struct {
	mu struct {
		sync.Mutex
		at    map[kafka.TopicPartition]*commitlog.Dir
		count map[*commitlog.Dir]int
	}
}

// found takes the partitions of a folder in.
func (h *homes) found(d *commitlog.Dir) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.at == nil {
		h.mu.at, h.mu.count = map[kafka.TopicPartition]*commitlog.Dir{}, map[*commitlog.Dir]int{}
	}
	for _, f := range d.Partitions() {
		if f.Kind == commitlog.Live {
			h.mu.at[f.Partition] = d
			h.mu.count[d]++
		}
	}
}

// of is the folder of a partition; nil where it has none.
func (h *homes) of(tp kafka.TopicPartition) *commitlog.Dir {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.at[tp]
}

// choose settles a new partition in the folder in service that has the fewest.
func (h *homes) choose(dirs []*commitlog.Dir, tp kafka.TopicPartition) *commitlog.Dir {
	h.mu.Lock()
	defer h.mu.Unlock()
	var best *commitlog.Dir
	for _, d := range dirs {
		if d.Failed() == nil && (best == nil || h.mu.count[d] < h.mu.count[best]) {
			best = d
		}
	}
	if best != nil {
		h.mu.at[tp] = best
		h.mu.count[best]++
	}
	return best
}

// forget says that a partition is no more.
func (h *homes) forget(tp kafka.TopicPartition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.mu.at[tp]; d != nil {
		h.mu.count[d]--
		delete(h.mu.at, tp)
	}
}
