package servers

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Main classes of Kafka's tools, named as their scripts are.
const (
	KafkaTopics            = "org.apache.kafka.tools.TopicCommand"
	KafkaConfigs           = "kafka.admin.ConfigCommand"
	KafkaGetOffsets        = "org.apache.kafka.tools.GetOffsetShell"
	KafkaConsoleProducer   = "org.apache.kafka.tools.ConsoleProducer"
	KafkaConsoleConsumer   = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	KafkaConsumerGroups    = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	KafkaDeleteRecords     = "org.apache.kafka.tools.DeleteRecordsCommand"
	KafkaProducerPerfTest  = "org.apache.kafka.tools.ProducerPerformance"
	KafkaConsumerPerfTest  = "org.apache.kafka.tools.ConsumerPerformance"
	KafkaDumpLog           = "org.apache.kafka.tools.DumpLogSegments"
	KafkaBrokerAPIVersions = "org.apache.kafka.tools.BrokerApiVersionsCommand"

	KafkaVerifiableProducer = "org.apache.kafka.tools.VerifiableProducer"
	KafkaVerifiableConsumer = "org.apache.kafka.tools.VerifiableConsumer"

	kafkaClass   = "kafka.Kafka"
	kafkaStorage = "kafka.tools.StorageTool"
)

// KafkaOptions chooses what StartKafka starts.
type KafkaOptions struct {
	Dir        string            // where it lives; default a temporary folder that goes with it
	Properties map[string]string // further properties of server.properties
	// Recommended gives the broker the JVM flags that Kafka recommends, with a
	// heap of 1 GiB: a fair peer for measurements. Else it takes about 400 MB.
	Recommended bool
	Heap        string // such as "512m": another heap than the flags' own
	// Tiered switches on tiered storage with LocalTieredStorage, which keeps
	// segments in Dir/tier. Topics want remote.storage.enable=true.
	Tiered bool
}

// Kafka is one node that is broker and controller (KRaft). Its daemon may be
// killed, paused and started again; address and data stay.
type Kafka struct {
	Addr    string // HOST:PORT for clients: the bootstrap server
	Dir     string
	DataDir string // log.dirs
	*Daemon
	home home
}

// recommendedJVM is what Kafka's own documentation and start script use.
var recommendedJVM = []string{
	"-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
	"-XX:+ExplicitGCInvokesConcurrent",
}

func (o KafkaOptions) jvm() []string {
	if o.Recommended {
		heap := newest(o.Heap, []string{"1g"})
		return append([]string{"-Xms" + heap, "-Xmx" + heap}, recommendedJVM...)
	}
	return append(smallJVM[1:len(smallJVM):len(smallJVM)], "-Xmx"+newest(o.Heap, []string{"384m"}))
}

