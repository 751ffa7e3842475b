package conn

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"varve/broker/kafka"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestHostileFramesCloseTheConnectionWithOneLine(t *testing.T) {
	for name, b := range map[string]string{
		"size of 2 GiB":     "\x7f\xff\xff\xff",
		"negative size":     "\xff\xff\xff\xff",
		"size of nothing":   "\x00\x00\x00\x00",
		"TLS":               "\x16\x03\x01\x02\x00",
		"HTTP":              "GET / HTTP/1.1\r\n\r\n",
		"unknown key":       "\x00\x00\x00\x0a\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff",
		"produce version 2": "\x00\x00\x00\x0a\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff",
		"client id cut":     "\x00\x00\x00\x0a\x00\x0c\x00\x00\x00\x00\x00\x01\x00\x09",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, func(r *rig) {
				c := r.dial()
				go c.Write([]byte(b))
				c.ended()
				synctest.Wait()
				if log := r.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "level=WARN") {
					t.Errorf("log %q", log)
				}
			})
		})
	}
}

func TestRepeatedHostilityIsSummedUp(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for range 50 {
			c := r.dial()
			go c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
			c.ended()
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if log := r.log.String(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "49 times more") {
			t.Errorf("log %q", log)
		}
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	bubble(t, Config{IdleTime: time.Minute}, func(r *rig) {
		c := r.dial()
		c.send(heartbeat("a", 0))
		c.answer(1)
		began := time.Now()
		c.ended()
		if took := time.Since(began); took < time.Minute || took > time.Minute+3*time.Second {
			t.Errorf("closed after %v", took)
		}
		if log := r.log.String(); log != "" {
			t.Errorf("an idle end is news: %q", log)
		}
	})
}

func TestWaitingConnectionsAreNotIdle(t *testing.T) {
	bubble(t, Config{IdleTime: time.Minute}, func(r *rig) {
		parked, pending := r.dial(), r.dial()
		parked.send(heartbeat("park", 180_000))
		pending.send(produce(3*time.Minute, 0))
		parked.answer(1)
		pending.produced(1, kafka.RequestTimedOut)
	})
}

func TestARequestThatStopsInItsMiddleIsGivenUp(t *testing.T) {
	bubble(t, Config{FrameStall: 10 * time.Second}, func(r *rig) {
		c := r.dial()
		f := c.request(heartbeat("a", 0))
		began := time.Now()
		for _, b := range f[:8] { // slow is not stopped
			c.Write([]byte{b})
			time.Sleep(5 * time.Second)
		}
		c.ended()
		if took := time.Since(began); took < 45*time.Second || took > 50*time.Second {
			t.Errorf("closed after %v", took)
		}
		synctest.Wait()
		if log := r.log.String(); !strings.Contains(log, "stopped in its middle") {
			t.Errorf("log %q", log)
		}
	})
}

func TestAnAnswerThatIsNotReadIsGivenUp(t *testing.T) {
	bubble(t, Config{WriteStall: 10 * time.Second}, func(r *rig) {
		c := r.dial()
		c.send(heartbeat("a", 0))
		time.Sleep(15 * time.Second)
		c.ended()
		synctest.Wait()
		if log := r.log.String(); !strings.Contains(log, "was not read") {
			t.Errorf("log %q", log)
		}
	})
}

func TestMoreConnectionsThanAllowedWait(t *testing.T) {
	bubble(t, Config{MaxConnections: 1}, func(r *rig) {
		first := r.dial()
		second := make(chan *client)
		go func() { second <- r.dial() }()
		synctest.Wait()
		if n := r.Stats().Connections; n != 1 {
			t.Fatalf("%d connections", n)
		}
		first.Close()
		c := <-second
		c.send(heartbeat("a", 0))
		c.answer(1)
	})
}

func TestRequestsWaitForTheBudget(t *testing.T) {
	bubble(t, Config{QueuedBytes: 100 << 10}, func(r *rig) {
		big := produce(time.Minute, 0).(*kmsg.ProduceRequest)
		big.Topics[0].Partitions[0].Records = make([]byte, 120<<10)
		a, b, small := r.dial(), r.dial(), r.dial()
		frame := a.request(big)
		a.Write(frame[:len(frame)-1]) // admitted, and not whole
		wrote := make(chan struct{})
		go func() { b.send(big); close(wrote) }()
		time.Sleep(time.Second)
		select {
		case <-wrote:
			t.Fatal("a second request is read while the first takes all the budget")
		default:
		}
		small.send(heartbeat("a", 0)) // small ones do not count
		small.answer(1)
		a.Write(frame[len(frame)-1:])
		<-wrote
		synctest.Wait()
		if n := r.script.servedCount(); n != 3 {
			t.Errorf("%d requests served, want 3", n)
		}
		if used := r.budget.mu.used; used != 0 {
			t.Errorf("%d bytes of the budget are taken and nothing is read", used)
		}
	})
}

func TestManyPendingAnswersStopTheReading(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		c := r.dial()
		go func() {
			for range 1500 {
				c.send(produce(time.Minute, 0))
			}
		}()
		synctest.Wait()
		if n := r.script.servedCount(); n != 1000 {
			t.Fatalf("%d requests served before any is answered, want 1000", n)
		}
		for i := range 1500 {
			h := r.script.held(i)
			h.slot.Done(h.token, kafka.None)
			c.produced(int32(i+1), kafka.None)
			synctest.Wait()
		}
	})
}
