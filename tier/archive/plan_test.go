package archive

import (
	"testing"

	"varve/broker/kafka"
)

// Each bound alone keeps the second of three segments, and all together let it go.
func TestLocalSegmentsGoOnlyWhenNobodyNeedsThemHere(t *testing.T) {
	segs := []Segment{
		{Base: 0, Next: 10, Size: 100, MaxTimestamp: 1000},
		{Base: 10, Next: 20, Size: 100, MaxTimestamp: 2000},
		{Base: 20, Next: 25, Size: 50, MaxTimestamp: 3000},
	}
	old := Config{LocalRetentionMs: 100, LocalRetentionBytes: -1}
	large := Config{LocalRetentionMs: -1, LocalRetentionBytes: 60}
	for _, x := range []struct {
		name    string
		counted kafka.Offset
		o       Offsets
		c       Config
		nowMs   int64
		want    kafka.Offset
	}{
		{"all that is closed, by time", 20, Offsets{HighWatermark: 25}, old, 9000, 20},
		{"the tier counts only the first", 10, Offsets{HighWatermark: 25}, old, 9000, 10},
		{"the second is not revealed", 20, Offsets{HighWatermark: 15}, old, 9000, 10},
		{"the second is young", 20, Offsets{HighWatermark: 25}, old, 2050, 10},
		{"the clock is not to be trusted", 20, Offsets{HighWatermark: 25}, old, 0, 0},
		{"by size", 20, Offsets{HighWatermark: 25}, Config{LocalRetentionMs: -1, LocalRetentionBytes: 50}, 9000, 20},
		{"without the second too little would be left", 20, Offsets{HighWatermark: 25}, large, 9000, 10},
		{"below the log start, whatever else", 0, Offsets{LogStart: 10, HighWatermark: 25}, Config{LocalRetentionMs: -1, LocalRetentionBytes: -1}, 0, 10},
		{"the active one never", 25, Offsets{LogStart: 25, HighWatermark: 25}, old, 9000, 20},
	} {
		if got := localDrop(segs, x.counted, x.o, x.c, x.nowMs); got != x.want {
			t.Errorf("%s: segments below %d go, want %d", x.name, got, x.want)
		}
	}
}
