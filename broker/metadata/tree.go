package metadata

import (
	"bytes"
	"cmp"
	"iter"

	"varve/broker/kafka"
)

// A tree is a persistent ordered map: put and remove return a new tree and share
// all but one path with the old one. It is a treap whose ranks are hashes of the
// keys, so equal contents have equal shapes and diff skips what two images share.
// (R. Seidel, C. Aragon: Randomized search trees, 1996.)
type tree[K, V any] struct {
	order *order[K]
	root  *node[K, V]
	size  int
}

// An order says how keys compare and how they are spread.
type order[K any] struct {
	compare func(a, b K) int
	rank    func(K) uint32
}

type node[K, V any] struct {
	key         K
	value       V
	left, right *node[K, V]
	rank        uint32
}

var (
	byName = &order[string]{cmp.Compare[string], func(s string) uint32 { return spread([]byte(s)) }}
	byID   = &order[kafka.TopicID]{
		func(a, b kafka.TopicID) int { return bytes.Compare(a[:], b[:]) },
		func(id kafka.TopicID) uint32 { return spread(id[:]) },
	}
)

// spread is FNV-1a with a finish that mixes the low bits up.
func spread(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	h ^= h >> 15
	h *= 0x2c1b3c6d
	return h ^ h>>13
}

func newTree[K, V any](o *order[K]) tree[K, V] { return tree[K, V]{order: o} }

func (t tree[K, V]) get(key K) (v V, ok bool) {
	for n := t.root; n != nil; {
		switch c := t.order.compare(key, n.key); {
		case c == 0:
			return n.value, true
		case c < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	return v, false
}

// all visits the entries in the order of their keys.
func (t tree[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.root.walk(yield) }
}

func (n *node[K, V]) walk(yield func(K, V) bool) bool {
	return n == nil || n.left.walk(yield) && yield(n.key, n.value) && n.right.walk(yield)
}

func (t tree[K, V]) put(key K, value V) tree[K, V] {
	fresh := &node[K, V]{key: key, value: value, rank: t.order.rank(key)}
	root, added := t.putAt(t.root, fresh)
	t.root = root
	if added {
		t.size++
	}
	return t
}

// putAt returns a copy of n that holds fresh; the copied nodes are ours to turn.
func (t tree[K, V]) putAt(n, fresh *node[K, V]) (_ *node[K, V], added bool) {
	if n == nil {
		return fresh, true
	}
	c := t.order.compare(fresh.key, n.key)
	up := *n
	switch {
	case c == 0:
		up.value = fresh.value
		return &up, false
	case c < 0:
		up.left, added = t.putAt(n.left, fresh)
		if l := up.left; t.above(l, &up) {
			up.left, l.right = l.right, &up
			return l, added
		}
	default:
		up.right, added = t.putAt(n.right, fresh)
		if r := up.right; t.above(r, &up) {
			up.right, r.left = r.left, &up
			return r, added
		}
	}
	return &up, added
}

// above tells whether a belongs nearer to the root than b.
func (t tree[K, V]) above(a, b *node[K, V]) bool {
	return a.rank > b.rank || a.rank == b.rank && t.order.compare(a.key, b.key) < 0
}

func (t tree[K, V]) remove(key K) tree[K, V] {
	if _, ok := t.get(key); !ok {
		return t
	}
	t.root = t.removeAt(t.root, key)
	t.size--
	return t
}

func (t tree[K, V]) removeAt(n *node[K, V], key K) *node[K, V] {
	up := *n
	switch c := t.order.compare(key, n.key); {
	case c == 0:
		return t.join(n.left, n.right)
	case c < 0:
		up.left = t.removeAt(n.left, key)
	default:
		up.right = t.removeAt(n.right, key)
	}
	return &up
}

// join makes one tree of two, every key of a being below every key of b.
func (t tree[K, V]) join(a, b *node[K, V]) *node[K, V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case t.above(a, b):
		up := *a
		up.right = t.join(a.right, b)
		return &up
	default:
		up := *b
		up.left = t.join(a, b.left)
		return &up
	}
}

// split cuts n into the keys below and above key, and the entry at it.
func (t tree[K, V]) split(n *node[K, V], key K) (below, at, above *node[K, V]) {
	if n == nil {
		return nil, nil, nil
	}
	up := *n
	switch c := t.order.compare(key, n.key); {
	case c == 0:
		return n.left, n, n.right
	case c < 0:
		below, at, up.left = t.split(n.left, key)
		return below, at, &up
	default:
		up.right, at, above = t.split(n.right, key)
		return &up, at, above
	}
}

// diff visits the keys whose entry in a and in b is not the same node, in order;
// a side that lacks the key is nil. Shared subtrees cost nothing.
func (t tree[K, V]) diff(a, b *node[K, V], visit func(a, b *node[K, V]) bool) bool {
	if a == b {
		return true
	}
	if a == nil || b != nil && t.above(b, a) {
		below, at, above := t.split(a, b.key)
		return t.diff(below, b.left, visit) && visit(at, b) && t.diff(above, b.right, visit)
	}
	below, at, above := t.split(b, a.key)
	return t.diff(a.left, below, visit) && visit(a, at) && t.diff(a.right, above, visit)
}
