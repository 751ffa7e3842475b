// Package broker is the broker process without its program: it joins listeners,
// connections, the API, the partitions and the tier, in the order in which they may
// start, and takes them down in the reverse.
//
//	listen ─► open the log folders ─► register with the controller ─► follow the image ─► serve
//
// Which journal, store and file system there are its program decides (cmd).
package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"time"

	"varve/broker/api"
	"varve/broker/conn"
	"varve/broker/coordinator"
	"varve/broker/host"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/vfs"
	"varve/broker/wire"
	"varve/conf"
	"varve/ha/controller"
	"varve/ha/runner"
	"varve/tier"
	"varve/tier/archive"
	"varve/tier/cache"
)

// Options are what a broker runs on.
type Options struct {
	Conf      *conf.Config
	FS        vfs.FS
	Runner    *runner.Runner // follows the metadata log; somebody leads it
	ClusterID string
	Store     tier.Store // of the tier; nil: nothing is tiered
	BootID    string     // of the machine's present boot; "" where there is none to be had
	Seen      bool       // the runner has found what Seen told in its log
	Logger    func(name string) *slog.Logger
	// Failed is told, once, of what makes the broker unable to go on.
	Failed func(error)
}

// A Broker serves clients.
type Broker struct {
	opt        Options
	log        *slog.Logger
	id         kafka.BrokerID
	epoch      kafka.BrokerEpoch
	listeners  *conn.ListenerSet
	advertised []conn.Endpoint
	server     *conn.Server
	host       *host.Host
	api        *api.Broker
	groups     *coordinator.Coordinator
	strain     api.Strain
	archive    *archive.Archive
	cache      *cache.Cache
	settings   *settings
	noted      runner.Position // the last edit that the log dirs know of
}

// Start starts a broker; it serves when Start returns.
func Start(ctx context.Context, opt Options) (_ *Broker, err error) {
	b := &Broker{opt: opt, log: opt.Logger("kafka.server.Broker"), id: kafka.BrokerID(opt.Conf.Int("node.id"))}
	defer func() {
		if err != nil {
			b.abandon()
		}
	}()
	if err := b.listen(ctx); err != nil {
		return nil, err
	}
	if err := b.openLogs(); err != nil {
		return nil, err
	}
	if err := b.register(ctx); err != nil {
		return nil, err
	}
	if err := b.openTier(); err != nil {
		return nil, err
	}
	if err := b.host.CheckStrays(opt.Runner.Image(), opt.Seen); err != nil {
		return nil, err
	}
	b.noteHistory()
	b.coordinate()
	opt.Runner.Watch(b.follow)
	b.host.Run()
	b.serve()
	return b, nil
}

// listen binds the ports, so that what is registered is what clients can reach.
func (b *Broker) listen(ctx context.Context) (err error) {
	if b.listeners, err = conn.Listen(ctx, endpoints(b.opt.Conf.Listeners())); err != nil {
		return err
	}
	var told []conn.Endpoint
	if b.opt.Conf.Set("advertised.listeners") {
		told = endpoints(b.opt.Conf.Advertised())
	}
	b.advertised, err = b.listeners.Advertised(ctx, told, conn.Resolver{Hostname: os.Hostname, LookupHost: net.DefaultResolver.LookupHost})
	return err
}

func endpoints(in []conf.Endpoint) []conn.Endpoint {
	var out []conn.Endpoint
	for _, e := range in {
		out = append(out, conn.Endpoint{Name: e.Name, Host: e.Host, Port: e.Port})
	}
	return out
}

func (b *Broker) openLogs() (err error) {
	c := b.opt.Conf
	b.settings = newSettings(c, b.opt.Store != nil)
	b.host, err = host.Open(host.Options{
		FS: b.opt.FS, Dirs: LogDirs(c), ClusterID: b.opt.ClusterID, Broker: b.id, BootID: b.opt.BootID, Files: descriptors(),
		Log: b.opt.Logger("kafka.log.LogManager"), Settings: b.settings.of,
		CheckpointEvery: millis(c.Long("log.flush.offset.checkpoint.interval.ms")),
		RetentionEvery:  millis(c.Long("log.retention.check.interval.ms")),
		Forget:          b.forget,
		Checkpointed:    b.noteHistory,
	}, time.Now())
	if err != nil {
		return err
	}
	for _, d := range b.host.Dirs() {
		b.log.Info("log dir", "dir", d.Path(), "partitions", len(d.Partitions()), "lastStop", lastStop(d))
	}
	return nil
}

// LogDirs are log.dirs, or log.dir.
func LogDirs(c *conf.Config) []string {
	if dirs := c.List("log.dirs"); len(dirs) > 0 {
		return dirs
	}
	return c.List("log.dir")
}

