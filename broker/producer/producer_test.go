package producer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"varve/broker/kafka"
)

// TestStories runs the scripts in testdata. A data batch is
//
//	append pid= epoch= seq=FIRST[-LAST] [at=] [time=] [txn] [verified] [broker]
//
// which is checked as a client's, appended at the log's end unless refused, and
// answered with where it lies.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		story := newStory()
		datadriven.RunTest(t, path, story.run)
	})
}

type story struct {
	s    *State
	end  kafka.Offset
	kept []byte // the last snapshot
}

func newStory() *story {
	return &story{s: New(Params{Partition: kafka.TopicPartition{Topic: "orders", Partition: 0}})}
}

func (st *story) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "append":
		return st.append(t, d)
	case "marker":
		return st.marker(t, d)
	case "plain": // a batch without a producer
		e := Entry{PID: kafka.NoProducer}
		d.MaybeScanArgs(t, "time", &e.Timestamp)
		st.s.Append(e, st.end, st.end)
		st.end++
		return ""
	case "stable":
		var hw int64
		d.ScanArgs(t, "hw", &hw)
		return fmt.Sprintf("%d\n", st.s.FirstUnstable(kafka.Offset(hw)))
	case "revealed":
		var hw int64
		d.ScanArgs(t, "hw", &hw)
		st.s.Revealed(kafka.Offset(hw))
		return fmt.Sprintf("%d decided\n", len(st.s.decided))
	case "expire":
		var now int64
		d.ScanArgs(t, "now", &now)
		st.s.Expire(now)
		return st.list()
	case "state":
		return st.list()
	case "snapshot":
		st.kept = st.s.MarshalSnapshot(nil)
		return fmt.Sprintf("%d bytes\n", len(st.kept))
	case "restart":
		st.s = New(st.s.params)
		if err := st.s.UnmarshalSnapshot(st.kept); err != nil {
			return err.Error() + "\n"
		}
		return st.list()
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return ""
}

func (st *story) append(t *testing.T, d *datadriven.TestData) string {
	var pid, epoch, time int64
	var seq string
	d.ScanArgs(t, "pid", &pid)
	d.MaybeScanArgs(t, "epoch", &epoch)
	d.MaybeScanArgs(t, "time", &time)
	d.ScanArgs(t, "seq", &seq)
	e := Entry{PID: kafka.ProducerID(pid), Epoch: kafka.ProducerEpoch(epoch), FirstOffset: st.end, Timestamp: time,
		Transactional: d.HasArg("txn"), Verified: d.HasArg("verified")}
	if n, _ := fmt.Sscanf(seq, "%d-%d", &e.FirstSeq, &e.LastSeq); n < 2 {
		e.LastSeq = e.FirstSeq
	}
	dup, err := st.s.Check(e, !d.HasArg("broker"))
	if err != nil {
		return err.Error() + "\n"
	}
	if dup != nil {
		return fmt.Sprintf("duplicate of [%d,%d] time %d\n", dup.Base, dup.Last, dup.Timestamp)
	}
	base := st.end
	st.end += kafka.Offset((int64(e.LastSeq)-int64(e.FirstSeq))&(1<<31-1)) + 1
	st.s.Append(e, base, st.end-1)
	return fmt.Sprintf("at [%d,%d]\n", base, st.end-1)
}

func (st *story) marker(t *testing.T, d *datadriven.TestData) string {
	var pid, epoch, coordinator, time int64
	m := Marker{Commit: d.HasArg("commit"), Offset: st.end}
	d.ScanArgs(t, "pid", &pid)
	d.MaybeScanArgs(t, "epoch", &epoch)
	d.MaybeScanArgs(t, "coordinator", &coordinator)
	d.MaybeScanArgs(t, "time", &time)
	d.MaybeScanArgs(t, "version", &m.Version)
	m.PID, m.Epoch, m.CoordinatorEpoch, m.Timestamp = kafka.ProducerID(pid), kafka.ProducerEpoch(epoch), int32(coordinator), time
	if err := st.s.CheckMarker(m); err != nil {
		return err.Error() + "\n"
	}
	st.end++
	if a := st.s.Marker(m); a != nil {
		return fmt.Sprintf("at %d, aborted [%d,%d] stable %d\n", m.Offset, a.First, a.Last, a.LastStable)
	}
	return fmt.Sprintf("at %d\n", m.Offset)
}

func (st *story) list() string {
	var b strings.Builder
	for _, p := range st.s.Describe() {
		fmt.Fprintf(&b, "%d/%d last sequence %d time %d coordinator %d txn %d\n",
			p.PID, p.Epoch, p.LastSeq, p.LastTimestamp, p.CoordinatorEpoch, p.TxnFirst)
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

func TestAbortedEntryReadsBack(t *testing.T) {
	want := AbortedTxn{PID: 1 << 40, First: 5, Last: 77, LastStable: 6}
	b := EncodeAborted(nil, want)
	if len(b) != AbortedSize {
		t.Fatalf("%d bytes, want %d", len(b), AbortedSize)
	}
	if got, err := DecodeAborted(b); err != nil || got != want {
		t.Errorf("read back %+v, %v; want %+v", got, err, want)
	}
	b[1] = 1
	if _, err := DecodeAborted(b); err == nil {
		t.Error("an entry of version 1 is read")
	}
}

func TestDamagedSnapshotIsRefused(t *testing.T) {
	s := New(Params{})
	s.Append(Entry{PID: 7, LastSeq: 2, Timestamp: 5}, 10, 12)
	whole := s.MarshalSnapshot(nil)
	var corrupt *CorruptError
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			if err := New(Params{}).UnmarshalSnapshot(b); !errors.As(err, &corrupt) {
				t.Fatalf("bit %d of byte %d flipped: %v, want *CorruptError", bit, i, err)
			}
		}
		if err := New(Params{}).UnmarshalSnapshot(whole[:i]); !errors.As(err, &corrupt) {
			t.Fatalf("cut at %d: %v, want *CorruptError", i, err)
		}
	}
}

func FuzzUnmarshalSnapshot(f *testing.F) {
	s := New(Params{})
	s.Append(Entry{PID: 7, LastSeq: 2, Timestamp: 5, Transactional: true}, 10, 12)
	s.Marker(Marker{PID: 8, Offset: 13})
	f.Add(s.MarshalSnapshot(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(Params{})
		if s.UnmarshalSnapshot(b) != nil {
			return
		}
		again := s.MarshalSnapshot(nil)
		if err := New(Params{}).UnmarshalSnapshot(again); err != nil {
			t.Fatalf("what was read is written as %x: %v", again, err)
		}
	})
}

// What does a produced batch cost of a known producer?
func BenchmarkCheckAppend(b *testing.B) {
	s := New(Params{})
	e := Entry{PID: 1000, FirstSeq: 0, LastSeq: 9}
	at := kafka.Offset(0)
	b.ReportAllocs()
	for b.Loop() {
		if dup, err := s.Check(e, true); dup != nil || err != nil {
			b.Fatal(dup, err)
		}
		s.Append(e, at, at+9)
		at += 10
		e.FirstSeq = (e.FirstSeq + 10) & (1<<31 - 1)
		e.LastSeq = (e.FirstSeq + 9) & (1<<31 - 1)
	}
}