// StartKafka starts a Kafka and waits until it serves.
func StartKafka(ctx context.Context, o KafkaOptions) (*Kafka, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	k, err := newKafka(ctx, o)
	if err == nil {
		if err = k.Start(ctx); err != nil {
			k.home.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("kafka %s: %w", KafkaVersion, err)
	}
	return k, nil
}

// newKafka configures the broker and formats its log folder where that is new.
func newKafka(ctx context.Context, o KafkaOptions) (_ *Kafka, err error) {
	jars, err := kafkaJars().fetch(ctx)
	if err != nil {
		return nil, err
	}
	h, err := newHome("kafka", o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	addrs, err := freeAddrs(2)
	if err != nil {
		return nil, err
	}
	k := &Kafka{Addr: addrs[0], Dir: h.dir, DataDir: filepath.Join(h.dir, "data"), home: h}
	properties := with(kafkaDefaults, k.places(addrs[1]))
	if o.Tiered {
		jar, err := kafkaStoreJar().fetch(ctx)
		if err != nil {
			return nil, err
		}
		properties = with(properties, tieredProperties(jar, filepath.Join(h.dir, "tier")))
	}
	if err := k.configure(with(properties, o.Properties)); err != nil {
		return nil, err
	}
	options := append(o.jvm(), "-Dlog4j2.configurationFile="+filepath.Join(h.dir, "log4j2.properties"))
	k.Daemon = &Daemon{
		Name:  "kafka",
		Dir:   h.dir,
		argv:  program{jars, options, kafkaClass}.argv(filepath.Join(h.dir, "server.properties")),
		ready: func(context.Context) error { return k.logged("Kafka Server started") },
	}
	return k, k.format(ctx)
}

// kafkaDefaults lets one node hold the internal topics.
var kafkaDefaults = map[string]string{
	"process.roles":                                    "broker,controller",
	"node.id":                                          "1",
	"controller.listener.names":                        "CONTROLLER",
	"listener.security.protocol.map":                   "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
	"offsets.topic.replication.factor":                 "1",
	"offsets.topic.num.partitions":                     "4",
	"transaction.state.log.replication.factor":         "1",
	"transaction.state.log.min.isr":                    "1",
	"transaction.state.log.num.partitions":             "4",
	"share.coordinator.state.topic.replication.factor": "1",
	"share.coordinator.state.topic.min.isr":            "1",
	"group.initial.rebalance.delay.ms":                 "0",
}

func (k *Kafka) places(controller string) map[string]string {
	return map[string]string{
		"controller.quorum.voters": "1@" + controller,
		"listeners":                "PLAINTEXT://" + k.Addr + ",CONTROLLER://" + controller,
		"advertised.listeners":     "PLAINTEXT://" + k.Addr,
		"log.dirs":                 k.DataDir,
	}
}

// tieredProperties is KIP-405 with Kafka's own store for tests: plain files.
func tieredProperties(storeJar, dir string) map[string]string {
	return map[string]string{
		"remote.log.storage.system.enable":                         "true",
		"remote.log.storage.manager.class.name":                    "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
		"remote.log.storage.manager.class.path":                    storeJar,
		"remote.log.metadata.manager.listener.name":                "PLAINTEXT",
		"rsm.config.dir":                                           dir,
		"rlmm.config.remote.log.metadata.topic.replication.factor": "1",
		"rlmm.config.remote.log.metadata.topic.num.partitions":     "5",
		"log.retention.check.interval.ms":                          "1000",
		"remote.log.manager.task.interval.ms":                      "1000",
	}
}

func (k *Kafka) configure(properties map[string]string) error {
	var text strings.Builder
	for _, name := range sortedKeys(properties) {
		fmt.Fprintf(&text, "%s=%s\n", name, properties[name])
	}
	return errors.Join(
		os.WriteFile(filepath.Join(k.Dir, "server.properties"), []byte(text.String()), 0o644),
		os.WriteFile(filepath.Join(k.Dir, "log4j2.properties"), []byte(log4j2ToConsole("info")), 0o644),
	)
}

// format prepares an empty log folder, unless a chosen one is prepared already.
func (k *Kafka) format(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(k.DataDir, "meta.properties")); err == nil {
		return nil
	}
	var id [16]byte
	rand.Read(id[:])
	id[0] = 1 // a cluster id that began with '-' would be taken for a flag
	_, err := KafkaTool(ctx, kafkaStorage, "format",
		"-t", base64.RawURLEncoding.EncodeToString(id[:]), "-c", filepath.Join(k.Dir, "server.properties"))
	return err
}

func log4j2ToConsole(level string) string {
	return "rootLogger.level = " + level + `
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
`
}

// KafkaCommand prepares a run of one of Kafka's tools, so that its streams can
// be set. It works against any bootstrap server and ends when ctx does.
func KafkaCommand(ctx context.Context, class string, args ...string) (*exec.Cmd, error) {
	jars, err := kafkaJars().fetch(ctx)
	if err != nil {
		return nil, err
	}
	logging, err := toolLogging()
	if err != nil {
		return nil, err
	}
	options := append(smallJVM[:len(smallJVM):len(smallJVM)], "-Dlog4j2.configurationFile="+logging)
	return program{jars, options, class}.command(ctx, args...), nil
}

// KafkaTool runs one of Kafka's tools to its end.
func KafkaTool(ctx context.Context, class string, args ...string) (Result, error) {
	cmd, err := KafkaCommand(ctx, class, args...)
	if err != nil {
		return Result{Code: -1}, err
	}
	return finish(cmd, class[strings.LastIndexByte(class, '.')+1:], args)
}

// toolLogging returns the log configuration of tools, which is the one of
// Kafka's scripts: warnings, to stderr.
func toolLogging() (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "tools-log4j2.properties")
	want := log4j2ToConsole("warn")
	if have, err := os.ReadFile(path); err == nil && string(have) == want {
		return path, nil
	}
	tmp, err := os.CreateTemp(dir, "tools-log4j2-")
	if err != nil {
		return "", err
	}
	_, err = tmp.WriteString(want)
	return path, errors.Join(err, tmp.Close(), os.Rename(tmp.Name(), path))
}

// Close ends the broker and removes its files, unless the caller chose where
// they are.
func (k *Kafka) Close() error {
	k.Kill()
	return k.home.Close()
}