// register takes the broker's id. The edit that says so has taken its old leaderships
// and seats in sync (A5); only from it on is an image acted on.
func (b *Broker) register(ctx context.Context) error {
	req := controller.RegisterBroker{ID: b.id, ClusterID: b.opt.ClusterID, Rack: b.opt.Conf.String("broker.rack"), Unclean: b.host.MayHaveLostEnd()}
	rand.Read(req.Incarnation[:])
	for _, e := range b.advertised {
		req.Listeners = append(req.Listeners, metadata.Listener{Name: e.Name, Host: e.Host, Port: uint16(e.Port)})
	}
	answer, err := b.opt.Runner.Do(ctx, req)
	if err != nil {
		return fmt.Errorf("registering broker %d: %w", b.id, err)
	}
	a := answer.(controller.BrokerRegistered)
	if a.Err != nil {
		return fmt.Errorf("registering broker %d: %w", b.id, a.Err)
	}
	b.epoch = a.Epoch
	return nil
}

// follow is told of every change of the committed image.
func (b *Broker) follow(old, image *metadata.Image) {
	b.host.Follow(old, image)
	b.groups.Follow(old, image)
}

func (b *Broker) serve() {
	c := b.opt.Conf
	told := map[string]conn.Endpoint{}
	for _, e := range b.advertised {
		told[e.Name] = e
	}
	b.api = api.New(api.Options{
		Broker: b.id, ClusterID: b.opt.ClusterID, Host: b.host, Controller: b.opt.Runner, Groups: b.groups, Configs: c,
		Producers: &api.ProducerIDs{Broker: b.id, Epoch: b.epoch}, Strain: &b.strain, Advertised: told,
		AutoCreate: c.Bool("auto.create.topics.enable"), DeleteTopics: c.Bool("delete.topic.enable"),
		FetchMaxBytes: c.Int("fetch.max.bytes"), FetchSessions: c.Int("max.incremental.fetch.session.cache.slots"),
		Refusals: func() *conn.Refusals { return b.server.Refusals() },
		Features: wire.Features{Epoch: -1},
	})
	b.server = conn.NewServer(conn.Config{
		MaxRequestBytes: c.Int("socket.request.max.bytes"), QueuedBytes: queuedBytes(c),
		MaxConnections: bounded(c.Int("max.connections")), MaxPerIP: bounded(c.Int("max.connections.per.ip")),
		IdleTime: millis(c.Long("connections.max.idle.ms")), Log: b.opt.Logger("kafka.network.SocketServer"),
		SendBuffer: socketBuffer(c, "socket.send.buffer.bytes"), ReceiveBuffer: socketBuffer(c, "socket.receive.buffer.bytes"),
	}, b.api)
	b.listeners.Serve(b.server, func(err error) { b.opt.Failed(err) })
}

// queuedBytes bounds what requests may hold that are not whole yet, or not answered.
// Kafka's default is no bound, and its heap is one; here the default is a bound.
func queuedBytes(c *conf.Config) int64 {
	if !c.Set("queued.max.request.bytes") {
		return 1 << 30
	}
	return max(c.Long("queued.max.request.bytes"), 0)
}

// socketBuffer is a size that somebody set; the system sizes buffers better by itself.
func socketBuffer(c *conf.Config, key string) int {
	if !c.Set(key) {
		return 0
	}
	return max(c.Int(key), 0)
}

// bounded turns Kafka's "as good as unlimited" into no bound.
func bounded(n int) int {
	if n == math.MaxInt32 {
		return 0
	}
	return n
}

// ID is the broker's id.
func (b *Broker) ID() kafka.BrokerID { return b.id }

// Advertised is what clients are told, in the order of the listeners.
func (b *Broker) Advertised() []conn.Endpoint { return b.advertised }

// Bound are the addresses that are listened on.
func (b *Broker) Bound() []conn.Endpoint { return b.listeners.Bound() }

// Close stops serving, finishes what clients were promised, closes the logs and marks
// the stop as clean. What ctx does not leave time for is cut.
func (b *Broker) Close(ctx context.Context) error {
	drain, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	if err := b.server.Shutdown(drain); err != nil {
		b.log.Info("some connections were cut", "err", err)
	}
	b.groups.Close()
	if b.archive != nil {
		b.archive.Close()
		b.cache.Close()
	}
	return b.host.Close(ctx, b.epoch)
}

// drainTime is how long connections may take to finish what they have begun.
const drainTime = 3 * time.Second

// abandon takes down what a failed start has built.
func (b *Broker) abandon() {
	if b.listeners != nil {
		b.listeners.Close()
	}
	if b.archive != nil {
		b.archive.Close()
	}
	if b.cache != nil {
		b.cache.Close()
	}
	if b.host != nil {
		b.host.Abandon()
	}
}

// Health is nil, or what is wrong.
func (b *Broker) Health() error { return b.host.Health() }
