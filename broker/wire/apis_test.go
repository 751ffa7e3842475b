package wire

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestEveryServedVersionIsKnownToKmsg(t *testing.T) {
	for _, a := range APIs {
		r := kmsg.RequestForKey(a.Key)
		if a.Max > r.MaxVersion() {
			t.Errorf("%s: max %d is above kmsg's %d", a.Name, a.Max, r.MaxVersion())
		}
		for v := a.Min; v <= a.Max; v++ {
			r.SetVersion(v)
			if got := flexible(a.Key, v); got != r.IsFlexible() {
				t.Errorf("%s v%d: flexible %v, want %v", a.Name, v, got, r.IsFlexible())
			}
		}
	}
}

func TestTableIsSortedAndFindsItsRows(t *testing.T) {
	if !slices.IsSortedFunc(APIs, func(a, b API) int { return int(a.Key - b.Key) }) {
		t.Error("APIs are not sorted by key")
	}
	for _, a := range APIs {
		if got, ok := Lookup(a.Key); !ok || got != a {
			t.Errorf("Lookup(%d) = %v %v", a.Key, got, ok)
		}
		if !Supported(a.Key, a.Max) || Supported(a.Key, a.Max+1) || Supported(a.Key, a.Min-1) {
			t.Errorf("%s: Supported does not end at %d and %d", a.Name, a.Min, a.Max)
		}
	}
	for _, key := range []int16{-1, 4, 127, 128, 1<<15 - 1} {
		if _, ok := Lookup(key); ok {
			t.Errorf("key %d is found", key)
		}
	}
}

func TestOnlyProduceShowsMoreThanItServes(t *testing.T) {
	for _, a := range APIs {
		if (a.Shown != a.Min) != (a.Key == Produce) {
			t.Errorf("%s shows %d and serves from %d", a.Name, a.Shown, a.Min)
		}
	}
}
