// Package api answers Kafka requests: one file for each API key, named by it. A file
// opens with the versions and what each adds, then the errors it answers, then reads
// straight down. Which keys and versions there are is one table, in package wire.
//
// Produce and Fetch are served without allocation. Everything else goes through kmsg;
// what waits for the controller, the tier or a group waits outside the connection's
// goroutine.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/conn"
	"varve/broker/host"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/record"
	"varve/broker/wire"
	"varve/ha/controller"
)

// A Controller decides changes of the metadata. Its answers rest on what is in the log.
type Controller interface {
	Do(ctx context.Context, req controller.Request) (controller.Answer, error)
	Image() *metadata.Image
}

// Options are what the APIs stand on.
type Options struct {
	Broker     kafka.BrokerID
	ClusterID  string
	Rack       string
	Host       *host.Host
	Controller Controller
	Groups     Groups
	Configs    Configs
	Producers  *ProducerIDs
	Strain     *Strain // takes note of how long appends take; nil: nobody asks
	// Advertised are the addresses that clients of a listener are told.
	Advertised map[string]conn.Endpoint
	// AutoCreate is auto.create.topics.enable, DeleteTopics delete.topic.enable.
	AutoCreate, DeleteTopics bool
	// FetchMaxBytes is fetch.max.bytes, FetchSessions
	// max.incremental.fetch.session.cache.slots.
	FetchMaxBytes, FetchSessions int
	Refusals                     func() *conn.Refusals
	Features                     wire.Features
}

// A Broker answers requests. It is the Handler of the broker's connections.
type Broker struct {
	opt      Options
	sessions sessions
	served   [128]atomic.Int64 // requests by key
}

// New returns a Broker.
func New(opt Options) *Broker {
	b := &Broker{opt: opt}
	b.sessions.init(opt.FetchSessions)
	return b
}

// client is what is kept for a connection; it belongs to the connection's goroutine.
type client struct {
	produce   wire.ProduceRequest
	validator record.Validator
	fetch     fetcher
}

// A call is one request on its way.
type call struct {
	c      *conn.Conn
	h      wire.Header
	body   []byte
	out    *conn.Out
	client *client
}

// Serve answers one request.
func (b *Broker) Serve(c *conn.Conn, h wire.Header, body []byte, out *conn.Out) error {
	cl, ok := c.State.(*client)
	if !ok {
		cl = &client{}
		c.State = cl
	}
	b.served[h.Key].Add(1)
	x := &cl.fetch.call
	*x = call{c, h, body, out, cl}
	switch h.Key {
	case wire.Produce:
		return b.produce(x)
	case wire.Fetch:
		return b.fetch(x)
	case wire.ListOffsets:
		return serve(x, b.listOffsets)
	case wire.Metadata:
		return serve(x, b.metadata)
	case wire.OffsetCommit, wire.OffsetFetch, wire.JoinGroup, wire.Heartbeat, wire.LeaveGroup, wire.SyncGroup,
		wire.DescribeGroups, wire.ListGroups, wire.DeleteGroups, wire.OffsetDelete:
		return b.groups(x)
	case wire.FindCoordinator:
		return serve(x, b.findCoordinator)
	case wire.ApiVersions:
		return b.apiVersions(x)
	case wire.CreateTopics:
		return serve(x, b.createTopics)
	case wire.DeleteTopics:
		return serve(x, b.deleteTopics)
	case wire.InitProducerID:
		return serve(x, b.initProducerID)
	case wire.OffsetForLeaderEpoch:
		return serve(x, b.offsetForLeaderEpoch)
	case wire.DescribeConfigs:
		return serve(x, b.describeConfigs)
	case wire.CreatePartitions:
		return serve(x, b.createPartitions)
	case wire.IncrementalAlterConfigs:
		return serve(x, b.incrementalAlterConfigs)
	case wire.DescribeCluster:
		return serve(x, b.describeCluster)
	}
	panic(fmt.Sprintf("api: %v is in the table of served keys and has no handler", h))
}

// Served are the requests served since the start, by key.
func (b *Broker) Served() map[int16]int64 {
	out := map[int16]int64{}
	for key := range b.served {
		if n := b.served[key].Load(); n > 0 {
			out[int16(key)] = n
		}
	}
	return out
}

