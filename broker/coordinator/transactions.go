package coordinator

import (
	"bytes"
	"fmt"

	"varve/broker/group"
	"varve/broker/kafka"
	"varve/broker/record"
)

// transactions are offsets that producers have committed in a transaction whose end
// has not been read yet. A log that a Kafka wrote may hold some; one that is open at
// the end stays undone.
type transactions map[kafka.ProducerID][]record.Record

func (open *transactions) add(id kafka.ProducerID, r record.Record) {
	if *open == nil {
		*open = transactions{}
	}
	r.Key, r.Value, r.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), nil
	(*open)[id] = append((*open)[id], r)
}

// end has the machine load what a marker commits.
func (open transactions) end(m *group.Machine, b record.Batch) error {
	marker, ok, err := b.EndTxn()
	if err != nil {
		return fmt.Errorf("offset %d: %w", b.BaseOffset(), err)
	}
	if !ok {
		return nil
	}
	records := open[b.ProducerID()]
	delete(open, b.ProducerID())
	if !marker.Commit {
		return nil
	}
	for _, r := range records {
		if err := load(m, r); err != nil {
			return err
		}
	}
	return nil
}
