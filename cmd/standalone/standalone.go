// Package standalone is `varve standalone`: broker and controller in one process, with
// the metadata log in a folder and the tier wherever its URL says. Nothing else has to
// be installed.
//
//	<data dir>/
//	    log/        the partitions, as Kafka lays them out   (log.dirs)
//	    metadata/   the metadata log                         (metadata.log.dir)
//	    tier/       closed segments, unless tier.url says otherwise
package standalone

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"varve/broker"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/vfs"
	"varve/cmd/daemon"
	"varve/conf"
	"varve/ha/controller"
	"varve/ha/journal/filejournal"
	"varve/ha/runner"
	"varve/log4j"
	"varve/tier"
)

// Options are what the command line says.
type Options struct {
	ConfFile string   // server.properties; "" is the shipped one
	Defines  []string // key=value, from -D
	DataDir  string
	Listener string // HOST:PORT, or as in listeners
	HTTP     string // HOST:PORT; "" keeps http.listener
	Tier     string // URL; "" keeps tier.url; "none" is no tier
	NeedTier bool   // do not start without it; otherwise a tier that is away is waited for
	// Quiet keeps the log to warnings unless a log4j.properties says otherwise.
	Quiet  bool
	Stderr io.Writer
	Notice func(line string) // what an operator must read before it starts
}

// A Process is a running standalone broker.
type Process struct {
	conf     *conf.Config
	needTier bool
	logs     *log4j.Hierarchy
	journal  *filejournal.Journal
	runner   *runner.Runner
	broker   *broker.Broker
	store    tier.Store
	seen     bool // the log dirs have followed this metadata log before
	pages    *daemon.Pages
	started  time.Time
	failed   chan error
}

// Start starts a broker; it serves when Start returns. The error says what to do.
func Start(ctx context.Context, o Options) (_ *Process, err error) {
	p := &Process{needTier: o.NeedTier, started: time.Now(), failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			p.abandon()
		}
	}()
	if err := p.configure(o); err != nil {
		return nil, err
	}
	p.Log().Info("starting", "version", Version(), "pid", os.Getpid(), "node", p.conf.Int("node.id"), "conf", or(o.ConfFile, "none"),
		"logs", strings.Join(broker.LogDirs(p.conf), ","), "metadata", p.conf.String("metadata.log.dir"), "tier", or(p.conf.String("tier.url"), "none"))
	if err := p.openTier(ctx); err != nil {
		return nil, err
	}
	id, err := p.lead(ctx)
	if err != nil {
		return nil, err
	}
	p.broker, err = broker.Start(ctx, broker.Options{Conf: p.conf, FS: vfs.OS{}, Runner: p.runner, ClusterID: id, Store: p.store,
		BootID: bootID(), Seen: p.seen, Logger: p.logs.Logger, Failed: p.fail})
	if err != nil {
		return nil, err
	}
	if err := p.serveHTTP(); err != nil {
		return nil, err
	}
	image := p.runner.Image()
	p.Log().Info("serving", "clients", p.Bootstrap(), "pages", or(p.HTTP(), "none"), "cluster", image.ClusterID(),
		"topics", image.TopicCount(), "partitions", image.PartitionCount(), "took", time.Since(p.started).Round(time.Millisecond))
	return p, nil
}

// lead opens the metadata log and takes it: this process is its controller.
func (p *Process) lead(ctx context.Context) (clusterID string, err error) {
	dir := p.conf.String("metadata.log.dir")
	if p.journal, err = filejournal.Open(vfs.OS{}, dir, filejournal.Options{Log: p.logs.Logger("varve.journal")}); err != nil {
		return "", fmt.Errorf("opening the metadata log in %s: %w", dir, err)
	}
	seen, err := broker.Seen(vfs.OS{}, p.conf)
	if err != nil {
		return "", err
	}
	p.seen = seen.N > 0
	p.runner, err = runner.Start(ctx, p.journal, runner.Options{Seen: seen,
		Who: fmt.Sprintf("standalone %d", os.Getpid()), ClusterID: newClusterID(), Log: p.logs.Logger("kafka.controller.Controller"),
		Controller: p.controllerConfig(), Failed: p.fail, SteppedDown: p.fail,
	})
	if err != nil {
		return "", fmt.Errorf("reading the metadata log in %s: %w", dir, err)
	}
	if err := p.runner.Lead(ctx); err != nil {
		return "", fmt.Errorf("taking the metadata log in %s: %w", dir, err)
	}
	return p.runner.Image().ClusterID(), nil
}

func (p *Process) controllerConfig() controller.Config {
	c := p.conf
	return controller.Config{
		NewID:              newTopicID,
		DefaultPartitions:  int32(c.Int("num.partitions")),
		DefaultReplication: 1,
		MinISR:             func(own map[string]string) int { return c.Topic(own).MinInsyncReplicas },
		Tiered:             func(own map[string]string) bool { return c.Topic(own).RemoteStorageEnable },
		CheckConfig:        p.checkConfig,
		ListDefault:        listDefault,
	}
}

