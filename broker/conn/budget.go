package conn

import "sync"

// A budget bounds the bytes of buffers that all connections hold requests in
// (queued.max.request.bytes). What fits when there is any room is admitted, so it
// may be exceeded by one request, as Kafka's. Buffers up to 16 KiB do not count.
type budget struct {
	max int64 // 0 is no bound

	mu struct {
		sync.Mutex
		used    int64
		waiting []*Conn
	}
}

// take admits n bytes, or has the connection told when there is room.
func (b *budget) take(n int64, c *Conn) bool {
	if b.max <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.used >= b.max {
		b.mu.waiting = append(b.mu.waiting, c)
		return false
	}
	b.mu.used += n
	return true
}

// try admits n bytes or does not.
func (b *budget) try(n int64) bool {
	if b.max <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.used >= b.max {
		return false
	}
	b.mu.used += n
	return true
}

// add counts n bytes more of a request that was admitted; n < 0 gives back.
func (b *budget) add(n int64) {
	if b.max <= 0 || n == 0 {
		return
	}
	b.mu.Lock()
	b.mu.used += n
	var waiting []*Conn
	if n < 0 && b.mu.used < b.max {
		waiting, b.mu.waiting = b.mu.waiting, nil
	}
	b.mu.Unlock()
	for _, c := range waiting {
		c.signal(evBudget)
	}
}
