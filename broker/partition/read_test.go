package partition_test

import (
	"bytes"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/record"
)

// threeEpochs is a log of one record in each of epochs 5, 6 and 8.
func threeEpochs(t *testing.T) *rig {
	r := led(t, settings())
	r.put(batch(1, 10, noon))
	for _, epoch := range []kafka.LeaderEpoch{6, 8} {
		r.Resign()
		r.lead(epoch, nil)
		r.put(batch(1, 10, noon))
	}
	return r
}

func TestConsumersReadBelowTheHighWatermark(t *testing.T) {
	r, next := belowMinISR(t)
	got, res := r.get(plain(0))
	if len(got) != 0 || res.High != 0 || res.LogStart != 0 {
		t.Errorf("%d bytes that are not revealed, %+v", len(got), res)
	}
	if got, _ := r.get(plain(next)); len(got) != 0 {
		t.Errorf("%d bytes at the log end", len(got))
	}
	r.Set(settings())
	got, res = r.get(plain(0))
	if len(got) == 0 || res.High != next || res.Stable != next {
		t.Errorf("%d bytes, %+v, want the record and marks at %d", len(got), res, next)
	}
}

func TestOutOfRangeIsBelowTheStartOrAboveTheEndAndNothingElse(t *testing.T) {
	r, next := belowMinISR(t)
	r.Set(settings())
	if err := r.Log().SetLogStart(1); err != nil {
		t.Fatal(err)
	}
	var res partition.ReadResult
	wantCode(t, "below the log start", r.Read(plain(0), &res), kafka.OffsetOutOfRange)
	wantCode(t, "at the log end", r.Read(plain(next), &res), kafka.None)
	wantCode(t, "above the log end", r.Read(plain(next+1), &res), kafka.OffsetOutOfRange)
}

func TestReadersNameTheEpochTheyKnow(t *testing.T) {
	r := threeEpochs(t)
	for epoch, want := range map[kafka.LeaderEpoch]kafka.Code{kafka.NoEpoch: kafka.None, 8: kafka.None, 7: kafka.FencedLeaderEpoch, 9: kafka.UnknownLeaderEpoch} {
		q := plain(0)
		q.Epoch = epoch
		var res partition.ReadResult
		wantCode(t, "read", r.Read(q, &res), want)
		res.Run.Release()
		_, err := r.Locate(t.Context(), partition.Latest, epoch, false)
		wantCode(t, "locate", err, want)
		_, err = r.EndOffsetFor(epoch, 5)
		wantCode(t, "end of an epoch", err, want)
	}
}

func TestAReaderWhoseEpochsPartIsToldWhere(t *testing.T) {
	r := threeEpochs(t)
	for _, c := range []struct {
		name string
		from kafka.Offset
		last kafka.LeaderEpoch
		want partition.EpochEnd // zero: they agree
	}{
		{"same history", 3, 8, partition.EpochEnd{}},
		{"further in an epoch than it went", 3, 6, partition.EpochEnd{Epoch: 6, End: 2}},
		{"an epoch that this log has not", 2, 7, partition.EpochEnd{Epoch: 6, End: 2}},
		{"an older epoch, before its end", 1, 5, partition.EpochEnd{}},
	} {
		q := plain(c.from)
		q.LastEpoch = c.last
		got, res := r.get(q)
		if res.Diverged != (c.want != partition.EpochEnd{}) || res.End != c.want {
			t.Errorf("%s: %+v, want the end %+v", c.name, res, c.want)
		}
		if res.Diverged && len(got) > 0 {
			t.Errorf("%s: %d bytes beside a diverging epoch", c.name, len(got))
		}
	}
}

func TestTheEndOfAnEpochIsTheNextOnesStart(t *testing.T) {
	r := threeEpochs(t)
	for asked, want := range map[kafka.LeaderEpoch]partition.EpochEnd{
		4: {Epoch: 4, End: 0}, 5: {Epoch: 5, End: 1}, 6: {Epoch: 6, End: 2},
		7: {Epoch: 6, End: 2}, 8: {Epoch: 8, End: 3}, 9: {Epoch: kafka.NoEpoch, End: kafka.NoOffset},
	} {
		got, err := r.EndOffsetFor(kafka.NoEpoch, asked)
		if err != nil || got != want {
			t.Errorf("epoch %d: %+v (%v), want %+v", asked, got, err, want)
		}
	}
}

