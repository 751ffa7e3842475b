// Package quickstart is `varve quickstart`: it takes a log file through the whole path
// and proves that every byte came back.
//
//	start a standalone broker ─► create a topic ─► produce the file, a record for each line
//	─► segments close and move to the tier, local copies go
//	─► consume everything through the broker        ┐ compared with
//	─► read it again from the tier, without broker  ┘ the file by SHA-256
package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"varve/cmd/human"
	"varve/cmd/standalone"
)

// Command is `varve quickstart`.
func Command() *cli.Command {
	return &cli.Command{
		Name:      "quickstart",
		Usage:     "take a log file through the broker and the tier and back, and compare",
		UsageText: "varve quickstart [-serve] [-tier URL] [-data-dir DIR] [FILE | -]",
		Description: `Starts a standalone broker, produces a log file to a topic, lets its segments move to the
tier and go from the local disk, reads everything back through the broker and once more
straight from the tier, and compares both with the file. Exit code 1 if anything differs.

Examples:
   varve quickstart                                  with a NameNode's log that ships with Varve
   varve quickstart /var/log/syslog                  with a file of yours
   zcat access.log.gz | varve quickstart -           with what comes on stdin
   varve quickstart -serve                           and go on serving
   varve quickstart -tier hdfs://127.0.0.1:8020/varve  with a real HDFS (see: make dev-hdfs)`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "serve", Usage: "go on serving until Ctrl-C"},
			&cli.StringFlag{Name: "tier", Usage: "`URL` of the tier (default: a folder beside the data)"},
			&cli.StringFlag{Name: "data-dir", Usage: "`DIR` that is kept (default: a temporary one, removed at the end)"},
			&cli.StringFlag{Name: "listener", Value: "127.0.0.1:0", Usage: "`HOST:PORT` for clients"},
			&cli.StringFlag{Name: "http", Value: "127.0.0.1:0", Usage: "`HOST:PORT` of the web pages"},
		},
		Action: run,
	}
}

func run(c *cli.Context) error {
	if c.NArg() > 1 {
		return fmt.Errorf("quickstart takes one file, not %d", c.NArg())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, temporary, err := folder(c.String("data-dir"))
	if err != nil {
		return err
	}
	if temporary {
		defer os.RemoveAll(dir)
	}
	input, err := open(c.Args().First())
	if err != nil {
		return err
	}
	defer input.Close()
	s := &story{out: os.Stdout, dir: dir, temporary: temporary, input: input, serve: c.Bool("serve"), patience: time.Minute,
		options: standalone.Options{DataDir: dir, Listener: c.String("listener"), HTTP: c.String("http"), Tier: c.String("tier"), NeedTier: true, Quiet: true, Stderr: os.Stderr}}
	err = s.tell(ctx)
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted before the end: nothing was compared")
	}
	return err
}

// folder is the data folder: the one given, or a new temporary one.
func folder(given string) (dir string, temporary bool, err error) {
	if given != "" {
		dir, err = filepath.Abs(given)
		return dir, false, err
	}
	dir, err = os.MkdirTemp("", "varve-quickstart-")
	return dir, true, err
}

// A story is one run.
type story struct {
	out       io.Writer
	dir       string
	temporary bool
	input     *input
	serve     bool
	patience  time.Duration // with a broker that gives nothing
	options   standalone.Options

	process *standalone.Process
	topic   string
	sent    tally
}

// tell runs the steps in order; the first that fails ends it.
func (s *story) tell(ctx context.Context) error {
	began := time.Now()
	if err := s.start(ctx); err != nil {
		return err
	}
	defer s.close()
	s.say("Varve %s: a broker at %s, its pages at http://%s", standalone.Version(), s.process.Bootstrap(), s.process.HTTP())
	s.say("  data   %s", s.dir)
	s.say("  tier   %s", s.process.TierURL())
	s.say("")
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"creating a topic", s.create},
		{"producing", s.produce},
		{"moving segments to the tier", s.offload},
		{"consuming through the broker", s.consume},
		{"reading the tier without the broker", s.scan},
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	s.say("")
	s.say("All %s lines (%s, SHA-256 %s…) came back both ways, byte for byte, in %s.",
		human.Count(s.sent.lines), human.Bytes(s.sent.bytes), s.sent.sum()[:12], time.Since(began).Round(10*time.Millisecond))
	if s.serve {
		return s.goOn(ctx)
	}
	if s.temporary {
		s.say("The data folder is removed now; -data-dir DIR keeps it, -serve goes on serving.")
	}
	return nil
}

// start starts a broker that does at once what others do in minutes.
func (s *story) start(ctx context.Context) (err error) {
	s.options.Defines = []string{"log.retention.check.interval.ms=1000", "remote.log.manager.task.interval.ms=200", "tier.local.grace.ms=0",
		"offsets.topic.num.partitions=4", "group.initial.rebalance.delay.ms=0"}
	s.process, err = standalone.Start(ctx, s.options)
	return err
}

// goOn serves until it is told to stop.
func (s *story) goOn(ctx context.Context) error {
	s.say("")
	s.say("Serving at %s until Ctrl-C. Try it:", s.process.Bootstrap())
	s.say("  kcat -b %s -t %s -C -o beginning -c 5", s.process.Bootstrap(), s.topic)
	s.say("  echo hello | kcat -b %s -t %s -P", s.process.Bootstrap(), s.topic)
	s.say("  and in a browser: http://%s", s.process.HTTP())
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.process.Failed():
		return err
	}
}

func (s *story) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.process.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "varve quickstart: stopping the broker:", err)
	}
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }
