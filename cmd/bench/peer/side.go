package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/bench/load"
	"varve/cmd/e2e/servers"
)

// broker is one of the two while it runs, whichever it is.
type broker struct {
	name    string
	addr    string
	dataDir string
	daemon  *servers.Daemon
	close   func() error
	started time.Duration // how long its last start took
	topics  int           // made so far; names are not used twice
}

// pair is Kafka and Varve, in this order.
type pair [2]*broker

// quick is for brokers whose topics come and go: what is deleted must not be
// on the disk when the next round is measured.
var quick = map[string]string{"log.segment.delete.delay.ms": "0"}

// settling makes segments move to the tier and go from the disk as soon as they may: as
// Kafka is told by its own keys where it has a tier.
var settling = map[string]string{
	"remote.log.manager.task.interval.ms": "1000",
	"log.retention.check.interval.ms":     "1000",
	"tier.local.grace.ms":                 "0",
}

func startKafka(ctx context.Context, tiered bool) (*broker, error) {
	properties := with(quick, map[string]string{"socket.listen.backlog.size": "4096"}) // its own backlog resets a crowd
	begin := time.Now()
	k, err := servers.StartKafka(ctx, servers.KafkaOptions{Recommended: true, Tiered: tiered, Properties: properties})
	if err != nil {
		return nil, err
	}
	return &broker{name: "Kafka", addr: k.Addr, dataDir: k.DataDir, daemon: k.Daemon, close: k.Close, started: time.Since(begin)}, nil
}

// startVarve starts a standalone one; an empty tier is a folder.
func startVarve(ctx context.Context, s settings, tier string) (*broker, error) {
	begin := time.Now()
	v, err := servers.StartVarve(ctx, servers.VarveOptions{Binary: s.varve, Tier: tier, Properties: with(quick, settling)})
	if err != nil {
		return nil, err
	}
	return &broker{name: "Varve", addr: v.Addr, dataDir: filepath.Join(v.DataDir, "log"), daemon: v.Daemon, close: v.Close, started: time.Since(begin)}, nil
}

func startPair(ctx context.Context, s settings) (pair, error) {
	kafka, err := startKafka(ctx, false)
	if err != nil {
		return pair{}, err
	}
	varve, err := startVarve(ctx, s, "")
	if err != nil {
		return pair{}, errors.Join(err, kafka.close())
	}
	return pair{kafka, varve}, nil
}

func (p pair) close() error { return errors.Join(p[0].close(), p[1].close()) }

// restart starts a broker that was stopped or killed, and times it.
func (b *broker) restart(ctx context.Context) error {
	begin := time.Now()
	err := b.daemon.Start(ctx)
	b.started = time.Since(begin)
	return err
}

// admin calls do with a client for administration.
func (b *broker) admin(do func(*kadm.Client) error) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		return err
	}
	defer c.Close()
	return do(kadm.NewClient(c))
}

// topic makes a topic and waits for its leaders.
func (b *broker) topic(ctx context.Context, partitions int, config map[string]string) (load.Target, error) {
	b.topics++
	t := load.Target{Addr: b.addr, Topic: fmt.Sprintf("bench-%d", b.topics), Partitions: partitions, PIDs: []int{b.daemon.PID()}}
	err := b.admin(func(c *kadm.Client) error {
		_, err := c.CreateTopic(ctx, int32(partitions), 1, pointers(config), t.Topic)
		return err
	})
	if err != nil {
		return t, fmt.Errorf("making %s with %d partitions on %s: %w", t.Topic, partitions, b.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return t, t.AwaitLeaders(ctx)
}

// forget deletes a topic and waits for the disk to be quiet.
func (b *broker) forget(ctx context.Context, t load.Target) error {
	err := b.admin(func(c *kadm.Client) error {
		_, err := c.DeleteTopic(ctx, t.Topic)
		return err
	})
	syscall.Sync()
	return err
}

// set changes the configuration of a topic.
func (b *broker) set(ctx context.Context, t load.Target, config map[string]string) error {
	var changes []kadm.AlterConfig
	for name, value := range pointers(config) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	return b.admin(func(c *kadm.Client) error {
		answers, err := c.AlterTopicConfigs(ctx, changes, t.Topic)
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
		return err
	})
}

func pointers(m map[string]string) map[string]*string {
	p := make(map[string]*string, len(m))
	for k, v := range m {
		p[k] = &v
	}
	return p
}
