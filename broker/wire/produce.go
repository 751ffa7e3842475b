package wire

import (
	"fmt"
	"time"

	"varve/broker/kafka"
)

// A ProduceRequest is a decoded Produce, versions 3 to 13. It is reused: the next
// Decode overwrites its slices. What it holds aliases the body.
type ProduceRequest struct {
	Version         int16
	TransactionalID string
	Transactional   bool // TransactionalID is not null
	Acks            int16
	Timeout         time.Duration
	Topics          []ProduceTopic

	partitions []ProducePartition // of all topics, back to back
}

// A ProduceTopic is named up to version 12, and has an id from 13 on.
type ProduceTopic struct {
	Name       string
	ID         kafka.TopicID
	Partitions []ProducePartition

	from, to int // of the request's partitions
}

// A ProducePartition is record bytes for one partition; nil where null. The bytes
// are the frame's own and may be stamped in place.
type ProducePartition struct {
	Partition int32
	Records   []byte
}

// Decode reads a body of the given version to its end. No more is kept than was
// read: a count is believed only as far as the bytes go.
func (r *ProduceRequest) Decode(body []byte, version int16) error {
	flex := version >= 9
	c := cursor{b: body}
	r.Version = version
	r.Topics, r.partitions = r.Topics[:0], r.partitions[:0]
	r.TransactionalID, r.Transactional = c.nullableString(flex)
	r.Acks = c.int16()
	r.Timeout = time.Duration(c.int32()) * time.Millisecond
	for n := c.count(flex, 3); n > 0 && !c.bad; n-- {
		r.topic(&c, version, flex)
	}
	if flex {
		c.skipTags()
	}
	if c.bad {
		return r.bad()
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		t.Partitions = r.partitions[t.from:t.to:t.to]
	}
	return nil
}

func (r *ProduceRequest) topic(c *cursor, version int16, flex bool) {
	t := ProduceTopic{from: len(r.partitions)}
	if version >= 13 {
		t.ID = c.uuid()
	} else {
		t.Name = c.string(flex)
	}
	for n := c.count(flex, 6); n > 0 && !c.bad; n-- {
		r.partitions = append(r.partitions, ProducePartition{c.int32(), c.nullableBytes(flex)})
		if flex {
			c.skipTags()
		}
	}
	if flex {
		c.skipTags()
	}
	t.to = len(r.partitions)
	r.Topics = append(r.Topics, t)
}

// bad is the error of a body that ended before its fields did.
func (r *ProduceRequest) bad() error {
	err := &DecodeError{fmt.Sprintf("Produce v%d", r.Version),
		fmt.Sprintf("a length in topic %d is not one or exceeds the request", len(r.Topics))}
	r.Topics = r.Topics[:0]
	return err
}
