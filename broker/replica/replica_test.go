package replica

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"varve/broker/kafka"
)

// TestLeader runs the stories in testdata/leader. Each line is an event at a time; the
// answer is what it led to, then the state it left. Broker 1 leads epoch 5.
func TestLeader(t *testing.T) {
	datadriven.Walk(t, "testdata/leader", func(t *testing.T, path string) {
		s := &story{now: time.Unix(1000, 0)}
		datadriven.RunTest(t, path, s.run)
	})
}

type story struct {
	l     *Leader
	now   time.Time
	epoch kafka.PartitionEpoch
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	var e Effects
	switch d.Cmd {
	case "leader":
		s.lead(t, d)
	case "append":
		e.High, e.Moved = s.l.Appended(kafka.Offset(number(t, d, "end", 0)))
	case "fetch":
		e = s.l.Fetched(s.now, Fetched{
			From: kafka.BrokerID(number(t, d, "from", 0)), BrokerEpoch: kafka.BrokerEpoch(number(t, d, "broker-epoch", 7)),
			LeaderEpoch: kafka.LeaderEpoch(number(t, d, "epoch", 5)), At: kafka.Offset(number(t, d, "at", 0)),
		})
	case "wait":
		lapse, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(lapse)
		e = s.l.Tick(s.now)
	case "log": // an edit with this ISR
		s.epoch++
		e = s.l.Committed(Change{LeaderEpoch: 5, PartitionEpoch: s.epoch, ISR: ids(t, d, "isr")})
	case "refuse":
		w, _ := s.l.Wish()
		e = s.l.Refused(w.N, map[string]kafka.Code{"ineligible": kafka.IneligibleReplica, "version": kafka.InvalidUpdateVersion}[d.CmdArgs[0].Key])
	case "register":
		s.l.Registered(Replica{kafka.BrokerID(number(t, d, "broker", 0)), kafka.BrokerEpoch(number(t, d, "broker-epoch", 0)), !d.HasArg("fenced")})
	case "min-isr":
		return fmt.Sprintf("acks=all: %v\n", s.l.MinISRMet(int(number(t, d, "of", 0))))
	case "proof":
		at, always := s.l.ProvenAt()
		if at.IsZero() {
			return fmt.Sprintf("none, always=%v\n", always)
		}
		return fmt.Sprintf("%v ago\n", s.now.Sub(at))
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return s.show(e)
}

func (s *story) lead(t *testing.T, d *datadriven.TestData) {
	term := Term{
		Leader: 1, Epoch: 5, ISR: ids(t, d, "isr"), MaxLag: 10 * time.Second,
		End: kafka.Offset(number(t, d, "end", 0)), High: kafka.Offset(number(t, d, "high", 0)),
		MinISR: int(number(t, d, "min", 1)), Recovering: d.HasArg("recovering"),
	}
	for _, id := range ids(t, d, "replicas") {
		term.Replicas = append(term.Replicas, Replica{id, 7, true})
	}
	s.l, s.epoch = NewLeader(s.now, term), 0
}

func (s *story) show(e Effects) string {
	var b strings.Builder
	if e.Code != kafka.None {
		fmt.Fprintf(&b, "refuse %v\n", e.Code)
	}
	if e.Moved {
		fmt.Fprintf(&b, "reveal %d\n", e.High)
	}
	if e.Ask {
		w, _ := s.l.Wish()
		fmt.Fprintf(&b, "ask")
		for _, m := range w.ISR {
			fmt.Fprintf(&b, " %d", m.ID)
			if m.Epoch >= 0 {
				fmt.Fprintf(&b, "(%d)", m.Epoch)
			}
		}
		fmt.Fprintf(&b, " over %d\n", w.PartitionEpoch)
	}
	fmt.Fprintf(&b, "  %v\n", s.l)
	return b.String()
}

// TestFollower runs the stories in testdata/follower. The follower's log is a list of
// epoch starts that the story gives.
func TestFollower(t *testing.T) {
	datadriven.Walk(t, "testdata/follower", func(t *testing.T, path string) {
		var f *Follower
		var own []kafka.EpochStart
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "follow":
				own = nil
				for _, e := range ints(t, d, "epochs") {
					own = append(own, kafka.EpochStart{Epoch: kafka.LeaderEpoch(e / 100), Start: kafka.Offset(e % 100)})
				}
				f = NewFollower(Following{
					Leader: 1, Epoch: 5, End: kafka.Offset(number(t, d, "end", 0)), LastEpoch: kafka.LeaderEpoch(number(t, d, "last", -1)),
					High: kafka.Offset(number(t, d, "high", 0)), Unclean: d.HasArg("unclean"),
				})
			case "fetch":
				r, ok := f.Fetch()
				if !ok {
					return "one is in flight, or stopped\n"
				}
				return fmt.Sprintf("request %d: epoch %d at %d after epoch %d\n", r.Seq, r.Epoch, r.At, r.LastEpoch)
			case "lost":
				f.Lost(uint64(number(t, d, "seq", 0)))
			case "response":
				return respond(t, d, f, own)
			default:
				t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			}
			return fmt.Sprintf("  %v\n", f)
		})
	})
}

