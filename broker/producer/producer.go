// Package producer decides for one partition what an idempotent producer may
// append and how far its transactions let consumers read.
//
// Each producer id has a window of its last five batches. A batch that is in the
// window is a repetition and is answered as the first time; any other must follow
// the last one's sequence number. A transaction begins with a producer's first
// transactional batch and ends with a marker; the last stable offset stands at the
// oldest one that has not ended below the high watermark.
//
// Everything here is a function of the log: replicas that hold the same records
// come to the same answers, and a State is a snapshot file plus the batches after it.
//
// A .snapshot file, named by the offset that it goes up to (Kafka's, version 1):
//
//	version i16 = 1 | crc u32, CRC32C of what follows | count i32 | count entries:
//	producer id i64 | epoch i16 | last sequence i32 | last offset i64 |
//	last offset - first offset i32 | timestamp i64 | coordinator epoch i32 |
//	first offset of the open transaction i64 (-1)
//
// An entry of a .txnindex file, 34 bytes (Kafka's, version 0):
//
//	version i16 = 0 | producer id i64 | first offset i64 | last offset i64, the
//	marker's | last stable offset i64, when the marker was written
package producer

import (
	"math"
	"slices"

	"varve/broker/kafka"
	"varve/broker/record"
)

// window is how many batches of a producer are remembered: as many as a client
// sends without an answer.
const window = 5

const defaultExpireMs = 24 * 60 * 60 * 1000

// Params are a State's settings.
type Params struct {
	Partition kafka.TopicPartition // for messages
	ExpireMs  int64                // producer.id.expiration.ms; 0 is a day
}

// An Entry is what a batch says of its producer. A batch without one has PID
// NoProducer and only moves the log's time.
type Entry struct {
	PID           kafka.ProducerID
	Epoch         kafka.ProducerEpoch
	FirstSeq      int32
	LastSeq       int32
	FirstOffset   kafka.Offset // where the batch would lie, for messages
	Timestamp     int64        // the batch's highest, ms
	Transactional bool
	// Verified says that the client speaks transactions version 2 (KIP-890): without
	// any state it begins at sequence 0.
	Verified bool
}

// EntryOf reads an Entry from a batch of data.
func EntryOf(b record.Batch) Entry {
	return Entry{
		PID:           b.ProducerID(),
		Epoch:         b.ProducerEpoch(),
		FirstSeq:      b.BaseSequence(),
		LastSeq:       b.LastSequence(),
		FirstOffset:   b.BaseOffset(),
		Timestamp:     b.MaxTimestamp(),
		Transactional: b.Transactional(),
	}
}

// Appended is where a batch lies that was sent again.
type Appended struct {
	Base, Last kafka.Offset
	Timestamp  int64 // ms
}

// A batch is one of a producer's last five.
type batch struct {
	last      kafka.Offset
	timestamp int64
	lastSeq   int32
	delta     int32 // last offset - first offset
}

func (b batch) firstSeq() int32 { return int32(int64(b.lastSeq)-int64(b.delta)) & math.MaxInt32 }

// A producer is the state of one producer id, about 200 bytes.
type producer struct {
	txnFirst         kafka.Offset // of the open transaction, NoOffset if none is
	seen             int64        // the log's time at its last append, ms
	coordinatorEpoch int32
	epoch            kafka.ProducerEpoch
	n, next          uint8 // batches in ring, place of the next
	ring             [window]batch
}

func newProducer(epoch kafka.ProducerEpoch) *producer {
	return &producer{txnFirst: kafka.NoOffset, coordinatorEpoch: -1, epoch: epoch}
}

// lastSeq is the last sequence number, -1 where no batch of this epoch is known.
func (p *producer) lastSeq() int32 {
	if p.n == 0 {
		return -1
	}
	return p.newest().lastSeq
}

func (p *producer) newest() batch { return p.ring[(p.next+window-1)%window] }

func (p *producer) add(b batch) {
	p.ring[p.next] = b
	p.next = (p.next + 1) % window
	p.n = min(p.n+1, window)
}

func (p *producer) setEpoch(e kafka.ProducerEpoch) {
	if p.epoch != e {
		p.epoch, p.n, p.next = e, 0, 0
	}
}

// A State is all producers of one partition.
type State struct {
	params    Params
	producers map[kafka.ProducerID]*producer
	open      []txn // begun and not ended, by first offset
	decided   []txn // ended by a marker that is not yet below the high watermark, by first offset
	clock     int64 // the log's highest timestamp so far, ms
}

// New returns the state of an empty log.
func New(p Params) *State {
	if p.ExpireMs == 0 {
		p.ExpireMs = defaultExpireMs
	}
	s := &State{params: p}
	s.Reset()
	return s
}

// Reset forgets everything. A truncated log begins again from its last snapshot at
// or below the new end.
func (s *State) Reset() {
	s.producers = map[kafka.ProducerID]*producer{}
	s.open, s.decided = nil, nil
	s.clock = record.NoTimestamp
}

// Len is the number of producer ids known.
func (s *State) Len() int { return len(s.producers) }

// Append takes note of a batch that lies in the log at [base, last], whether this
// broker wrote it as leader, as follower, or reads it again at recovery.
func (s *State) Append(e Entry, base, last kafka.Offset) {
	s.clock = max(s.clock, e.Timestamp)
	if e.PID < 0 {
		return
	}
	p := s.producers[e.PID]
	if p == nil {
		p = newProducer(e.Epoch)
		s.producers[e.PID] = p
	}
	p.setEpoch(e.Epoch)
	p.seen = s.clock
	p.add(batch{last: last, timestamp: e.Timestamp, lastSeq: e.LastSeq, delta: int32(last - base)})
	if e.Transactional && p.txnFirst == kafka.NoOffset {
		p.txnFirst = base
		s.open = insert(s.open, txn{pid: e.PID, first: base})
	}
}

// Expire forgets producers without an open transaction whose last append is older
// than the expiration, by the log's own time: now is the log's highest timestamp,
// not a clock's, so that replicas agree (protocols §3-17). A producer's age counts
// from the log's time at its append, so that records with old timestamps keep it.
func (s *State) Expire(now int64) {
	s.clock = max(s.clock, now)
	for pid, p := range s.producers {
		if p.txnFirst == kafka.NoOffset && s.clock-p.seen >= s.params.ExpireMs {
			delete(s.producers, pid)
		}
	}
}

// A Description is what DescribeProducers tells of one producer.
type Description struct {
	PID              kafka.ProducerID
	Epoch            kafka.ProducerEpoch
	LastSeq          int32
	LastTimestamp    int64
	CoordinatorEpoch int32
	TxnFirst         kafka.Offset // NoOffset if no transaction is open
}

// Describe lists the producers by id.
func (s *State) Describe() []Description {
	out := make([]Description, 0, len(s.producers))
	for _, pid := range s.ids() {
		p := s.producers[pid]
		out = append(out, Description{pid, p.epoch, p.lastSeq(), p.seen, p.coordinatorEpoch, p.txnFirst})
	}
	return out
}

func (s *State) ids() []kafka.ProducerID {
	ids := make([]kafka.ProducerID, 0, len(s.producers))
	for pid := range s.producers {
		ids = append(ids, pid)
	}
	slices.Sort(ids)
	return ids
}
