package conn

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"varve/broker/kafka"
)

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		go c.send(heartbeat("a", 0), heartbeat("silence", 0), heartbeat("b", 0))
		c.answer(1)
		c.answer(3)
	})
}

func TestRequestsBehindAPendingProduceAreServedAndAnsweredAfterIt(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(produce(time.Minute, 0), heartbeat("behind", 0))
		c.send(produce(time.Minute, 1))
		c.silent()
		if n := r.script.servedCount(); n != 3 {
			t.Fatalf("%d requests served, want 3", n)
		}
		second := r.script.held(1)
		second.slot.Done(second.token, kafka.None)
		c.silent()
		first := r.script.held(0)
		first.slot.Done(first.token, kafka.None)
		c.produced(1, kafka.None)
		c.answer(2)
		c.produced(3, kafka.None)
	})
}

func TestProduceIsAnsweredWhenItsLastPartitionIsDone(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(produce(time.Minute, 0, 1))
		synctest.Wait()
		a, b := r.script.held(0), r.script.held(1)
		b.slot.Done(b.token, kafka.NotEnoughReplicasAfterAppend)
		b.slot.Done(b.token, kafka.None) // twice is once
		c.silent()
		a.slot.Done(a.token, kafka.None)
		c.produced(1, kafka.None, kafka.NotEnoughReplicasAfterAppend)
	})
}

func TestProduceThatWaitsTooLongIsTimedOutAndItsTokensAreVoid(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		began := time.Now()
		c.send(produce(2*time.Second, 0, 1))
		synctest.Wait()
		a, b := r.script.held(0), r.script.held(1)
		a.slot.Done(a.token, kafka.None)
		c.produced(1, kafka.None, kafka.RequestTimedOut)
		if took := time.Since(began); took < 2*time.Second || took > 2*time.Second+2*tick {
			t.Errorf("timed out after %v", took)
		}
		c.send(produce(time.Minute, 2)) // takes the slot again
		b.slot.Done(b.token, kafka.None)
		c.silent()
		again := r.script.held(2)
		again.slot.Done(again.token, kafka.None)
		c.produced(2, kafka.None)
	})
}

func TestParkEndsWhenWoken(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(heartbeat("park", 60_000))
		w := <-r.script.wakers
		c.silent()
		w.Wake()
		if got := c.answer(1); !bytes.Equal(got, []byte{0, 0}) {
			t.Errorf("answer %x", got)
		}
		w.Wake() // nobody waits: harmless, once
		c.send(heartbeat("after", 0))
		c.answer(2)
	})
}

func TestParkEndsAtItsDeadlineAndNotBefore(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		for i, ms := range []int32{1, 5, 500, 30_000} {
			began := time.Now()
			c.send(heartbeat("park", ms))
			if got := c.answer(int32(i + 1)); !bytes.Equal(got, []byte{0, 7}) {
				t.Errorf("answer %x, want a time-out", got)
			}
			want := time.Duration(ms) * time.Millisecond
			if took := time.Since(began); took < want || took > want+2*tick {
				t.Errorf("parked for %v, want %v", took, want)
			}
		}
	})
}

func TestPendingAnswersLeaveWhileALaterRequestIsParked(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(produce(time.Minute, 0), heartbeat("park", 60_000), heartbeat("behind", 0))
		w := <-r.script.wakers
		c.silent()
		h := r.script.held(0)
		h.slot.Done(h.token, kafka.None)
		c.produced(1, kafka.None)
		c.silent()
		w.Wake()
		c.answer(2)
		c.answer(3)
	})
}

func TestBlockLeavesTheConnectionAnsweringWhatIsDue(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(produce(time.Minute, 0), heartbeat("block", 0))
		synctest.Wait()
		h := r.script.held(0)
		h.slot.Done(h.token, kafka.None)
		c.produced(1, kafka.None)
		c.silent()
		close(r.script.block)
		c.answer(2)
	})
}

func TestThrottledConnectionIsAnsweredAtOnceAndReadLater(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		began := time.Now()
		go c.send(heartbeat("throttle", 0), heartbeat("after", 0))
		c.answer(1)
		if took := time.Since(began); took > 0 {
			t.Errorf("answered after %v", took)
		}
		c.answer(2)
		if took := time.Since(began); took < time.Second {
			t.Errorf("read again after %v", took)
		}
	})
}

func TestAnErrorClosesAfterTheAnswersBeforeIt(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		go c.send(heartbeat("a", 0), heartbeat("fail", 0), heartbeat("never", 0))
		c.answer(1)
		c.ended()
		if n := r.script.servedCount(); n != 2 {
			t.Errorf("%d requests served, want 2", n)
		}
		synctest.Wait()
		if log := r.log.String(); !strings.Contains(log, "cannot be served") || !strings.Contains(log, "client=tester") {
			t.Errorf("log %q", log)
		}
	})
}

func TestAPanicEndsItsConnectionOnly(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		bad, good := r.dial(), r.dial()
		bad.send(heartbeat("panic", 0))
		bad.ended()
		good.send(heartbeat("a", 0))
		good.answer(1)
		synctest.Wait()
		if log := r.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "a fault of ours") || !strings.Contains(log, "Serve") {
			t.Errorf("log %q", log)
		}
	})
}

func TestShutdownAnswersWhatIsParkedAndPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		idle, parked, pending := r.dial(), r.dial(), r.dial()
		parked.send(heartbeat("park", 60_000))
		pending.send(produce(time.Minute, 0))
		<-r.script.wakers
		synctest.Wait()
		done := make(chan error)
		go func() { done <- r.Shutdown(t.Context()) }()
		idle.ended()
		parked.answer(1)
		parked.ended()
		pending.silent()
		h := r.script.held(0)
		h.slot.Done(h.token, kafka.None)
		pending.produced(1, kafka.None)
		pending.ended()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if r.script.mu.closed != 3 {
			t.Errorf("the handler was told of %d ends, want 3", r.script.mu.closed)
		}
	})
}

func TestShutdownCutsWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		pending, stuck := r.dial(), r.dial()
		pending.send(produce(time.Hour, 0))
		stuck.send(heartbeat("unread", 0))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		pending.ended()
		if n := r.Stats().Connections; n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestCountsAreWhatHasPassed(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		c.send(heartbeat("a", 0))
		c.answer(1)
		c.Close()
		synctest.Wait()
		size := uint64(len(c.request(heartbeat("a", 0))))
		if got, want := r.Stats(), (Stats{0, 1, 0, size, 10}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// A poltergeist panics when it is told of the end.
type poltergeist struct{ *script }

func (poltergeist) Closed(*Conn) { panic("at the end") }

func TestAPanicAtTheEndIsLoggedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, pipes := &logBuffer{}, newPipes()
		s := NewServer(Config{Log: slog.New(slog.NewTextHandler(log, nil))}, poltergeist{newScript()})
		go s.Serve("PLAINTEXT", pipes)
		pipes.dial().Close()
		synctest.Wait()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "at the end") {
			t.Errorf("log %q", log)
		}
	})
}
