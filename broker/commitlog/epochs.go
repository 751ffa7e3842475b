package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"

	"varve/broker/kafka"
	"varve/broker/vfs"
)

const epochFile = "leader-epoch-checkpoint"

// Epochs are the leader epochs of a log and their first offsets, in order. They never
// change: a new epoch makes new Epochs.
//
//	leader-epoch-checkpoint:   0 \n count \n epoch start \n …
type Epochs struct {
	list []kafka.EpochStart
}

// List is the epochs in order; not to be changed.
func (e *Epochs) List() []kafka.EpochStart { return e.list }

// Latest is the last epoch, or NoEpoch.
func (e *Epochs) Latest() kafka.LeaderEpoch {
	if len(e.list) == 0 {
		return kafka.NoEpoch
	}
	return e.list[len(e.list)-1].Epoch
}

// For is the epoch of the record at o, or NoEpoch.
func (e *Epochs) For(o kafka.Offset) kafka.LeaderEpoch {
	i := sort.Search(len(e.list), func(i int) bool { return e.list[i].Start > o })
	if i == 0 {
		return kafka.NoEpoch
	}
	return e.list[i-1].Epoch
}

// EndOffsetFor answers where an epoch's records end in a log that ends at end, and of
// which epoch at or below the one asked for that is (KIP-101, KIP-279). An epoch that
// is not known, because it is above the latest or there is none, is (-1, -1).
func (e *Epochs) EndOffsetFor(epoch kafka.LeaderEpoch, end kafka.Offset) (kafka.LeaderEpoch, kafka.Offset) {
	n := len(e.list)
	if epoch == kafka.NoEpoch || n == 0 || epoch > e.list[n-1].Epoch {
		return kafka.NoEpoch, kafka.NoOffset
	}
	if epoch == e.list[n-1].Epoch {
		return epoch, end
	}
	above := sort.Search(n, func(i int) bool { return e.list[i].Epoch > epoch })
	if above == 0 {
		return epoch, e.list[0].Start
	}
	return e.list[above-1].Epoch, e.list[above].Start
}

// assign is the epochs with one more; the same where it is not news. Epochs that begin
// at or behind its start had no records and go (KAFKA-7897), as do later ones.
func (e *Epochs) assign(epoch kafka.LeaderEpoch, start kafka.Offset) *Epochs {
	n := len(e.list)
	if epoch < 0 || n > 0 && e.list[n-1].Epoch >= epoch {
		return e
	}
	for n > 0 && e.list[n-1].Start >= start {
		n--
	}
	return &Epochs{append(e.list[:n:n], kafka.EpochStart{Epoch: epoch, Start: start})}
}

// upTo is the epochs that begin below end.
func (e *Epochs) upTo(end kafka.Offset) *Epochs {
	n := sort.Search(len(e.list), func(i int) bool { return e.list[i].Start >= end })
	return &Epochs{e.list[:n:n]}
}

// from is the epochs of a log that begins at start: the one in force there begins there.
func (e *Epochs) from(start kafka.Offset) *Epochs {
	i := sort.Search(len(e.list), func(i int) bool { return e.list[i].Start > start })
	if i == 0 {
		return e
	}
	list := append([]kafka.EpochStart(nil), e.list[i-1:]...)
	list[0].Start = max(list[0].Start, start)
	return &Epochs{list}
}

func (e *Epochs) encode() []byte {
	b := fmt.Appendf(nil, "0\n%d\n", len(e.list))
	for _, s := range e.list {
		b = fmt.Appendf(b, "%d %d\n", s.Epoch, s.Start)
	}
	return b
}

func decodeEpochs(b []byte) (*Epochs, error) {
	rows, err := checkpointRows(b, 2)
	if err != nil {
		return nil, err
	}
	e := &Epochs{}
	for _, row := range rows {
		epoch, err1 := strconv.ParseInt(row[0], 10, 32)
		start, err2 := strconv.ParseInt(row[1], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		next := e.assign(kafka.LeaderEpoch(epoch), kafka.Offset(start))
		if next == e {
			return nil, fmt.Errorf("epoch %d comes after epoch %d", epoch, e.Latest())
		}
		e = next
	}
	return e, nil
}

// checkpointRows splits a checkpoint of version 0 into the fields of its lines.
func checkpointRows(b []byte, fields int) ([][]string, error) {
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(b) == 0 {
		return nil, nil
	}
	if lines[0] != "0" || len(lines) < 2 {
		return nil, fmt.Errorf("version is %q, want 0", lines[0])
	}
	count, err := strconv.Atoi(lines[1])
	if err != nil || count != len(lines)-2 {
		return nil, fmt.Errorf("holds %d lines, says %q", len(lines)-2, lines[1])
	}
	rows := make([][]string, 0, count)
	for _, line := range lines[2:] {
		row := strings.Fields(line)
		if len(row) != fields {
			return nil, fmt.Errorf("line %q has %d fields, want %d", line, len(row), fields)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Epochs is the log's epochs as they are now.
func (l *Log) Epochs() (*Epochs, error) {
	if e := l.epochs.Load(); e != nil {
		return e, nil
	}
	e, err := l.readEpochs()
	if err != nil {
		return nil, err
	}
	if !l.epochs.CompareAndSwap(nil, e) {
		return l.epochs.Load(), nil
	}
	return e, nil
}

func (l *Log) readEpochs() (*Epochs, error) {
	name := path.Join(l.home.Path(), epochFile)
	b, err := vfs.ReadFile(l.dir.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &Epochs{}, nil
	}
	if err != nil {
		return nil, err
	}
	e, err := decodeEpochs(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e, nil
}

// StartEpoch makes this broker's appends carry the epoch, which begins at the log's
// end (protocols §3-5). It reaches the disk with its first record: without one nobody
// can hold records of it.
func (l *Log) StartEpoch(epoch kafka.LeaderEpoch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, err := l.Epochs()
	if err != nil {
		return err
	}
	if next := e.assign(epoch, l.End()); next != e {
		l.epochs.Store(next)
		if l.hot != nil {
			l.hot.epochsDue = true
		}
	}
	l.epoch.Store(int32(epoch))
	return nil
}

// writeEpochs puts the checkpoint in place.
func (l *Log) writeEpochs(e *Epochs, durable bool) error {
	return vfs.WriteFile(l.dir.fs, path.Join(l.home.Path(), epochFile), e.encode(), durable)
}