// respond feeds a response and does what the follower says.
func respond(t *testing.T, d *datadriven.TestData, f *Follower, own []kafka.EpochStart) string {
	r := Response{
		Seq: uint64(number(t, d, "seq", 0)), High: kafka.Offset(number(t, d, "high", 0)), SegmentBase: kafka.Offset(number(t, d, "segment", -1)),
		First: kafka.Offset(number(t, d, "first", -1)), MaxEpoch: kafka.LeaderEpoch(number(t, d, "batch-epoch", 5)),
		Diverging: kafka.EpochStart{Epoch: kafka.LeaderEpoch(number(t, d, "diverging", -1)), Start: kafka.Offset(number(t, d, "ends", 0))},
	}
	if d.HasArg("not-leader") {
		r.Code = kafka.NotLeaderOrFollower
	}
	v := f.Received(r, func(e kafka.LeaderEpoch) (kafka.LeaderEpoch, kafka.Offset) {
		at, end := kafka.LeaderEpoch(-1), kafka.Offset(0)
		for i, s := range own {
			if s.Epoch <= e {
				at, end = s.Epoch, f.End
				if i+1 < len(own) {
					end = own[i+1].Start
				}
			}
		}
		return at, end
	})
	names := map[Do]string{Drop: "drop", Append: "append", Idle: "idle", Truncate: "truncate", Retry: "retry", Stop: "stop"}
	out := names[v.Do]
	switch v.Do {
	case Append:
		if v.Roll {
			out += " in a new segment"
		}
		f.Appended(kafka.Offset(number(t, d, "to", 0)), r.MaxEpoch, r.High)
	case Truncate:
		out += fmt.Sprintf(" to %d", v.To)
		f.Truncated(v.To, r.Diverging.Epoch)
	case Stop:
		out += ": " + v.Why.Error()
	}
	return fmt.Sprintf("%s\n  %v\n", out, f)
}

func number(t *testing.T, d *datadriven.TestData, key string, fallback int64) int64 {
	n := fallback
	d.MaybeScanArgs(t, key, &n)
	return n
}

func ints(t *testing.T, d *datadriven.TestData, key string) (out []int) {
	d.MaybeScanArgs(t, key, &out)
	return out
}

func ids(t *testing.T, d *datadriven.TestData, key string) (out []kafka.BrokerID) {
	for _, i := range ints(t, d, key) {
		out = append(out, kafka.BrokerID(i))
	}
	return out
}

// BenchmarkFetched asks whether a follower's fetch costs an allocation.
func BenchmarkFetched(b *testing.B) {
	l := NewLeader(time.Unix(0, 0), Term{
		Leader: 1, Epoch: 5, Replicas: []Replica{{1, 7, true}, {2, 7, true}, {3, 7, true}},
		ISR: []kafka.BrokerID{1, 2, 3}, MaxLag: time.Second, MinISR: 2,
	})
	now := time.Unix(1, 0)
	end := kafka.Offset(0)
	b.ReportAllocs()
	for b.Loop() {
		end++
		l.Appended(end)
		l.Fetched(now, Fetched{2, 7, 5, end})
		if e := l.Fetched(now, Fetched{3, 7, 5, end}); e.High != end {
			b.Fatalf("high watermark %d, want %d", e.High, end)
		}
	}
}
