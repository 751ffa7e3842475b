package standalone

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// Command is `varve standalone`.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "standalone",
		Usage: "run broker and controller in one process",
		UsageText: `varve standalone [-conf server.properties] [-D key=value]... [-data-dir DIR] [-listener HOST:PORT] [-http HOST:PORT] [-tier URL]
   varve standalone -dev`,
		Description: `Serves Kafka clients. Closed segments of topics with remote.storage.enable=true move to
the tier and are read back from it. When it serves, one line on stdout says where:

   ready plaintext=host:9092 bootstrap=host:9092 http=http://[::]:9808 tier=file:///… data=… node=1 cluster=… took=…

bootstrap is what clients are told: the host's name unless the listener names one. The log
goes to stderr, or where a log4j.properties beside the conf file says.

Examples:
   varve standalone                                   data in ./varve-data, port 9092 of every interface
   varve standalone -listener localhost:9092          for this machine alone
   varve standalone -listener 127.0.0.1:0             any free port
   varve standalone -tier hdfs://namenode:8020/varve  closed segments go to HDFS
   varve standalone -conf server.properties -D num.partitions=3
   varve standalone -dev                              for test suites: a temporary folder, one line of JSON

HADOOP_CONF_DIR and HADOOP_USER_NAME say how HDFS is reached and as whom. SIGTERM or Ctrl-C
stops it cleanly, a second one at once.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "conf", Usage: "server.properties `FILE`; a log4j.properties beside it is used"},
			&cli.StringSliceFlag{Name: "D", Usage: "set `KEY=VALUE` over the file; may be repeated"},
			&cli.StringFlag{Name: "data-dir", Usage: "`DIR` for logs, metadata and the default tier (default ./varve-data)"},
			&cli.StringFlag{Name: "listener", Usage: "`HOST:PORT` for clients; port 0 is a free one"},
			&cli.StringFlag{Name: "http", Usage: "`HOST:PORT` of the web pages; port 0 is a free one"},
			&cli.StringFlag{Name: "tier", Usage: "`URL` of the tier: file:///dir, hdfs://host:port/path, or none"},
			&cli.BoolFlag{Name: "dev", Usage: "temporary folder, free ports, topics made on demand, one line of JSON; all is gone at the end"},
		},
		Action: run,
	}
}

func run(c *cli.Context) error {
	if c.Args().Present() {
		return fmt.Errorf("standalone takes no argument: %q", c.Args().First())
	}
	o := Options{ConfFile: c.String("conf"), Defines: c.StringSlice("D"), DataDir: c.String("data-dir"), Listener: c.String("listener"),
		HTTP: c.String("http"), Tier: c.String("tier"), Stderr: os.Stderr,
		Notice: func(line string) { fmt.Fprintln(os.Stderr, "varve standalone: warning:", line) }}
	if c.Bool("dev") {
		dir, err := os.MkdirTemp("", "varve-dev-")
		if err != nil {
			return fmt.Errorf("making a temporary folder: %w", err)
		}
		defer os.RemoveAll(dir)
		o.forDevelopment(dir)
	}
	return o.serve(c.Bool("dev"))
}

// forDevelopment makes the options those of -dev, where they are not given.
func (o *Options) forDevelopment(dir string) {
	o.DataDir, o.Quiet = or(o.DataDir, dir), true
	o.Listener, o.HTTP = or(o.Listener, "127.0.0.1:0"), or(o.HTTP, "127.0.0.1:0")
	o.Defines = append([]string{"auto.create.topics.enable=true", "group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=4"}, o.Defines...)
}

// serve runs until a signal or a failure. A second signal ends the process at once.
func (o Options) serve(dev bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := Start(ctx, o)
	if err != nil {
		return err
	}
	if dev {
		p.writeDev(os.Stdout)
	} else {
		p.WriteReady(os.Stdout)
	}
	select {
	case <-ctx.Done():
		stop()
		p.Log().Info("stopping")
		err = nil
	case err = <-p.Failed():
		p.Log().Error("the broker cannot go on and stops", "err", err)
	}
	closing, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if cerr := p.Close(closing); err == nil {
		err = cerr
	}
	return err
}

// writeDev is WriteReady for test suites: one line of JSON.
func (p *Process) writeDev(w io.Writer) {
	json.NewEncoder(w).Encode(map[string]string{"bootstrap": p.Bootstrap(), "http": p.HTTP(), "tier": p.TierURL()})
}

// stopTime is how long a clean stop may take.
const stopTime = 30 * time.Second