// checkConfig holds a topic's settings, as they would become, to the table of keys.
func (p *Process) checkConfig(t metadata.ResourceType, name string, own map[string]string) *kafka.Error {
	if t != metadata.TopicResource {
		return kafka.Refuse(kafka.InvalidRequest, "Configs of this kind cannot be altered while the broker runs.")
	}
	var before map[string]string
	if topic, ok := p.runner.Image().Topic(name); ok {
		before = topic.Configs()
	}
	if err := p.conf.ValidateTopic(before, own); err != nil {
		return &kafka.Error{Code: kafka.InvalidConfig, Message: err.Error()}
	}
	return nil
}

// listDefault tells which topic configs are lists.
func listDefault(t metadata.ResourceType, key string) (string, bool) {
	if k := conf.Lookup(key); t == metadata.TopicResource && k != nil && k.Type == conf.List {
		return k.Default, true
	}
	return "", false
}

func newClusterID() string {
	var id [16]byte
	rand.Read(id[:])
	return strings.ReplaceAll(base64.RawURLEncoding.EncodeToString(id[:]), "-", "A")
}

// newTopicID draws an id as Kafka does: its text does not begin with a dash.
func newTopicID() kafka.TopicID {
	for {
		var id kafka.TopicID
		rand.Read(id[:])
		if !strings.HasPrefix(id.String(), "-") {
			return id
		}
	}
}

// bootID is the machine's present boot; "" where it does not say.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (p *Process) fail(err error) {
	if err == nil {
		return
	}
	select {
	case p.failed <- err:
	default:
	}
}

// Failed has the error of what makes the process unable to go on.
func (p *Process) Failed() <-chan error { return p.failed }

// Bootstrap is the first address that clients are told.
func (p *Process) Bootstrap() string { return p.broker.Advertised()[0].Address() }

// HTTP is the address of the pages; "" without.
func (p *Process) HTTP() string {
	if p.pages == nil {
		return ""
	}
	return p.pages.Addr()
}

// TierURL is the root of the tier's files; "" without a tier.
func (p *Process) TierURL() string {
	if p.store == nil {
		return ""
	}
	return p.store.URL()
}

// Conf is the effective configuration.
func (p *Process) Conf() *conf.Config { return p.conf }

// Log is the log for the program's own lines.
func (p *Process) Log() *slog.Logger { return p.logs.Logger("varve.standalone") }

// WriteReady writes the one line that says where everything is.
func (p *Process) WriteReady(w io.Writer) {
	pairs := []string{}
	for _, e := range p.broker.Advertised() {
		pairs = append(pairs, strings.ToLower(e.Name), e.Address())
	}
	pairs = append(pairs, "bootstrap", p.Bootstrap())
	if at := p.HTTP(); at != "" {
		pairs = append(pairs, "http", "http://"+at)
	}
	if url := p.TierURL(); url != "" {
		pairs = append(pairs, "tier", url)
	}
	pairs = append(pairs, "data", filepath.Dir(p.conf.String("metadata.log.dir")), "node", fmt.Sprint(p.broker.ID()),
		"cluster", p.runner.Image().ClusterID(), "took", time.Since(p.started).Round(time.Millisecond).String())
	daemon.WriteReady(w, pairs...)
}

// Close stops cleanly: logs closed, marker written, within what ctx leaves.
func (p *Process) Close(ctx context.Context) error {
	var errs []error
	if p.pages != nil {
		errs = append(errs, p.pages.Close())
	}
	errs = append(errs, p.broker.Close(ctx))
	p.runner.Close()
	errs = append(errs, p.journal.Close())
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	err := errors.Join(errs...)
	if err == nil {
		p.Log().Info("stopped cleanly")
	} else {
		p.Log().Error("stopped, not cleanly: logs are checked at the next start", "err", err)
	}
	p.logs.Close(2 * time.Second)
	return err
}

// abandon takes down what a failed start has built.
func (p *Process) abandon() {
	if p.broker != nil {
		p.broker.Close(context.Background())
	}
	if p.runner != nil {
		p.runner.Close()
	}
	if p.journal != nil {
		p.journal.Close()
	}
	if p.store != nil {
		p.store.Close()
	}
	if p.logs != nil {
		p.logs.Close(time.Second)
	}
}

// serveHTTP opens the pages, unless http.listener is empty.
func (p *Process) serveHTTP() (err error) {
	addr := p.conf.String("http.listener")
	if addr == "" {
		return nil
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), p.broker)
	p.pages, err = daemon.Serve(addr, "Varve standalone", subject{p}, registry)
	return err
}
