package wire

import (
	"fmt"
	"math"
	"time"

	"varve/broker/kafka"
)

// A FetchRequest is a decoded Fetch, versions 4 to 18. It is reused as
// ProduceRequest is.
type FetchRequest struct {
	Version       int16
	Replica       kafka.BrokerID // NoBroker for a consumer
	ReplicaEpoch  kafka.BrokerEpoch
	MaxWait       time.Duration
	MinBytes      int32
	MaxBytes      int32
	ReadCommitted bool
	SessionID     int32 // 0 is none
	SessionEpoch  int32 // 0 begins a session, -1 ends it or has none
	Topics        []FetchTopic
	Forgotten     []ForgottenTopic
	Rack          string
	ClusterID     string

	partitions []FetchPartition // of all topics, back to back
	forgotten  []int32
}

// A FetchTopic is named up to version 12, and has an id from 13 on.
type FetchTopic struct {
	Name       string
	ID         kafka.TopicID
	Partitions []FetchPartition

	from, to int
}

// A FetchPartition says from where a partition is read. Fields that the version
// lacks hold what Kafka takes for them: NoEpoch, LogStart -1, the highest
// HighWatermark.
type FetchPartition struct {
	Partition        int32
	LeaderEpoch      kafka.LeaderEpoch // that the reader believes in; NoEpoch is not checked
	Offset           kafka.Offset
	LastFetchedEpoch kafka.LeaderEpoch
	LogStart         kafka.Offset // a follower's
	MaxBytes         int32
	Directory        [16]byte     // a follower's log folder (KIP-858)
	HighWatermark    kafka.Offset // that the reader knows (KIP-1166)
}

// A ForgottenTopic leaves a fetch session.
type ForgottenTopic struct {
	Name       string
	ID         kafka.TopicID
	Partitions []int32

	from, to int
}

// Decode reads a body of the given version to its end.
func (r *FetchRequest) Decode(body []byte, version int16) error {
	flex := version >= 12
	c := cursor{b: body}
	r.reset(version)
	r.fixed(&c)
	for n := c.count(flex, 3); n > 0 && !c.bad; n-- {
		r.topic(&c, flex)
	}
	if version >= 7 {
		for n := c.count(flex, 3); n > 0 && !c.bad; n-- {
			r.forget(&c, flex)
		}
	}
	if version >= 11 {
		r.Rack = c.string(flex)
	}
	if flex {
		r.tags(&c)
	}
	if c.bad {
		err := &DecodeError{fmt.Sprintf("Fetch v%d", version),
			fmt.Sprintf("a length in topic %d or after is not one or exceeds the request", len(r.Topics))}
		r.reset(version)
		return err
	}
	r.join()
	return nil
}

// reset leaves the defaults of fields that versions may lack, and the slices'
// room.
func (r *FetchRequest) reset(version int16) {
	*r = FetchRequest{
		Version:      version,
		Replica:      kafka.NoBroker,
		ReplicaEpoch: -1,
		SessionEpoch: -1,
		Topics:       r.Topics[:0],
		Forgotten:    r.Forgotten[:0],
		partitions:   r.partitions[:0],
		forgotten:    r.forgotten[:0],
	}
}

func (r *FetchRequest) fixed(c *cursor) {
	if r.Version <= 14 {
		r.Replica = kafka.BrokerID(c.int32())
	}
	r.MaxWait = time.Duration(c.int32()) * time.Millisecond
	r.MinBytes = c.int32()
	r.MaxBytes = c.int32()
	r.ReadCommitted = c.int8() == 1
	if r.Version >= 7 {
		r.SessionID = c.int32()
		r.SessionEpoch = c.int32()
	}
}

func (r *FetchRequest) topic(c *cursor, flex bool) {
	t := FetchTopic{from: len(r.partitions)}
	t.Name, t.ID = r.topicName(c, flex)
	for n := c.count(flex, 16); n > 0 && !c.bad; n-- {
		r.partitions = append(r.partitions, FetchPartition{})
		r.partition(c, &r.partitions[len(r.partitions)-1], flex)
	}
	if flex {
		c.skipTags()
	}
	t.to = len(r.partitions)
	r.Topics = append(r.Topics, t)
}

func (r *FetchRequest) topicName(c *cursor, flex bool) (string, kafka.TopicID) {
	if r.Version >= 13 {
		return "", c.uuid()
	}
	return c.string(flex), kafka.TopicID{}
}

func (r *FetchRequest) partition(c *cursor, p *FetchPartition, flex bool) {
	p.LeaderEpoch, p.LastFetchedEpoch = kafka.NoEpoch, kafka.NoEpoch
	p.LogStart, p.HighWatermark = kafka.NoOffset, math.MaxInt64
	p.Partition = c.int32()
	if r.Version >= 9 {
		p.LeaderEpoch = kafka.LeaderEpoch(c.int32())
	}
	p.Offset = kafka.Offset(c.int64())
	if r.Version >= 12 {
		p.LastFetchedEpoch = kafka.LeaderEpoch(c.int32())
	}
	if r.Version >= 5 {
		p.LogStart = kafka.Offset(c.int64())
	}
	p.MaxBytes = c.int32()
	if !flex {
		return
	}
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		number, v := c.tag()
		switch number {
		case 0:
			p.Directory = v.uuid()
		case 1:
			p.HighWatermark = kafka.Offset(v.int64())
		}
		c.inner(&v)
	}
}

func (r *FetchRequest) forget(c *cursor, flex bool) {
	t := ForgottenTopic{from: len(r.forgotten)}
	t.Name, t.ID = r.topicName(c, flex)
	for n := c.count(flex, 4); n > 0; n-- {
		r.forgotten = append(r.forgotten, c.int32())
	}
	if flex {
		c.skipTags()
	}
	t.to = len(r.forgotten)
	r.Forgotten = append(r.Forgotten, t)
}

func (r *FetchRequest) tags(c *cursor) {
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		number, v := c.tag()
		switch number {
		case 0:
			r.ClusterID, _ = v.nullableString(true)
		case 1:
			r.Replica = kafka.BrokerID(v.int32())
			r.ReplicaEpoch = kafka.BrokerEpoch(v.int64())
			v.skipTags()
		}
		c.inner(&v)
	}
}

// join gives each topic its share of the partitions, whose slice grew until now.
func (r *FetchRequest) join() {
	for i := range r.Topics {
		t := &r.Topics[i]
		t.Partitions = r.partitions[t.from:t.to:t.to]
	}
	for i := range r.Forgotten {
		t := &r.Forgotten[i]
		t.Partitions = r.forgotten[t.from:t.to:t.to]
	}
}