// Sessions is how many fetch sessions there are.
func (b *Broker) Sessions() int { return b.sessions.number() }

// Closed forgets what was kept for a connection.
func (b *Broker) Closed(c *conn.Conn) {
	if cl, ok := c.State.(*client); ok {
		cl.fetch.close(c)
	}
}

// serve answers a request through kmsg.
func serve[Req kmsg.Request](x *call, f func(x *call, req Req) kmsg.Response) error {
	req, err := wire.Decode(x.h, x.body)
	if err != nil {
		return err
	}
	resp := f(x, req.(Req))
	resp.SetVersion(x.h.Version)
	x.out.Respond(x.h, resp)
	return nil
}

// do asks the controller and waits for its answer, at most as long as the client does.
// The error is what the request as a whole is answered with.
func do[A controller.Answer](b *Broker, x *call, timeout time.Duration, req controller.Request) (answer A, refused *kafka.Error) {
	x.c.Block(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		got, err := b.opt.Controller.Do(ctx, req)
		if err != nil {
			refused = asRefusal(err)
			return
		}
		answer = got.(A)
	})
	return answer, refused
}

// asRefusal is the one place where an error becomes a code of the wire.
func asRefusal(err error) *kafka.Error {
	var refused *kafka.Error
	var records *record.Refusal
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &records):
		return &kafka.Error{Code: records.Code, Message: records.Message}
	case errors.Is(err, context.DeadlineExceeded):
		return &kafka.Error{Code: kafka.RequestTimedOut, Message: "the change was not finished in time; it may still be carried out"}
	case errors.Is(err, context.Canceled):
		return &kafka.Error{Code: kafka.NotController, Message: "the broker stops"}
	}
	return &kafka.Error{Code: kafka.UnknownServerError, Message: err.Error()}
}

// refused leaves one log line for what was refused, summed up when it repeats.
func (b *Broker) refused(x *call, topic string, partition int32, e *kafka.Error) {
	if e == nil || e.Code == kafka.None {
		return
	}
	level := slog.LevelInfo
	if e.Code == kafka.UnknownServerError || e.Code == kafka.KafkaStorageError {
		level = slog.LevelError
	}
	kind := "refused " + x.h.String() + ": " + e.Code.String()
	if topic != "" {
		kind += " for " + topic
	}
	attrs := append(x.c.LogAttrs(), slog.String("why", e.Message))
	if partition >= 0 {
		attrs = append(attrs, slog.Int("partition", int(partition)))
	}
	if hint := advice[e.Code]; hint != "" {
		attrs = append(attrs, slog.String("do", hint))
	}
	b.opt.Refusals().Add(time.Now(), level, kind, attrs...)
}

// advice says what to do about a code.
var advice = map[kafka.Code]string{
	kafka.UnknownTopicOrPartition:    "create the topic, or set auto.create.topics.enable=true",
	kafka.OffsetOutOfRange:           "the client resets by its auto.offset.reset; look at retention if records were expected",
	kafka.CorruptMessage:             "look at the client's network and memory: the records arrived damaged",
	kafka.MessageTooLarge:            "raise the topic's max.message.bytes, or lower the producer's batch.size",
	kafka.NotEnoughReplicas:          "bring replicas back, or lower the topic's min.insync.replicas",
	kafka.InvalidRecord:              "mend the producer: the records are not valid for this topic",
	kafka.InvalidTimestamp:           "set the client's clock, or the topic's message.timestamp limits",
	kafka.OutOfOrderSequenceNumber:   "the producer lost a batch: it has to start again with a new producer id",
	kafka.InvalidProducerEpoch:       "another instance of this producer has taken over",
	kafka.KafkaStorageError:          "look at the disk and at earlier lines of this log",
	kafka.UnsupportedCompressionType: "let the client use Produce version 7 or later for zstd",
	kafka.InvalidTopicException:      "use letters, digits, '.', '_' and '-' only, at most 249",
}

// message is an error's text for the wire: null where it would be empty.
func message(e *kafka.Error) *string {
	if e == nil || e.Message == "" {
		return nil
	}
	return &e.Message
}

// code is an error's code, NONE for nil.
func code(e *kafka.Error) int16 {
	if e == nil {
		return 0
	}
	return int16(e.Code)
}
