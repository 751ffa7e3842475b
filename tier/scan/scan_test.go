package scan

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/tier/chain"
	"varve/tier/container"
	"varve/tier/faulty"
	"varve/tier/manifest"
)

var (
	testTP = kafka.TopicPartition{Topic: "orders", Partition: 0}
	testID = kafka.TopicID{7}
	writer = manifest.Writer{LeaderEpoch: 1, BrokerEpoch: 1, Broker: 1, Incarnation: chain.NewID()}
)

// put writes containers for logs that follow each other and commits them.
func put(t *testing.T, store *faulty.Store, aborted []container.AbortedTxn, logs ...[]byte) *chain.Chain {
	t.Helper()
	c := &chain.Chain{Folder: chain.At(store, testTP, testID), Writer: writer}
	lineage := manifest.Lineage{{Epoch: 1, Start: 0}}
	if err := c.Fence(t.Context(), func(*manifest.State) (manifest.Change, bool) { return manifest.FenceChange(0, 0, lineage), true }); err != nil {
		t.Fatal(err)
	}
	base := kafka.Offset(0)
	for _, log := range logs {
		var last record.Batch
		for rest := log; len(rest) > 0; {
			last, rest, _ = record.Parse(rest)
		}
		seg := manifest.Segment{ID: chain.NewID(), Base: base, End: last.LastOffset(), LeaderEpoch: 1, Broker: 1, Epochs: manifest.Lineage{{Epoch: 1, Start: base}}}
		var file bytes.Buffer
		w := container.NewWriter(&file, container.Footer{ID: seg.ID, Topic: "orders", Base: seg.Base, End: seg.End, Epochs: []container.Epoch{{Epoch: 1, Start: base}}})
		if _, err := w.Write(log); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Finish(container.Parts{Epochs: container.AppendEpochs(nil, lineage), Aborted: container.AppendAborted(nil, aborted)}); err != nil {
			t.Fatal(err)
		}
		seg.Size, seg.LogSize = w.Size(), int64(len(log))
		store.Put(c.Segment(seg), file.Bytes())
		if err := c.Commit(t.Context(), func(s *manifest.State) (manifest.Change, bool) {
			return s.AddChange([]manifest.Segment{seg}, seg.Next(), lineage)
		}); err != nil {
			t.Fatal(err)
		}
		base = seg.Next()
	}
	return c
}

// log builds batches of two records; a producer id makes them transactional.
func log(base kafka.Offset, codec record.Codec, pids ...kafka.ProducerID) []byte {
	var out []byte
	for _, pid := range pids {
		w := record.Builder{BaseOffset: base, LeaderEpoch: 1, Codec: codec}
		if pid >= 0 {
			w.Producer, w.Transactional = &record.Producer{ID: pid, Epoch: 1, Sequence: int32(base)}, true
		}
		for i := range kafka.Offset(2) {
			w.Add(record.Record{Timestamp: 1000 + int64(base+i), Value: fmt.Appendf(nil, "v%d", base+i)})
		}
		out = w.AppendTo(out)
		base += 2
	}
	return out
}

func marker(base kafka.Offset, pid kafka.ProducerID, commit bool) []byte {
	b := record.AppendEndTxn(nil, record.Producer{ID: pid, Epoch: 1}, record.EndTxnMarker{Commit: commit}, 1)
	record.Batch(b).Stamp(base, 1)
	return b
}

