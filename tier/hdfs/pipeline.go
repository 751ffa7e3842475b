package hdfs

import (
	"sync"
	"time"
)

// lowered is for how long new files are made with fewer replicas after a pipeline
// broke: about as long as a NameNode takes to believe that a DataNode is dead.
const lowered = 10 * time.Minute

// A pipeline remembers what the store has learned of writing: the least block size
// of the NameNode, and whether pipelines of full length could be made of late. The
// library neither mends a pipeline nor leaves a dead DataNode out of it: with as many
// DataNodes as replicas one dead node fails every write until the NameNode notices.
type pipeline struct {
	mu struct {
		sync.Mutex
		leastBlock int64
		fewer      int       // replicas less than wanted
		until      time.Time // when fewer ends
	}
}

const usualLeastBlock = 1 << 20 // dfs.namenode.fs-limits.min-block-size

// blockSize is the size of a file rounded up to the checksum chunk of 512 bytes, at
// least what the NameNode takes.
func (p *pipeline) blockSize(size int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.leastBlock == 0 {
		p.mu.leastBlock = usualLeastBlock
	}
	const chunk = 512
	return max((size+chunk-1)/chunk*chunk, p.mu.leastBlock)
}

func (p *pipeline) setLeastBlock(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.leastBlock = (n + 511) / 512 * 512
}

// replication is how many replicas to ask for now.
func (p *pipeline) replication(now time.Time, want, least int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.mu.until) {
		p.mu.fewer = 0
	}
	return max(want-p.mu.fewer, min(least, want))
}

// broke notes that a pipeline of n replicas failed where want were wanted.
func (p *pipeline) broke(now time.Time, n, want int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.fewer, p.mu.until = max(p.mu.fewer, want-n+1), now.Add(lowered)
}