func TestTheFirstBatchComesWholeWhereOneMust(t *testing.T) {
	r := led(t, settings())
	first := batch(1, 5000, noon)
	r.put(first)
	r.put(batch(1, 10, noon))
	q := plain(0)
	q.Max = 100
	if got, _ := r.get(q); len(got) != len(first) {
		t.Errorf("%d bytes, want the first batch of %d", len(got), len(first))
	}
	q.MinOne = false
	if got, _ := r.get(q); len(got) != 0 {
		t.Errorf("%d bytes where 100 are allowed", len(got))
	}
}

// transaction is a batch, or the marker, of a transaction of producer 9.
func transaction(sequence int32) []byte {
	w := record.Builder{Producer: &record.Producer{ID: 9, Sequence: sequence}, Transactional: true}
	w.Add(record.Record{Timestamp: noon.UnixMilli(), Value: []byte("in doubt")})
	return w.AppendTo(nil)
}

func (r *rig) abort() {
	r.t.Helper()
	marker := record.AppendEndTxn(nil, record.Producer{ID: 9}, record.EndTxnMarker{}, noon.UnixMilli())
	if _, err := r.Append(partition.Append{Records: marker, Acks: 1, Version: 11, Internal: true, Validator: &r.validator, Now: noon}); err != nil {
		r.t.Fatal(err)
	}
}

func TestReadCommittedStopsAtAnOpenTransaction(t *testing.T) {
	r := led(t, settings())
	r.put(batch(1, 10, noon))
	r.put(transaction(0))
	committed := plain(0)
	committed.Committed = true
	got, res := r.get(committed)
	if b, rest, err := record.Parse(got); err != nil || len(rest) > 0 || b.NextOffset() != 1 || res.Stable != 1 || res.High != 2 {
		t.Fatalf("%v and %d bytes more (%v), %+v", b, len(rest), err, res)
	}
	latest, err := r.Locate(t.Context(), partition.Latest, kafka.NoEpoch, true)
	if err != nil || latest.Offset != 1 {
		t.Errorf("the latest committed is %+v (%v), want 1", latest, err)
	}
	r.abort()
	got, res = r.get(committed)
	if len(res.Aborted) != 1 || res.Aborted[0].PID != 9 || res.Aborted[0].First != 1 || res.Stable != 3 {
		t.Errorf("%d bytes, %+v, want one aborted transaction from 1", len(got), res)
	}
	if _, res := r.get(plain(0)); res.Aborted != nil {
		t.Errorf("read uncommitted is told of aborted transactions: %v", res.Aborted)
	}
}

func TestADeletedSegmentLivesWhileItIsRead(t *testing.T) {
	s := settings()
	s.Log = commitlog.Config{SegmentBytes: 400, FileDeleteDelayMs: 1}
	r := led(t, s)
	for range 5 {
		r.put(batch(1, 300, noon))
	}
	want, _ := r.get(plain(0))
	var res partition.ReadResult
	q := plain(0)
	q.Max = 1 << 20
	if err := r.Read(q, &res); err != nil {
		t.Fatal(err)
	}
	if err := r.Log().SetLogStart(4); err != nil {
		t.Fatal(err)
	}
	v, err := r.Retention(noon.UnixMilli())
	if err != nil || v.Segments == 0 {
		t.Fatalf("nothing to delete: %+v (%v)", v, err)
	}
	if _, _, err := r.Log().Apply(v, noon.UnixMilli()); err != nil {
		t.Fatal(err)
	}
	r.dir.Sweep(noon.UnixMilli() + 60_000)
	if got := runBytes(t, res.Run); !bytes.Equal(got, want) {
		t.Errorf("the bytes held differ from those read before: %d of %d", len(got), len(want))
	}
	wantCode(t, "reading them anew", r.Read(plain(0), &res), kafka.OffsetOutOfRange)
}

func TestReadsAllocateNothing(t *testing.T) {
	r := led(t, settings())
	r.put(batch(16, 1000, noon))
	var res partition.ReadResult
	q := plain(0)
	q.Max = 1 << 20
	n := testing.AllocsPerRun(100, func() {
		if err := r.Read(q, &res); err != nil {
			t.Fatal(err)
		}
		res.Run.Release()
	})
	if n != 0 {
		t.Errorf("%v allocations for a read", n)
	}
}

// BenchmarkRead asks what a read of one batch at the log's end costs.
func BenchmarkRead(b *testing.B) {
	r := led(b, settings())
	for range 100 {
		r.put(batch(16, 1000, noon))
	}
	var res partition.ReadResult
	q := plain(1599)
	q.Max = 1 << 20
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Read(q, &res); err != nil {
			b.Fatal(err)
		}
		res.Run.Release()
	}
}
