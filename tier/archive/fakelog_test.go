package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"varve/broker/kafka"
	"varve/broker/record"
	"varve/tier/container"
)

// fakeLog is a log of batches in memory, of three records each, in segments.
type fakeLog struct {
	mu       sync.Mutex
	segs     []fakeSegment // the last is active
	cfg      Config
	epochs   []kafka.EpochStart
	logStart kafka.Offset
	tiered   kafka.Offset
	unstable kafka.Offset // LSO; -1 = the end
	aborted  []container.AbortedTxn
	exports  int
	held     int
	all      []byte // every batch ever appended
}

type fakeSegment struct {
	base, next kafka.Offset
	log        []byte
	maxTs      int64
}

func newFakeLog() *fakeLog {
	return &fakeLog{segs: []fakeSegment{{maxTs: -1}}, epochs: []kafka.EpochStart{{Epoch: 1, Start: 0}}, unstable: -1,
		cfg: Config{RetentionMs: -1, RetentionBytes: -1, LocalRetentionMs: -1, LocalRetentionBytes: -1}}
}

// fill appends n batches with values of the given size and a timestamp, then rolls.
func (l *fakeLog) fill(n, size int, ts int64) {
	l.append(n, size, ts)
	if err := l.Roll(); err != nil {
		panic(err)
	}
}

func (l *fakeLog) append(n, size int, ts int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &l.segs[len(l.segs)-1]
	for range n {
		w := record.Builder{BaseOffset: a.next, LeaderEpoch: l.epochs[len(l.epochs)-1].Epoch}
		for i := range 3 {
			w.Add(record.Record{Timestamp: ts + int64(i), Value: bytes.Repeat([]byte{byte(a.next)}, size)})
		}
		at := len(a.log)
		a.log = w.AppendTo(a.log)
		l.all = append(l.all, a.log[at:]...)
		a.next += 3
		a.maxTs = max(a.maxTs, ts+2)
	}
}

func (l *fakeLog) end() kafka.Offset { return l.segs[len(l.segs)-1].next }

func (l *fakeLog) Offsets() Offsets {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := Offsets{LogStart: l.logStart, LocalStart: max(l.logStart, l.segs[0].base), HighWatermark: l.end(), LastStable: l.end(), End: l.end()}
	if l.unstable >= 0 {
		o.LastStable = l.unstable
	}
	return o
}

func (l *fakeLog) Segments() []Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Segment
	for _, s := range l.segs {
		out = append(out, Segment{Base: s.base, Next: s.next, Size: int64(len(s.log)), FirstTimestamp: -1, MaxTimestamp: s.maxTs})
	}
	return out
}

func (l *fakeLog) Epochs() []kafka.EpochStart {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.epochs)
}

func (l *fakeLog) Config() Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg
}

func (l *fakeLog) setConfig(c Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg = c
}

func (l *fakeLog) Roll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.segs[len(l.segs)-1]; a.next > a.base {
		l.segs = append(l.segs, fakeSegment{base: a.next, next: a.next, maxTs: -1})
	}
	return nil
}

func (l *fakeLog) SetTiered(next kafka.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tiered = next
}

func (l *fakeLog) Begin(s Seed) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segs = []fakeSegment{{base: s.Next, next: s.Next, maxTs: -1}}
	l.epochs = slices.Clone(s.Epochs)
	return nil
}

func (l *fakeLog) tieredTo() kafka.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tiered
}

func (l *fakeLog) SetLogStart(o kafka.Offset) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logStart = max(l.logStart, o)
	return nil
}

func (l *fakeLog) DropLocal(upTo kafka.Offset) (n int, bytes int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.segs) > 1 && l.segs[0].next <= upTo {
		n, bytes = n+1, bytes+int64(len(l.segs[0].log))
		l.segs = l.segs[1:]
	}
	return n, bytes, nil
}

func (l *fakeLog) Export(r kafka.Range) (*Export, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var log, index, times []byte
	at := kafka.NoOffset
	for _, s := range l.segs {
		for rest := s.log; len(rest) > 0; {
			b, tail, err := record.Parse(rest)
			if err != nil {
				return nil, err
			}
			rest = tail
			if b.BaseOffset() < r.Start || b.BaseOffset() >= r.End {
				continue
			}
			if at < 0 {
				at = b.BaseOffset()
			}
			if len(log) > 0 {
				index = binary.BigEndian.AppendUint32(index, uint32(b.LastOffset()-r.Start))
				index = binary.BigEndian.AppendUint32(index, uint32(len(log)))
			}
			log = append(log, b...)
		}
	}
	if at != r.Start {
		return nil, fmt.Errorf("range %s begins at %d", r, at)
	}
	var aborted []container.AbortedTxn
	for _, t := range l.aborted {
		if t.First < r.End && t.Last >= r.Start {
			aborted = append(aborted, t)
		}
	}
	epochs := []kafka.EpochStart{}
	for _, e := range l.epochs {
		switch {
		case e.Start >= r.End:
		case e.Start <= r.Start:
			epochs = []kafka.EpochStart{{Epoch: e.Epoch, Start: r.Start}}
		default:
			epochs = append(epochs, e)
		}
	}
	l.exports, l.held = l.exports+1, l.held+1
	return &Export{
		LogSize: int64(len(log)), Epochs: epochs,
		Parts: container.Parts{OffsetIndex: index, TimeIndex: times, Producers: []byte("p"),
			Epochs: container.AppendEpochs(nil, l.epochs), Aborted: container.AppendAborted(nil, aborted)},
		WriteLog: func(w io.Writer, buf []byte) error {
			for rest := log; len(rest) > 0; {
				n := copy(buf, rest)
				if _, err := w.Write(buf[:n]); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return nil
		},
		Release: func() { l.mu.Lock(); l.held--; l.mu.Unlock() },
	}, nil
}
