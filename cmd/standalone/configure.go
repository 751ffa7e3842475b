package standalone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"varve/conf"
	"varve/conf/site"
	"varve/log4j"
	"varve/tier"
	"varve/tier/hdfs"
	"varve/tier/local"
)

// configure joins file, environment and flags, and begins to log.
func (p *Process) configure(o Options) error {
	data, err := filepath.Abs(or(o.DataDir, "varve-data"))
	if err != nil {
		return fmt.Errorf("data folder %s: %w", o.DataDir, err)
	}
	base := conf.FromProperties("shipped server.properties", []byte(conf.ServerProperties))
	if o.ConfFile != "" {
		base = conf.FromFile(o.ConfFile)
	}
	probe, _ := conf.Load(base, conf.FromEnviron(os.Environ()), conf.FromDefines(o.Defines))
	if strings.Contains(data, ",") {
		return fmt.Errorf("the data folder %s has a comma in its name, at which log.dirs is cut, as Kafka's is: name another folder", data)
	}
	p.conf, err = conf.Load(base, conf.FromEnviron(os.Environ()), conf.FromDefines(append(flags(o, data, probe), o.Defines...)))
	if err != nil {
		return err
	}
	for _, f := range p.conf.Faults {
		if f.Severity == conf.Warning {
			notice(o, f.String())
		}
	}
	if err := p.openLog(o, data); err != nil {
		return err
	}
	for _, f := range p.conf.Faults {
		if f.Severity == conf.Note {
			p.Log().Info("configuration: " + f.String())
		}
	}
	return nil
}

func notice(o Options, line string) {
	if o.Notice != nil {
		o.Notice(line)
	}
}

// flags are what the command line's own flags set, and where things lie by default in
// the data folder. Keys that a file or -D sets keep their places.
func flags(o Options, data string, set *conf.Config) []string {
	var out []string
	unset := func(keys ...string) bool {
		for _, k := range keys {
			if set.Set(k) {
				return false
			}
		}
		return true
	}
	if o.DataDir != "" || unset("log.dirs", "log.dir") {
		out = append(out, "log.dirs="+filepath.Join(data, "log"))
	}
	if o.DataDir != "" || unset("metadata.log.dir") {
		out = append(out, "metadata.log.dir="+filepath.Join(data, "metadata"))
	}
	switch {
	case o.Tier == "none":
		out = append(out, "tier.url=")
	case o.Tier != "":
		out = append(out, "tier.url="+o.Tier)
	case unset("tier.url"):
		out = append(out, "tier.url=file://"+filepath.Join(data, "tier"))
	}
	if unset("offsets.topic.replication.factor") { // Kafka's default of 3 is for clusters
		out = append(out, "offsets.topic.replication.factor=1")
	}
	if o.Listener != "" {
		listener := o.Listener
		if !strings.Contains(listener, "://") {
			listener = "PLAINTEXT://" + listener
		}
		out = append(out, "listeners="+listener)
	}
	if o.HTTP != "" {
		out = append(out, "http.listener="+o.HTTP)
	}
	if set.Int(offsetsReplication) != 1 { // there is one broker
		out = append(out, offsetsReplication+"=1")
		if set.Set(offsetsReplication) {
			notice(o, offsetsReplication+" is taken as 1: standalone is one broker")
		}
	}
	return out
}

const offsetsReplication = "offsets.topic.replication.factor"

// openLog begins to log: by VARVE_LOG4J or log4j.properties beside the conf file, else
// by what ships.
func (p *Process) openLog(o Options, data string) error {
	stderr := o.Stderr
	if stderr == nil {
		stderr = os.Stderr
	}
	p.logs = log4j.New(stderr, stderr)
	logs := or(os.Getenv("VARVE_LOG_DIR"), filepath.Join(data, "logs"))
	system := map[string]string{"varve.logs.dir": logs, "varve.root.logger": "INFO, console"}
	if o.Quiet {
		system["varve.root.logger"] = "WARN, console"
	}
	file := os.Getenv("VARVE_LOG4J")
	if beside := filepath.Join(filepath.Dir(o.ConfFile), "log4j.properties"); file == "" && o.ConfFile != "" {
		if _, err := os.Stat(beside); err == nil {
			file = beside
		}
	}
	if file == "" {
		p.logs.Configure([]byte(consoleLog), system)
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the log's configuration: %w", err)
	}
	p.logs.Configure(text, system)
	return nil
}

// consoleLog is the log of a process whose stderr somebody keeps.
const consoleLog = `log4j.rootLogger=${varve.root.logger}
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.Target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p %c{2}: %m%n
`

// openTier opens the store that tier.url names, under the cluster's folder.
func (p *Process) openTier(ctx context.Context) error {
	url := p.conf.String("tier.url")
	if url == "" {
		return nil
	}
	store, err := OpenStore(p.conf)
	if err != nil {
		return err
	}
	p.store = store
	if probe, ok := store.(interface{ Probe(context.Context) error }); ok {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		switch err := probe.Probe(ctx); {
		case err == nil:
		case p.needTier:
			return fmt.Errorf("tier.url is %s: %w", url, err)
		case errors.Is(err, tier.ErrUnavailable), errors.Is(err, tier.ErrFull), ctx.Err() != nil:
			p.Log().Warn("the tier does not answer now: segments are kept locally until it does", "tier", url, "err", err)
		default:
			return fmt.Errorf("tier.url is %s: %w", url, err)
		}
	}
	return nil
}

// probeTime is how long a start waits for a tier that may be away.
const probeTime = 5 * time.Second

// OpenStore opens the cluster's folder under tier.url.
func OpenStore(c *conf.Config) (tier.Store, error) {
	url, cluster := c.String("tier.url"), c.String("varve.cluster")
	if dir, ok := local.FromURL(url); ok {
		store, err := local.Open(filepath.Join(dir, cluster))
		if err != nil {
			return nil, fmt.Errorf("opening the tier %s: %w", url, err)
		}
		return store, nil
	}
	sites, err := site.Load(site.Dir(os.Getenv))
	if err != nil {
		return nil, fmt.Errorf("reading the site files of Hadoop: %w", err)
	}
	nameNodes, err := sites.NameNodes(url)
	if err != nil {
		return nil, fmt.Errorf("finding the NameNodes of the tier %s: %w", url, err)
	}
	readers, err := hdfs.ParseACL(c.List("tier.acl"))
	if err != nil {
		return nil, fmt.Errorf("tier.acl: %w", err)
	}
	store, err := hdfs.Open(strings.TrimSuffix(url, "/")+"/"+cluster, hdfs.Options{NameNodes: nameNodes, Readers: readers})
	if err != nil {
		return nil, fmt.Errorf("opening the tier %s: %w", url, err)
	}
	return store, nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
