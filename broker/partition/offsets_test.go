package partition_test

import (
	"testing"
	"time"

	"varve/broker/kafka"
	"varve/broker/partition"
)

// locate asks for a place among what consumers see.
func (r *rig) locate(ts int64) partition.Place {
	r.t.Helper()
	at, err := r.Locate(r.t.Context(), ts, kafka.NoEpoch, false)
	if err != nil {
		r.t.Fatalf("locating %d: %v", ts, err)
	}
	return at
}

func TestPlacesOfALocalLog(t *testing.T) {
	r := led(t, settings())
	r.put(batch(2, 10, noon))
	r.put(batch(2, 10, noon.Add(time.Minute))) // the newest is offset 3
	r.Resign()
	r.lead(6, nil)
	r.put(batch(1, 10, noon.Add(time.Second)))
	ms := noon.UnixMilli()
	none := partition.Place{Offset: kafka.NoOffset, Timestamp: -1, Epoch: kafka.NoEpoch}
	for _, c := range []struct {
		name string
		ts   int64
		want partition.Place
	}{
		{"latest", partition.Latest, partition.Place{Offset: 5, Timestamp: -1, Epoch: 6}},
		{"earliest", partition.Earliest, partition.Place{Offset: 0, Timestamp: -1, Epoch: 5}},
		{"earliest local", partition.EarliestLocal, partition.Place{Offset: 0, Timestamp: -1, Epoch: 5}},
		{"newest", partition.MaxTimestamp, partition.Place{Offset: 3, Timestamp: ms + 60_001, Epoch: 5}},
		{"latest tiered, without a tier", partition.LatestTiered, none},
		{"earliest pending, without a tier", partition.EarliestPending, none},
		{"a time before all", 0, partition.Place{Offset: 0, Timestamp: ms, Epoch: 5}},
		{"a time between", ms + 2, partition.Place{Offset: 2, Timestamp: ms + 60_000, Epoch: 5}},
		{"a time after all", ms + 60_002, none},
	} {
		if got := r.locate(c.ts); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestWhatIsNotRevealedHasNoPlace(t *testing.T) {
	r, _ := belowMinISR(t)
	for _, ts := range []int64{partition.MaxTimestamp, noon.UnixMilli()} {
		if got := r.locate(ts); got.Offset != kafka.NoOffset {
			t.Errorf("%d is at %+v", ts, got)
		}
	}
	if got := r.locate(partition.Latest); got.Offset != 0 {
		t.Errorf("latest is %+v", got)
	}
}

func TestANewLeaderTellsNoLatestBeforeItsTermIsReached(t *testing.T) {
	r, next := belowMinISR(t)
	r.Resign()
	r.lead(6, nil)
	for _, ts := range []int64{partition.Latest, noon.UnixMilli()} {
		_, err := r.Locate(t.Context(), ts, kafka.NoEpoch, false)
		wantCode(t, "KIP-207", err, kafka.OffsetNotAvailable)
	}
	r.Set(settings())
	if got := r.locate(partition.Latest); got.Offset != next {
		t.Errorf("latest is %+v, want %d", got, next)
	}
}
