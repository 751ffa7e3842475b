package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ZooKeeperOptions chooses what StartZooKeeper starts.
type ZooKeeperOptions struct {
	Version string   // one of ZooKeeperVersions; default the newest
	Dir     string   // where it lives; default a temporary folder that goes with it
	Config  []string // further lines of zoo.cfg
}

// ZooKeeper is one server on its own. Its daemon may be killed, paused and
// started again; the data stays.
type ZooKeeper struct {
	Addr string // HOST:PORT for clients
	Dir  string
	*Daemon
	home home
}

// StartZooKeeper starts a ZooKeeper and waits until it serves.
func StartZooKeeper(ctx context.Context, o ZooKeeperOptions) (*ZooKeeper, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	z, err := newZooKeeper(ctx, o)
	if err == nil {
		if err = z.Start(ctx); err != nil {
			z.home.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("zookeeper %s: %w", newest(o.Version, ZooKeeperVersions), err)
	}
	return z, nil
}

func newZooKeeper(ctx context.Context, o ZooKeeperOptions) (*ZooKeeper, error) {
	classPath, err := zooKeeperJars(newest(o.Version, ZooKeeperVersions)).fetch(ctx)
	if err != nil {
		return nil, err
	}
	h, err := newHome("zookeeper", o.Dir)
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	z := &ZooKeeper{Addr: loopback(port), Dir: h.dir, home: h}
	if err := z.configure(port, o.Config); err != nil {
		return nil, err
	}
	java := program{
		classPath: h.dir + string(os.PathListSeparator) + classPath,
		options:   smallJVM,
		class:     "org.apache.zookeeper.server.quorum.QuorumPeerMain",
	}
	z.Daemon = &Daemon{
		Name: "zookeeper",
		Dir:  h.dir,
		argv: java.argv(filepath.Join(h.dir, "zoo.cfg")),
		ready: func(ctx context.Context) error {
			answer, err := z.Ask(ctx, "srvr") // ruok is answered too early
			if err == nil && !strings.Contains(answer, "Mode: ") {
				err = fmt.Errorf("srvr is answered with %q", answer)
			}
			return err
		},
	}
	return z, nil
}

// configure writes zoo.cfg and a log configuration for either logger that
// ZooKeeper has had; without one logback writes at DEBUG.
func (z *ZooKeeper) configure(port int, further []string) error {
	cfg := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n"+
		"admin.enableServer=false\n4lw.commands.whitelist=*\n", filepath.Join(z.Dir, "data"), port)
	for _, line := range further {
		cfg += line + "\n"
	}
	return errors.Join(
		os.WriteFile(filepath.Join(z.Dir, "zoo.cfg"), []byte(cfg), 0o644),
		os.WriteFile(filepath.Join(z.Dir, "logback.xml"), []byte(logbackAtWarn), 0o644),
		os.WriteFile(filepath.Join(z.Dir, "log4j.properties"), []byte(log4jToConsole("WARN")), 0o644),
	)
}

const logbackAtWarn = `<configuration>
<appender name="console" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%d %p %c: %m%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="console"/></root>
</configuration>
`

// log4jToConsole is a log4j 1.2 configuration that writes to stderr at a level,
// which -Dvarve.log.level=LEVEL overrides.
func log4jToConsole(level string) string {
	return "varve.log.level=" + level + `
log4j.rootLogger=${varve.log.level}, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p %c: %m%n
`
}

// Ask sends one of ZooKeeper's four letter words (ruok, mntr, cons, …) and
// returns the answer.
func (z *ZooKeeper) Ask(ctx context.Context, word string) (string, error) {
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "tcp", z.Addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// Close ends the server and removes its files, unless the caller chose where
// they are.
func (z *ZooKeeper) Close() error {
	z.Kill()
	return z.home.Close()
}
