package commitlog_test

import (
	"testing"

	"varve/broker/commitlog"
	"varve/broker/vfs"
)

// fiveSegments is a log whose first segments may go to the tier.
func fiveSegments(t *testing.T, l *commitlog.Log) []commitlog.SegmentInfo {
	t.Helper()
	for len(mustSegments(t, l)) < 5 {
		appendTo(t, l, batch(2, 100, 1000))
	}
	return mustSegments(t, l)
}

// A manifest takes a leader's log start for the truth, and deletes what is below it.
func TestATieredLogKilledBeforeItsFirstCheckpointStillBeginsWhereTheTierMay(t *testing.T) {
	m := vfs.NewMem()
	cfg := &commitlog.Config{SegmentBytes: 400, Remote: true}
	d, l := open(t, m, "/logs", cfg, nil)
	segs := fiveSegments(t, l)
	if _, _, err := l.DropLocal(segs[2].Base); err != nil {
		t.Fatal(err)
	}
	d.Abandon()
	d, l = open(t, m, "/logs", cfg, nil)
	defer d.Abandon()
	if v := l.View(); v.LogStart != 0 || v.LocalStart != segs[2].Base {
		t.Fatalf("log start %d and local start %d, want 0 and %d", v.LogStart, v.LocalStart, segs[2].Base)
	}
}

func TestALogThatBecomesTieredKeepsItsStartOverAKill(t *testing.T) {
	m := vfs.NewMem()
	cfg := &commitlog.Config{SegmentBytes: 400}
	d, l := open(t, m, "/logs", cfg, nil)
	segs := fiveSegments(t, l)
	if _, _, err := l.DropLocal(segs[2].Base); err != nil {
		t.Fatal(err)
	}
	tiered := *cfg
	tiered.Remote = true
	l.SetConfig(&tiered)
	d.Abandon()
	d, l = open(t, m, "/logs", &tiered, nil)
	defer d.Abandon()
	if start := l.Start(); start != segs[2].Base {
		t.Fatalf("log start %d, want %d: what is below went before there was a tier", start, segs[2].Base)
	}
}
