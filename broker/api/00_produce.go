package api

import (
	"errors"
	"time"

	"varve/broker/kafka"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/wire"
)

// Produce, key 0.
//
//	v3   record batches v2; transactional id
//	v5   LogStartOffset
//	v7   zstd
//	v8   RecordErrors and ErrorMessage
//	v10  CurrentLeader and NodeEndpoints (KIP-951)
//	v13  topic ids
//
// Errors per partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID,
// INVALID_TOPIC_EXCEPTION, INVALID_REQUIRED_ACKS, NOT_LEADER_OR_FOLLOWER,
// NOT_ENOUGH_REPLICAS, those of record.Validate and producer.Check,
// REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR. With acks=0 there is no answer, and an
// error closes the connection.
func (b *Broker) produce(x *call) error {
	req := &x.client.produce
	if err := req.Decode(x.body, x.h.Version); err != nil {
		return err
	}
	if req.Transactional {
		return errors.New("a transactional produce: transactions are not served by this version; use idempotence without a transactional.id")
	}
	if req.Acks == 0 {
		return b.produceSilently(x, req)
	}
	now := time.Now()
	v := wire.ProduceResponse(x.h.Version)
	x.out.Begin(x.h)
	x.out.B = v.Begin(x.out.B, len(req.Topics))
	waits := pendings{x: x, until: now.Add(req.Timeout)}
	for i := range req.Topics {
		t := &req.Topics[i]
		x.out.B = v.Topic(x.out.B, t.Name, t.ID, len(t.Partitions))
		for j := range t.Partitions {
			b.producePartition(x, req, t, &t.Partitions[j], now, &waits)
		}
		x.out.B = v.EndTopic(x.out.B)
	}
	x.out.B = v.End(x.out.B, 0, nil)
	x.out.End()
	if b.opt.Strain != nil {
		b.opt.Strain.note(time.Since(now))
	}
	return nil
}

// pendings makes the answer wait for replicas, once one partition has to.
type pendings struct {
	x     *call
	until time.Time
	slot  interface {
		Hold(at int) uint64
		Done(token uint64, code kafka.Code)
	}
}

func (w *pendings) hold(p *partition.Partition, next kafka.Offset, at int) {
	if w.slot == nil {
		w.slot = w.x.out.Pend(w.until)
	}
	slot := w.slot
	token := slot.Hold(at)
	p.Await(next, func(code kafka.Code) { slot.Done(token, code) })
}

func (b *Broker) producePartition(x *call, req *wire.ProduceRequest, t *wire.ProduceTopic, q *wire.ProducePartition, now time.Time, waits *pendings) {
	res := wire.ProduceResult{Partition: q.Partition, Base: kafka.NoOffset, AppendTime: -1, LogStart: kafka.NoOffset}
	at := len(x.out.B)
	p, done, err := b.append(x, req, t, q, now)
	if err != nil {
		b.refuseRecords(x, t, q, err, &res)
		res.LogStart = toldStart(p, err)
	} else {
		res.Base, res.AppendTime, res.LogStart = done.Base, done.AppendTime, done.LogStart
	}
	x.out.B = wire.ProduceResponse(x.h.Version).Partition(x.out.B, &res)
	if err == nil && req.Acks == -1 && !done.Revealed {
		waits.hold(p, done.Next, at)
	}
}

// toldStart is the LogStartOffset of a refusal. Kafka tells it with what its log
// refused while it looked at the records, and with nothing before or after.
func toldStart(p *partition.Partition, err error) kafka.Offset {
	var records *record.Refusal
	if p == nil || errors.As(err, &records) && records.Request {
		return kafka.NoOffset
	}
	switch asRefusal(err).Code {
	case kafka.NotLeaderOrFollower, kafka.MessageTooLarge, kafka.RecordListTooLarge, kafka.CorruptMessage,
		kafka.KafkaStorageError, kafka.InvalidRequiredAcks:
		return kafka.NoOffset
	}
	return p.Log().Start()
}

// append writes one partition's records.
func (b *Broker) append(x *call, req *wire.ProduceRequest, t *wire.ProduceTopic, q *wire.ProducePartition, now time.Time) (*partition.Partition, partition.Appended, error) {
	p, code := b.find(t.Name, t.ID, q.Partition, req.Version >= 13)
	if code != kafka.None {
		return nil, partition.Appended{}, unknownPartition(code)
	}
	if internal(p.Name().Topic) && x.h.ClientID != adminClient {
		return p, partition.Appended{}, errInternal
	}
	done, err := p.Append(partition.Append{Records: q.Records, Acks: req.Acks, Version: req.Version, Validator: &x.client.validator, Now: now})
	return p, done, err
}

// adminClient is the client id that may write to the broker's own topics, as in Kafka.
const adminClient = "__admin_client"

// errInternal keeps clients from records that only a coordinator may write: one that it
// cannot read would keep it from loading.
var errInternal = &kafka.Error{Code: kafka.InvalidTopicException, Message: "the topic is the broker's own"}

// find is the partition by name, or by id where the version has ids.
func (b *Broker) find(name string, id kafka.TopicID, partition int32, byID bool) (*partition.Partition, kafka.Code) {
	if byID {
		return b.opt.Host.FindID(id, partition)
	}
	return b.opt.Host.Find(name, partition)
}

// Refusals of partitions that are not here.
var (
	errUnknown   = &kafka.Error{Code: kafka.UnknownTopicOrPartition}
	errUnknownID = &kafka.Error{Code: kafka.UnknownTopicID}
	errDown      = &kafka.Error{Code: kafka.KafkaStorageError, Message: "the partition is out of service: its log dir failed, or its log could not be opened"}
)

func unknownPartition(code kafka.Code) *kafka.Error {
	switch code {
	case kafka.UnknownTopicID:
		return errUnknownID
	case kafka.KafkaStorageError:
		return errDown
	}
	return errUnknown
}

// refuseRecords fills in a refusal and leaves a log line.
func (b *Broker) refuseRecords(x *call, t *wire.ProduceTopic, q *wire.ProducePartition, err error, res *wire.ProduceResult) {
	e := asRefusal(err)
	res.Code, res.Message = e.Code, e.Message
	var refusal *record.Refusal
	if errors.As(err, &refusal) {
		for _, r := range refusal.Records {
			res.Records = append(res.Records, wire.RecordError{Index: r.BatchIndex, Message: r.Message})
		}
	}
	name := t.Name
	if name == "" {
		name = t.ID.String()
	}
	b.refused(x, name, q.Partition, e)
}

// produceSilently is acks=0: an error can only be told by closing the connection.
func (b *Broker) produceSilently(x *call, req *wire.ProduceRequest) error {
	x.out.Silence()
	now := time.Now()
	var failed error
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			if _, _, err := b.append(x, req, t, &t.Partitions[j], now); err != nil {
				b.refused(x, t.Name, t.Partitions[j].Partition, asRefusal(err))
				failed = err
			}
		}
	}
	if failed != nil {
		return errSilently{failed}
	}
	return nil
}

// errSilently closes a connection whose client asked for no answer.
type errSilently struct{ error }

func (e errSilently) Error() string {
	return "closing the connection to tell a producer with acks=0 of an error: " + e.error.Error()
}
