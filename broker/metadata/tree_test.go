package metadata

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTreeIsAMapWhosePastStays compares the tree with a plain map over random edits
// and looks at old versions again.
func TestTreeIsAMapWhosePastStays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	now := newTree[string, int](byName)
	want := map[string]int{}
	type past struct {
		tree tree[string, int]
		want map[string]int
	}
	var pasts []past
	for i := range 3000 {
		key := fmt.Sprint("k", rng.IntN(200))
		if rng.IntN(3) == 0 {
			now = now.remove(key)
			delete(want, key)
		} else {
			now = now.put(key, i)
			want[key] = i
		}
		if i%100 == 0 {
			pasts = append(pasts, past{now, maps.Clone(want)})
		}
	}
	for i, p := range append(pasts, past{now, want}) {
		got := maps.Collect(p.tree.all())
		if !maps.Equal(got, p.want) || p.tree.size != len(p.want) {
			t.Fatalf("version %d holds %d entries (size %d), want %d", i, len(got), p.tree.size, len(p.want))
		}
		if i > 0 {
			checkDiff(t, pasts[i-1].tree, p.tree, pasts[i-1].want, p.want)
		}
	}
}

func checkDiff(t *testing.T, a, b tree[string, int], was, is map[string]int) {
	t.Helper()
	var got, want []string
	a.diff(a.root, b.root, func(x, y *node[string, int]) bool {
		n := y
		if n == nil {
			n = x
		}
		if x == nil || y == nil || x.value != y.value {
			got = append(got, n.key)
		}
		return true
	})
	for k, v := range was {
		if w, ok := is[k]; !ok || v != w {
			want = append(want, k)
		}
	}
	for k := range is {
		if _, ok := was[k]; !ok {
			want = append(want, k)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("diff visits %v, want %v", got, want)
	}
}

// TestEqualContentsHaveEqualShapes is what lets diff skip what was loaded from a
// snapshot and edited alike.
func TestEqualContentsHaveEqualShapes(t *testing.T) {
	a, b := newTree[string, int](byName), newTree[string, int](byName)
	for i := range 500 {
		a = a.put(fmt.Sprint(i), i)
		b = b.put(fmt.Sprint(499-i), 499-i)
	}
	b = b.put("x", 1).remove("x")
	var same func(x, y *node[string, int]) bool
	same = func(x, y *node[string, int]) bool {
		if x == nil || y == nil {
			return x == y
		}
		return x.key == y.key && same(x.left, y.left) && same(x.right, y.right)
	}
	if !same(a.root, b.root) {
		t.Fatal("the order of insertion shows in the shape")
	}
}
