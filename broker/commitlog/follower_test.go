package commitlog_test

import (
	"bytes"
	"fmt"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/vfs"
)

// A follower copies runs as the leader's reads give them, and ends with the same bytes,
// segments (T8) and epochs.
func TestAFollowerHasTheLeadersBytesSegmentsAndEpochs(t *testing.T) {
	d1, leader := open(t, vfs.NewMem(), "/logs", &commitlog.Config{SegmentBytes: 900}, nil)
	d2, follower := open(t, vfs.NewMem(), "/logs", &commitlog.Config{}, nil)
	for epoch := range kafka.LeaderEpoch(4) {
		if err := leader.StartEpoch(epoch); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, leader, 9)
	}
	for follower.End() < leader.End() {
		run, info, err := leader.Read(follower.End(), 500, leader.End(), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := follower.AppendAsFollower(runBytes(t, run), info.SegmentBase, 0); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := readAll(t, leader, 0), readAll(t, follower, 0); !bytes.Equal(a, b) {
		t.Errorf("follower has %d bytes, leader %d", len(b), len(a))
	}
	if a, b := fmt.Sprint(mustSegments(t, leader)), fmt.Sprint(mustSegments(t, follower)); a != b {
		t.Errorf("follower's segments\n%s, leader's\n%s", b, a)
	}
	a, _ := leader.Epochs()
	b, _ := follower.Epochs()
	if fmt.Sprint(a.List()) != fmt.Sprint(b.List()) {
		t.Errorf("follower's epochs %v, leader's %v", b.List(), a.List())
	}
	if err := follower.AppendAsFollower(batch(1, 1, 0), 0, 0); err == nil {
		t.Error("a batch below the log end was taken")
	}
	d1.Abandon()
	d2.Abandon()
}
