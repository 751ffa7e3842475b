package controller

import (
	"math"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

func (c *Machine) allocateProducerIDs(req AllocateProducerIDs) Outcome {
	refused := func(code kafka.Code, format string, args ...any) Outcome {
		return Outcome{Answer: ProducerIDsAllocated{Err: kafka.Refuse(code, format, args...)}}
	}
	b, ok := c.spec.Broker(req.Broker)
	switch {
	case !ok:
		return refused(kafka.BrokerIDNotRegistered, "No broker registration found for broker id %d", req.Broker)
	case b.Epoch != req.BrokerEpoch:
		return refused(kafka.StaleBrokerEpoch, "Expected broker epoch %d, but got broker epoch %d", b.Epoch, req.BrokerEpoch)
	}
	first := c.spec.NextProducerID()
	if first > math.MaxInt64-ProducerIDBlockSize {
		return refused(kafka.UnknownServerError, "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit")
	}
	return Outcome{
		Records: []metadata.Record{metadata.ProducerIDBlock{Broker: req.Broker, Epoch: b.Epoch, Next: first + ProducerIDBlockSize}},
		Answer:  ProducerIDsAllocated{First: first, Count: ProducerIDBlockSize},
	}
}
