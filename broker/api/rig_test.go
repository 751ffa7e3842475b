package api

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/conn"
	"varve/broker/coordinator"
	"varve/broker/group"
	"varve/broker/host"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/vfs"
	"varve/broker/wire"
	"varve/conf"
	"varve/ha/controller"
)

// A soloist is a controller without a log: what it decides is so at once.
type soloist struct {
	mu struct {
		sync.Mutex
		machine *controller.Machine
		image   *metadata.Image
		refuse  error // what every request is answered with
	}
	follow func(old, image *metadata.Image)
}

func newSoloist(c *conf.Config) *soloist {
	s := &soloist{}
	n := byte(0)
	s.mu.image = metadata.Empty()
	s.mu.machine = controller.New(s.mu.image, controller.Config{NewID: func() kafka.TopicID { n++; return kafka.TopicID{n} },
		CheckConfig: func(_ metadata.ResourceType, _ string, own map[string]string) *kafka.Error {
			if err := c.ValidateTopic(nil, own); err != nil {
				return &kafka.Error{Code: kafka.InvalidConfig, Message: err.Error()}
			}
			return nil
		}})
	return s
}

func (s *soloist) Do(_ context.Context, req controller.Request) (controller.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.refuse != nil {
		return nil, s.mu.refuse
	}
	out := s.mu.machine.Step(time.Now(), req)
	old := s.mu.image
	s.mu.image = old.Apply(old.N()+1, out.Records)
	if s.follow != nil {
		s.follow(old, s.mu.image)
	}
	return out.Answer, nil
}

func (s *soloist) Image() *metadata.Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.image
}

// noGroups coordinates nothing.
type noGroups struct{}

func (noGroups) Ready(context.Context, string) *kafka.Error {
	return &kafka.Error{Code: kafka.CoordinatorNotAvailable}
}
func (noGroups) Shard(string) int32 { return 0 }
func (noGroups) Shards() []int32    { return []int32{0} }
func (noGroups) Ask(_ int32, _ coordinator.Client, req kmsg.Request, done func(kmsg.Response)) {
	done(group.Refuse(req, kafka.NotCoordinator))
}

// A rig is a broker on a folder of the disk, behind a real socket.
type rig struct {
	t          testing.TB
	broker     *Broker
	controller *soloist
	server     *conn.Server
	addr       string
}

func newRig(t testing.TB, change func(*Options)) *rig {
	t.Helper()
	c, err := conf.Load()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	r := &rig{t: t, controller: newSoloist(c)}
	h, err := host.Open(host.Options{FS: vfs.OS{}, Dirs: []string{t.TempDir()}, ClusterID: "c", Broker: 1, Files: 100, Log: log,
		Settings: func(_ string, own map[string]string) *partition.Settings { return settingsOf(c, own) }, Forget: func(kafka.TopicID) {}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Abandon)
	r.do(controller.BeginTerm{ClusterID: "c"})
	r.do(controller.RegisterBroker{ID: 1, ClusterID: "c", Incarnation: [16]byte{1}})
	h.Follow(metadata.Empty(), r.controller.Image())
	r.controller.follow = h.Follow
	opt := Options{Broker: 1, ClusterID: "c", Host: h, Controller: r.controller, Groups: noGroups{}, Configs: c, Producers: &ProducerIDs{Broker: 1, Epoch: 1},
		Advertised: map[string]conn.Endpoint{"PLAINTEXT": {Name: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}},
		AutoCreate: true, DeleteTopics: true, FetchMaxBytes: 55 << 20, FetchSessions: 1000,
		Refusals: func() *conn.Refusals { return r.server.Refusals() }, Features: wire.Features{Epoch: -1}}
	if change != nil {
		change(&opt)
	}
	r.broker = New(opt)
	r.server = conn.NewServer(conn.Config{Log: log}, r.broker)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	go r.server.Serve("PLAINTEXT", l)
	t.Cleanup(func() { r.server.Shutdown(context.WithoutCancel(t.Context())) })
	return r
}

func settingsOf(c *conf.Config, own map[string]string) *partition.Settings {
	topic := c.Topic(own)
	policy := record.DefaultPolicy(kafka.TopicPartition{})
	policy.LogAppendTime = topic.LogAppendTime
	s := &partition.Settings{Policy: policy, MinISR: topic.MinInsyncReplicas}
	s.Log.WriteAhead = 64 << 10
	return s
}

// do has the controller decide something.
func (r *rig) do(req controller.Request) controller.Answer {
	r.t.Helper()
	a, err := r.controller.Do(context.Background(), req)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// topic makes a topic and returns its id.
func (r *rig) topic(name string, partitions int32, configs ...controller.NamedValue) kafka.TopicID {
	r.t.Helper()
	made := r.do(controller.CreateTopics{Topics: []controller.NewTopic{{Name: name, Partitions: partitions, ReplicationFactor: 1, Configs: configs}}}).(controller.TopicsCreated).Topics[0]
	if made.Err != nil {
		r.t.Fatal(made.Err)
	}
	return made.ID
}

// append puts n records behind a partition's.
func (r *rig) append(topic string, p int32, n, size int) {
	r.t.Helper()
	to, code := r.broker.opt.Host.Find(topic, p)
	if code != kafka.None {
		r.t.Fatalf("%s-%d: %v", topic, p, code)
	}
	var v record.Validator
	if _, err := to.Append(partition.Append{Records: batch(n, size), Acks: 1, Version: 11, Validator: &v, Now: time.Now()}); err != nil {
		r.t.Fatal(err)
	}
}

// batch is a batch of n records of size bytes.
func batch(n, size int) []byte {
	var w record.Builder
	for range n {
		w.Add(record.Record{Timestamp: time.Now().UnixMilli(), Value: make([]byte, size)})
	}
	return w.AppendTo(nil)
}

// A peer is one connection that asks and waits.
type peer struct {
	t  testing.TB
	nc net.Conn
	n  int32
}

func (r *rig) dial() *peer {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	return &peer{t: r.t, nc: nc}
}

// send writes a request and waits for nothing.
func (c *peer) send(req kmsg.Request) {
	c.t.Helper()
	c.n++
	if _, err := c.nc.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, c.n)); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads the answer to a request.
func (c *peer) receive(req kmsg.Request) (kmsg.Response, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.nc, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.nc, frame); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != c.n {
		return nil, errors.New("the answer is to another request")
	}
	body := frame[4:]
	if req.IsFlexible() && req.Key() != wire.ApiVersions {
		body = body[1:]
	}
	resp := req.ResponseKind()
	return resp, resp.ReadFrom(body)
}

// ask sends a request and returns its answer.
func ask[R kmsg.Response](c *peer, req kmsg.Request) R {
	c.t.Helper()
	c.send(req)
	resp, err := c.receive(req)
	if err != nil {
		c.t.Fatalf("the answer to %T v%d: %v", req, req.GetVersion(), err)
	}
	return resp.(R)
}

// wantClosed checks that the broker closes the connection without an answer.
func (c *peer) wantClosed() {
	c.t.Helper()
	if n, err := c.nc.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		c.t.Errorf("%d bytes (%v), want the end of the connection", n, err)
	}
}

// wantCode compares a code of the wire.
func wantCode(t testing.TB, what string, got int16, want kafka.Code) {
	t.Helper()
	if kafka.Code(got) != want {
		t.Errorf("%s: %v, want %v", what, kafka.Code(got), want)
	}
}

// until waits for a condition that another goroutine brings about.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