func values(t *testing.T, p *Plan) string {
	t.Helper()
	var out []string
	for _, part := range p.Partitions {
		for _, s := range part.Splits {
			r, err := p.Read(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			var rec record.Record
			for r.Next(&rec) {
				out = append(out, string(rec.Value))
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings.Join(out, " ")
}

func TestOnlyCommittedRecordsAreRead(t *testing.T) {
	store := faulty.New()
	// 7 aborts a transaction of [2,4) and [6,8) whose marker lies in the next container;
	// 8 commits; records without a transaction stay.
	first := bytes.Join([][]byte{log(0, record.CodecNone, -1, 7, 8, 7), marker(8, 8, true)}, nil)
	second := bytes.Join([][]byte{marker(9, 7, false), log(10, record.CodecZstd, 7, -1), marker(14, 7, true)}, nil)
	c := put(t, store, []container.AbortedTxn{{Producer: 7, First: 2, Last: 9}}, first, second)
	topic, err := Open(t.Context(), store, "orders")
	if err != nil {
		t.Fatal(err)
	}
	p, err := topic.Plan(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := values(t, p), "v0 v1 v4 v5 v10 v11 v12 v13"; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
	if part := p.Partitions[0]; part.Next != 15 || part.Start != 0 {
		t.Errorf("partition %+v, want hand-over at 15", part)
	}
	sum, err := p.Sum(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want Sum
	for _, v := range []string{"v13", "v12", "v11", "v10", "v5", "v4", "v1", "v0"} {
		want.Add([]byte(v))
	}
	if sum != want || sum.Checksum() == (Sum{}).Checksum() {
		t.Errorf("sum %+v, want %+v", sum, want)
	}
	if pins, err := c.Pins(t.Context()); err != nil || len(pins) != 1 {
		t.Errorf("pins %v, %v", pins, err)
	}
	if err := p.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pins, _ := c.Pins(t.Context()); len(pins) != 0 {
		t.Errorf("pins %v after release", pins)
	}
}

func TestReadingIsClippedAtTheLogStart(t *testing.T) {
	store := faulty.New()
	c := put(t, store, nil, log(0, record.CodecLZ4, -1, -1, -1), log(6, record.CodecNone, -1))
	if err := c.Commit(t.Context(), func(*manifest.State) (manifest.Change, bool) { return manifest.Change{LogStart: 3}, true }); err != nil {
		t.Fatal(err)
	}
	p, err := OpenID(store, "orders", testID).Plan(t.Context(), Options{TTL: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := values(t, p), "v3 v4 v5 v6 v7"; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestSplitsTileALargeContainer(t *testing.T) {
	store := faulty.New()
	var big []byte
	base := kafka.Offset(0)
	for len(big) < 140<<20 {
		w := record.Builder{BaseOffset: base, LeaderEpoch: 1}
		w.Add(record.Record{Timestamp: 1, Value: bytes.Repeat([]byte{byte(base)}, 5<<20)})
		big = w.AppendTo(big)
		base++
	}
	put(t, store, nil, big)
	p, err := OpenID(store, "orders", testID).Plan(t.Context(), Options{TTL: -1})
	if err != nil {
		t.Fatal(err)
	}
	at, pos := kafka.Offset(0), int64(0)
	for _, s := range p.Partitions[0].Splits {
		if s.From != at || s.Pos != pos {
			t.Errorf("split %+v, want it from offset %d, position %d", s, at, pos)
		}
		at, pos = s.To, s.End
	}
	if n := len(p.Partitions[0].Splits); n != 3 || at != base || pos != int64(len(big)) {
		t.Errorf("%d splits up to offset %d, position %d", n, at, pos)
	}
	sum, err := p.Sum(t.Context())
	if err != nil || sum.Records != int64(base) {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestDamageNamesTheFile(t *testing.T) {
	store := faulty.New()
	c := put(t, store, nil, log(0, record.CodecNone, -1, -1))
	name := c.Segment(c.State.Live[0])
	p, err := OpenID(store, "orders", testID).Plan(t.Context(), Options{TTL: -1})
	if err != nil {
		t.Fatal(err)
	}
	store.Damage(name, 70)
	if _, err := p.Sum(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
}

func TestDumpShowsEveryBatch(t *testing.T) {
	store := faulty.New()
	c := put(t, store, nil, log(0, record.CodecNone, -1, 5))
	var out bytes.Buffer
	if err := Dump(t.Context(), &out, store, c.Segment(c.State.Live[0])); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "baseOffset:") != 2 || !strings.Contains(got, "orders-0") || !strings.Contains(got, "aborted") {
		t.Errorf("dump:\n%s", got)
	}
}
