package conn

import "sync"

// classes are the sizes of pooled buffers, in bytes.
var classes = [...]int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}

// Classes that have a meaning.
const (
	classOut   = 0 // where answers begin
	classFirst = 1 // where a connection's reads begin
	classFree  = 2 // the largest that the budget does not count
	classMost  = 4 // the largest that a connection takes without a frame that needs it
)

var pools [len(classes)]sync.Pool

// classFor is the smallest class that holds n bytes; len(classes) where none does.
func classFor(n int) int {
	for i, size := range classes {
		if n <= size {
			return i
		}
	}
	return len(classes)
}

// getBuffer is a buffer of at least n bytes; its length is its capacity.
func getBuffer(n int) *[]byte {
	i := classFor(n)
	if i == len(classes) {
		b := make([]byte, n)
		return &b
	}
	if b, ok := pools[i].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, classes[i])
	return &b
}

// putBuffer gives a buffer back under the largest class that it holds.
func putBuffer(b *[]byte) {
	n := cap(*b)
	*b = (*b)[:n]
	for i := len(classes) - 1; i >= 0; i-- {
		if n >= classes[i] {
			if n < 2*classes[i] { // a much larger one would be wasted there
				pools[i].Put(b)
			}
			return
		}
	}
}
