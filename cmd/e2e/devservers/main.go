// Command devservers brings up a real server on loopback to try Varve against,
// prints how to reach it, and keeps it until Ctrl-C:
//
//	devservers hdfs [-version 3.5.0] [-datanodes 1] [-dir DIR]
//	devservers zookeeper [-version 3.9.5] [-dir DIR]
//	devservers kafka [-tiered] [-dir DIR]
//
// Without -dir the server's files go with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"varve/cmd/e2e/servers"
)

const usage = "usage: devservers hdfs|zookeeper|kafka [flags]; devservers hdfs -help says more"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "devservers:", err)
		os.Exit(1)
	}
}

// server is what all of them have in common.
type server interface {
	Close() error
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no server is named\n%s", usage)
	}
	flags := flag.NewFlagSet("devservers "+args[0], flag.ExitOnError)
	dir := flags.String("dir", "", "where it lives and stays; default a temporary folder that goes with it")
	var start func() (server, string, error)
	switch args[0] {
	case "hdfs":
		version := flags.String("version", servers.HDFSVersions[0], "one of "+strings.Join(servers.HDFSVersions, ", "))
		nodes := flags.Int("datanodes", 1, "DataNodes")
		start = func() (server, string, error) {
			return startHDFS(ctx, servers.HDFSOptions{Version: *version, DataNodes: *nodes, Dir: *dir})
		}
	case "zookeeper":
		version := flags.String("version", servers.ZooKeeperVersions[0], "one of "+strings.Join(servers.ZooKeeperVersions, ", "))
		start = func() (server, string, error) {
			return startZooKeeper(ctx, servers.ZooKeeperOptions{Version: *version, Dir: *dir})
		}
	case "kafka":
		tiered := flags.Bool("tiered", false, "with tiered storage in plain files")
		start = func() (server, string, error) {
			return startKafka(ctx, servers.KafkaOptions{Tiered: *tiered, Dir: *dir})
		}
	default:
		return fmt.Errorf("there is no server %q\n%s", args[0], usage)
	}
	flags.Parse(args[1:])
	fmt.Printf("starting %s…\n", args[0])
	s, how, err := start()
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted while starting %s", args[0])
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s\nCtrl-C ends it.\n", how)
	<-ctx.Done()
	fmt.Println("\nending it")
	return s.Close()
}

func startHDFS(ctx context.Context, o servers.HDFSOptions) (server, string, error) {
	h, err := servers.StartHDFS(ctx, o)
	if err != nil {
		return nil, "", err
	}
	how := fmt.Sprintf(`
  HDFS      %s
  WebHDFS   %s/?op=LISTSTATUS
  JMX       http://%s/jmx
  conf      %s
  logs      %s/*.log

for example: go run ./cmd/varve quickstart -tier %s/varve`, h.URL, h.WebURL, h.HTTP, h.Conf, h.Dir, h.URL)
	return h, how, nil
}

func startZooKeeper(ctx context.Context, o servers.ZooKeeperOptions) (server, string, error) {
	z, err := servers.StartZooKeeper(ctx, o)
	if err != nil {
		return nil, "", err
	}
	return z, fmt.Sprintf("\n  ZooKeeper  %s\n  log        %s\n", z.Addr, z.LogFile()), nil
}

func startKafka(ctx context.Context, o servers.KafkaOptions) (server, string, error) {
	k, err := servers.StartKafka(ctx, o)
	if err != nil {
		return nil, "", err
	}
	return k, fmt.Sprintf("\n  bootstrap  %s\n  data       %s\n  log        %s\n", k.Addr, k.DataDir, k.LogFile()), nil
}
