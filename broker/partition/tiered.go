package partition

import (
	"fmt"
	"io"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/producer"
	"varve/broker/vfs"
	"varve/tier/archive"
	"varve/tier/container"
)

// tierLog is the partition as the archive sees it, during one leadership.
type tierLog struct {
	p *Partition
	l *leadership
}

// Offsets is one look at the marks.
func (t tierLog) Offsets() archive.Offsets {
	v := t.p.log.View()
	high := t.p.log.HighWatermark()
	return archive.Offsets{LogStart: v.LogStart, LocalStart: v.LocalStart, HighWatermark: high,
		LastStable: min(t.p.LastStable(), high), End: t.p.log.End()}
}

// Segments lists the local segments.
func (t tierLog) Segments() []archive.Segment {
	infos, err := t.p.log.Segments()
	if err != nil {
		return nil // the disk's error is seen by whoever reads the records
	}
	out := make([]archive.Segment, len(infos))
	for i, s := range infos {
		out[i] = archive.Segment{Base: s.Base, Next: s.Next, Size: s.Size, FirstTimestamp: -1, MaxTimestamp: s.MaxTimestamp}
	}
	if n := len(out) - 1; n >= 0 && out[n].Size > 0 && !t.l.aged.Swap(true) {
		// Once a term: later the archive has seen for itself when records came.
		if ts, err := t.p.log.FirstTimestamp(); err == nil {
			out[n].FirstTimestamp = ts
		}
	}
	return out
}

// Epochs is the history of leader epochs.
func (t tierLog) Epochs() []kafka.EpochStart {
	e, err := t.p.log.Epochs()
	if err != nil {
		return nil
	}
	return e.List()
}

// Config is how the tier keeps the topic.
func (t tierLog) Config() archive.Config { return t.p.Settings().Tier }

// Roll closes the active segment.
func (t tierLog) Roll() error { return t.p.log.Roll(time.Now().UnixMilli()) }

// SetTiered takes note of where the tier's run ends, while the leadership lasts.
func (t tierLog) SetTiered(next kafka.Offset) {
	t.l.tiered.Store(int64(next))
	if t.l.shut.Load() && t.p.log.End() >= next {
		t.l.shut.Store(false)
		t.p.watches.mark(-1)
	}
}

// Begin makes the log begin behind the tier (T12).
func (t tierLog) Begin(s archive.Seed) error { return t.p.begin(t.l, s) }

// SetLogStart raises the log start.
func (t tierLog) SetLogStart(o kafka.Offset) error { return t.p.log.SetLogStart(o) }

// DropLocal lets local segments go.
func (t tierLog) DropLocal(upTo kafka.Offset) (int, int64, error) { return t.p.log.DropLocal(upTo) }

// Export holds the files of a range.
func (t tierLog) Export(r kafka.Range) (*archive.Export, error) {
	e, err := t.p.log.Export(r)
	if err != nil {
		return nil, err
	}
	if e.Range != r {
		e.Release()
		return nil, fmt.Errorf("exporting %v %v: batches end at %d", t.p.Name(), r, e.Range.End)
	}
	out := &archive.Export{LogSize: e.Size, Epochs: within(e.Epochs, r), Release: e.Release}
	out.WriteLog = func(w io.Writer, buf []byte) error { return copyRuns(w, e.Runs, buf) }
	out.Parts = container.Parts{OffsetIndex: e.OffsetIndex, TimeIndex: e.TimeIndex, TxnIndex: e.TxnIndex, Producers: e.Snapshot,
		Epochs: container.AppendEpochs(nil, e.Epochs), Aborted: container.AppendAborted(nil, aborted(e.Aborted))}
	return out, nil
}

// within are the epochs of a range's records; the first begins where the range does.
func within(epochs []kafka.EpochStart, r kafka.Range) []kafka.EpochStart {
	var out []kafka.EpochStart
	for i, e := range epochs {
		if e.Start >= r.End {
			break
		}
		if i+1 < len(epochs) && epochs[i+1].Start <= r.Start {
			continue
		}
		out = append(out, kafka.EpochStart{Epoch: e.Epoch, Start: max(e.Start, r.Start)})
	}
	return out
}

func aborted(in []producer.AbortedTxn) []container.AbortedTxn {
	out := make([]container.AbortedTxn, len(in))
	for i, a := range in {
		out[i] = container.AbortedTxn{Producer: a.PID, First: a.First, Last: a.Last, LastStable: a.LastStable}
	}
	return out
}

// copyRuns writes runs of files in pieces of buf.
func copyRuns(w io.Writer, runs []vfs.Run, buf []byte) error {
	for _, run := range runs {
		for pos, left := run.Pos, int64(run.N); left > 0; {
			piece := buf[:min(int64(len(buf)), left)]
			n, err := run.File.ReadAt(piece, pos)
			if n < len(piece) {
				if err == nil || err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return fmt.Errorf("reading %s at %d: %w", run.File.Name(), pos, err)
			}
			if _, err := w.Write(piece); err != nil {
				return err
			}
			pos, left = pos+int64(n), left-int64(n)
		}
	}
	return nil
}

// leaveTier ends the tier's part of a term: what was only there is gone, as
// remote.log.delete.on.disable says, and the log begins where the local one does.
func (p *Partition) leaveTier(l *leadership, t *archive.Partition) {
	l.tier.Store(nil)
	l.shut.Store(false)
	l.tiered.Store(0)
	v := p.log.View()
	if err := p.log.SetLogStart(v.LocalStart); err != nil {
		return // the disk's; what is in the tier stays until the topic goes
	}
	t.Leave()
}

// Retention is one pass of local retention and roll by time over the partition, for
// the broker's sweep. now is in ms.
func (p *Partition) Retention(now int64) (commitlog.Verdict, error) {
	highest := kafka.NoOffset
	if n := p.Tiered(); n > 0 {
		highest = n - 1
	}
	return p.log.DueForDeletion(now, p.log.HighWatermark(), highest)
}
