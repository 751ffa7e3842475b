package api

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/ha/controller"
)

// InitProducerID, key 22.
//
//	v3  the producer's id and epoch, to go on with (KIP-360)
//
// Errors: INVALID_REQUEST for a transactional id and for an id without an epoch, COORDINATOR_NOT_AVAILABLE where no
// block of ids can be had.
func (b *Broker) initProducerID(x *call, req *kmsg.InitProducerIDRequest) kmsg.Response {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		e := &kafka.Error{Code: kafka.InvalidRequest, Message: "transactions are not served by this version; leave transactional.id unset"}
		resp.ErrorCode = int16(e.Code)
		b.refused(x, "", -1, e)
		return resp
	}
	if (req.ProducerID == -1) != (req.ProducerEpoch == -1) {
		resp.ErrorCode = int16(kafka.InvalidRequest)
		b.refused(x, "", -1, kafka.Refuse(kafka.InvalidRequest, "producer id %d with epoch %d: both or none", req.ProducerID, req.ProducerEpoch))
		return resp
	}
	id, e := b.opt.Producers.next(b, x)
	if e != nil {
		resp.ErrorCode = int16(e.Code)
		b.refused(x, "", -1, e)
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = int64(id), 0
	return resp
}

// ProducerIDs hands out producer ids from blocks that the controller gives.
type ProducerIDs struct {
	Broker kafka.BrokerID
	Epoch  kafka.BrokerEpoch

	mu struct {
		sync.Mutex
		next, end kafka.ProducerID
	}
	asking sync.Mutex // one asks for a block, the others wait for it
}

func (p *ProducerIDs) next(b *Broker, x *call) (id kafka.ProducerID, e *kafka.Error) {
	if id, ok := p.take(); ok {
		return id, nil
	}
	x.c.Block(func(ctx context.Context) {
		p.asking.Lock()
		defer p.asking.Unlock()
		var ok bool
		if id, ok = p.take(); ok {
			return
		}
		a, err := b.opt.Controller.Do(ctx, controller.AllocateProducerIDs{Broker: p.Broker, BrokerEpoch: p.Epoch})
		if err != nil {
			e = kafka.Refuse(kafka.CoordinatorNotAvailable, "asking for producer ids: %v", err)
			return
		}
		block := a.(controller.ProducerIDsAllocated)
		if block.Err != nil {
			e = kafka.Refuse(kafka.CoordinatorNotAvailable, "asking for producer ids: %v", block.Err)
			return
		}
		p.mu.Lock()
		p.mu.next, p.mu.end = block.First, block.First+kafka.ProducerID(block.Count)
		p.mu.Unlock()
		id, _ = p.take()
	})
	return id, e
}

func (p *ProducerIDs) take() (kafka.ProducerID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.next == p.mu.end {
		return kafka.NoProducer, false
	}
	p.mu.next++
	return p.mu.next - 1, true
}
