package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"varve/broker/kafka"
	"varve/broker/vfs"
)

// Checkpoints of a log.dir, as Kafka's:
//
//	0 \n count \n topic partition offset \n …
const (
	recoveryFile = "recovery-point-offset-checkpoint"
	startFile    = "log-start-offset-checkpoint"
	highFile     = "replication-offset-checkpoint"
	cleanerFile  = "cleaner-offset-checkpoint"
)

// readCheckpoint reads a checkpoint, keyed by the folder's name; a file that is not
// there or empty is an empty one.
func readCheckpoint(fsys vfs.FS, name string) (map[string]kafka.Offset, error) {
	b, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := decodeCheckpoint(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func decodeCheckpoint(b []byte) (map[string]kafka.Offset, error) {
	rows, err := checkpointRows(b, 3)
	if err != nil {
		return nil, err
	}
	m := make(map[string]kafka.Offset, len(rows))
	for _, row := range rows {
		o, err := strconv.ParseInt(row[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s-%s: %w", row[0], row[1], err)
		}
		m[row[0]+"-"+row[1]] = kafka.Offset(o)
	}
	return m, nil
}

// appendCheckpointLine adds a line.
func appendCheckpointLine(b *bytes.Buffer, tp kafka.TopicPartition, o kafka.Offset) {
	b.WriteString(tp.Topic)
	b.WriteByte(' ')
	b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(tp.Partition), 10))
	b.WriteByte(' ')
	b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(o), 10))
	b.WriteByte('\n')
}

// Checkpoint writes the recovery points, log starts and high watermarks, if any of them
// has changed since the last time.
func (d *Dir) Checkpoint() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if !d.changed.Swap(false) {
		return nil
	}
	logs := d.Logs()
	for _, c := range []struct {
		file string
		of   func(*Log) kafka.Offset
	}{
		{recoveryFile, (*Log).Flushed},
		{startFile, (*Log).Start},
		{highFile, (*Log).HighWatermark},
	} {
		var lines bytes.Buffer
		for _, l := range logs {
			appendCheckpointLine(&lines, l.tp, c.of(l))
		}
		b := append(fmt.Appendf(nil, "0\n%d\n", len(logs)), lines.Bytes()...)
		if err := vfs.WriteFile(d.fs, path.Join(d.path, c.file), b, true); err != nil {
			d.changed.Store(true)
			return d.fail(fmt.Errorf("writing a checkpoint: %w", err))
		}
	}
	return nil
}
