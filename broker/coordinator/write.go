package coordinator

import (
	"errors"
	"time"

	"varve/broker/group"
	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/record"
)

// A writer is what a shard makes its batches with.
type writer struct {
	builder   record.Builder
	validator record.Validator
	batch     []byte
}

// write appends a step's records: one batch, or several where they are longer than a
// batch may be. Only what may be cut gets so long: each of a commit's offsets, each
// tombstone is true by itself. A code says that the machine is ahead of the log now.
func (s *shard) write(now time.Time, t *term, records []group.Record) kafka.Code {
	most := t.p.Settings().Policy.MaxBytes
	t.builder.Reset()
	for _, r := range records {
		size := record.HeaderSize + len(r.Key) + len(r.Value) + recordOverhead
		if t.builder.Count() > 0 && most > 0 && t.builder.Size()+size > most {
			if code := s.flush(now, t); code != kafka.None {
				return code
			}
		}
		t.builder.Add(record.Record{Timestamp: now.UnixMilli(), Key: r.Key, Value: r.Value})
	}
	if t.builder.Count() == 0 {
		return kafka.None
	}
	return s.flush(now, t)
}

// recordOverhead is the most that a record has beside key and value here: six varints
// and the attributes.
const recordOverhead = 6*5 + 1

// flush appends what the builder holds.
func (s *shard) flush(now time.Time, t *term) kafka.Code {
	if !t.leads() {
		return kafka.NotCoordinator
	}
	t.batch = t.builder.AppendTo(t.batch[:0])
	t.builder.Reset()
	done, err := t.p.Append(partition.Append{Records: t.batch, Acks: -1, Internal: true, Validator: &t.validator, Now: now})
	if err != nil {
		s.c.opt.Log.Warn("a coordinator could not write: its groups are read again from the log",
			"partition", t.p.Name().String(), "epoch", t.epoch, "err", err)
		return refusalOf(err)
	}
	if done.Base != t.end || !t.leads() {
		s.c.opt.Log.Warn("a coordinator met records that are not its own: its groups are read again from the log",
			"partition", t.p.Name().String(), "epoch", t.epoch, "at", done.Base, "expected", t.end)
		return kafka.NotCoordinator
	}
	t.end = done.Next
	return kafka.None
}

// refusalOf is what clients are told when a write fails, as Kafka tells it: look for
// the coordinator again, or come back when there are enough replicas.
func refusalOf(err error) kafka.Code {
	var refused *kafka.Error
	var records *record.Refusal
	switch {
	case errors.As(err, &records): // too long a record: a fault that asking again does not mend
		return kafka.UnknownServerError
	case errors.As(err, &refused) && refused.Code == kafka.NotEnoughReplicas:
		return kafka.CoordinatorNotAvailable
	}
	return kafka.NotCoordinator
}
