package hdfs

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// dialled returns a guarded connection and the peer's end of it.
func dialled(t *testing.T, d *dialler, idle time.Duration) (*guard, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	d.dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
	c, err := d.to(idle)(t.Context(), "tcp", "dn:9866")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); theirs.Close() })
	return c.(*guard), theirs
}

func TestGuardMakesTheEndOfAStreamUnexpected(t *testing.T) {
	g, peer := dialled(t, newDialler(time.Minute), time.Minute)
	peer.Close()
	if _, err := g.Read(make([]byte, 1)); err != io.ErrUnexpectedEOF {
		t.Fatalf("Read at the end = %v, want %v", err, io.ErrUnexpectedEOF)
	}
	if _, err := g.Write([]byte("x")); err == nil {
		t.Fatal("the connection is used after an error")
	}
}

func TestSilentPeerEndsTheConnection(t *testing.T) {
	d := newDialler(10 * time.Millisecond)
	g, _ := dialled(t, d, time.Minute)
	g.SetDeadline(time.Time{}) // as the library does
	if _, err := g.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("Read from a peer that never spoke = %v, want %v after the first limit", err, os.ErrDeadlineExceeded)
	}
	if len(d.mu.open) != 0 {
		t.Fatal("the connection is still open")
	}
}

func TestPeerThatHasSpokenMayBeIdleLonger(t *testing.T) {
	g, peer := dialled(t, newDialler(time.Millisecond), time.Minute)
	go peer.Write([]byte("x"))
	g.first = time.Minute
	if _, err := g.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(g.limit()); left < 50*time.Second {
		t.Fatalf("the limit after the first word is %v, want a minute", left)
	}
}

func TestCutEndsReadsAndDials(t *testing.T) {
	d := newDialler(time.Minute)
	g, _ := dialled(t, d, time.Minute)
	done := make(chan error, 1)
	go func() { done <- second(g.Read(make([]byte, 1))) }()
	d.cut()
	if err := <-done; err == nil {
		t.Fatal("Read went through after the cut")
	}
	if _, err := d.to(time.Minute)(t.Context(), "tcp", "dn:9866"); !errors.Is(err, errCut) {
		t.Fatalf("a dial after the cut = %v, want %v", err, errCut)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPipelineIsShorterForAWhileAfterItBroke(t *testing.T) {
	var p pipeline
	now := time.Unix(0, 0)
	steps := []struct {
		after time.Duration
		broke int // a pipeline of so many; 0: none
		want  int
	}{{0, 0, 3}, {0, 3, 2}, {time.Minute, 2, 1}, {time.Minute, 1, 1}, {lowered + 2*time.Minute + 1, 0, 3}}
	for i, s := range steps {
		if s.broke > 0 {
			p.broke(now.Add(s.after), s.broke, 3)
		}
		if got := p.replication(now.Add(s.after), 3, 1); got != s.want {
			t.Errorf("step %d: %d replicas, want %d", i, got, s.want)
		}
	}
	if got := (&pipeline{}).replication(now, 2, 3); got != 2 {
		t.Errorf("%d replicas where 2 are wanted and 3 are the least, want 2", got)
	}
}

func TestBlockIsTheFileRoundedUp(t *testing.T) {
	var p pipeline
	for size, want := range map[int64]int64{1: 1 << 20, 1 << 20: 1 << 20, 1<<20 + 1: 1<<20 + 512, 5 << 30: 5 << 30} {
		if got := p.blockSize(size); got != want {
			t.Errorf("blockSize(%d) = %d, want %d", size, got, want)
		}
	}
	p.setLeastBlock(4000)
	if got := p.blockSize(1); got != 4096 {
		t.Errorf("after the server said 4000: %d, want 4096", got)
	}
}
