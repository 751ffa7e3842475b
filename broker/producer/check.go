package producer

import (
	"math"

	"varve/broker/kafka"
)

// Check decides about a batch before it is appended: dup where it lies in the log
// already and is to be answered so, err where it may not be appended. The sequence
// is checked only of a client's batch; the epoch also of the broker's own. A follower does
// not ask: it takes what its leader has. Order and words are Kafka's.
func (s *State) Check(e Entry, fromClient bool) (dup *Appended, err *kafka.Error) {
	if e.PID < 0 {
		return nil, nil
	}
	p := s.producers[e.PID]
	if p == nil {
		return nil, s.checkUnknown(e, fromClient)
	}
	if fromClient {
		if dup := p.repeated(e); dup != nil {
			return dup, nil
		}
	}
	if e.Epoch < p.epoch {
		return nil, s.refuseEpoch(e.PID, e.FirstOffset, e.Epoch, p.epoch, 0)
	}
	if fromClient {
		if err := s.checkSequence(e, p); err != nil {
			return nil, err
		}
	}
	if p.txnFirst != kafka.NoOffset && !e.Transactional {
		return nil, kafka.Refuse(kafka.InvalidTxnState, "Expected transactional write from producer %d at offset %d in partition %v",
			e.PID, e.FirstOffset, s.params.Partition)
	}
	return nil, nil
}

// checkUnknown decides about a producer without state: it never wrote here, or was
// idle until it was forgotten. Any sequence will do, but for transactions version 2.
func (s *State) checkUnknown(e Entry, fromClient bool) *kafka.Error {
	if !fromClient || !e.Verified || e.FirstSeq == 0 {
		return nil
	}
	return kafka.Refuse(kafka.OutOfOrderSequenceNumber, "Invalid sequence number for producer %d at offset %d in partition %v: "+
		"%d (incoming seq. number). Expected sequence 0 for transactions v2 idempotent producer with no existing state.",
		e.PID, e.FirstOffset, s.params.Partition, e.FirstSeq)
}

// repeated finds the batch in the window that e repeats exactly.
func (p *producer) repeated(e Entry) *Appended {
	if e.Epoch != p.epoch {
		return nil
	}
	for i := range p.n {
		b := p.ring[i]
		if b.lastSeq == e.LastSeq && b.firstSeq() == e.FirstSeq {
			return &Appended{b.last - kafka.Offset(b.delta), b.last, b.timestamp}
		}
	}
	return nil
}

func (s *State) checkSequence(e Entry, p *producer) *kafka.Error {
	if e.Epoch != p.epoch {
		if e.FirstSeq == 0 {
			return nil
		}
		return kafka.Refuse(kafka.OutOfOrderSequenceNumber, "Invalid sequence number for new epoch of producer %dat offset %d in "+
			"partition %v: %d (request epoch), %d (seq. number), %d (current producer epoch)",
			e.PID, e.FirstOffset, s.params.Partition, e.Epoch, e.FirstSeq, p.epoch)
	}
	if last := p.lastSeq(); !follows(last, e.FirstSeq) {
		return kafka.Refuse(kafka.OutOfOrderSequenceNumber, "Out of order sequence number for producer %d at offset %d in "+
			"partition %v: %d (incoming seq. number), %d (current end sequence number)",
			e.PID, e.FirstOffset, s.params.Partition, e.FirstSeq, last)
	}
	return nil
}

// follows tells whether next comes after last; numbers go round at 2^31.
func follows(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}

func (s *State) refuseEpoch(pid kafka.ProducerID, at kafka.Offset, epoch, seen kafka.ProducerEpoch, version int) *kafka.Error {
	relation := "<"
	if version >= 2 {
		relation = "<="
	}
	return kafka.Refuse(kafka.InvalidProducerEpoch, "Epoch of producer %d at offset %d in %v is %d, which is %s the last seen epoch %d (TV%d)",
		pid, at, s.params.Partition, epoch, relation, seen, version)
}
