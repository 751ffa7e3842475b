// Package servers fetches and starts the real servers that Varve is tested
// against: ZooKeeper, HDFS (plain, and as a pair of NameNodes with failover
// controllers) and Kafka. All of them listen on loopback only, on free ports.
//
//	$VARVE_CACHE (default: the user's cache folder)/varve/
//	    jars/<name>-<version>-<first 12 of the pom's SHA-256>/   pom.xml, lib/*.jar: a whole set, renamed into place
//	    jars/<same>.lock                                         held while that set is fetched
//	<temporary folder>/varve-servers-<uid>/<kind>-<random>/      one running server: conf, data, logs
//	    owner                                                    pid of the program that started it
//	    <daemon>.pid, <daemon>.log
//
// The jars come by Maven, once. A server ends with the program that started it:
// its processes are a group of their own that is ended by pid, on Linux they
// also die with their parent, and what a killed program left behind is ended,
// by its pid files, when the next one starts a server.
//
// Each Start function takes a context that bounds the start, not the life. Each
// For function is its face for tests: it skips where Java is missing (in CI
// that is a failure), ends the server with the test, and shows the end of its
// logs where the test has failed.
package servers

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

// startTimeout bounds a start whose context has no deadline. The slowest, a
// pair of NameNodes on two busy cores, was seen to take half a minute.
const startTimeout = 3 * time.Minute

// Notice is where slow steps are said aloud: a fetch takes some seconds and the
// network. Replace its writer with io.Discard for silence.
var Notice = log.New(os.Stderr, "servers: ", 0)

// Versions that the tests run against, newest first. Those of Hadoop before 3.3
// were made for older Javas and are started on Java 17 with opened packages.
var (
	HDFSVersions      = []string{"3.5.0", "3.3.6", "3.1.4", "2.10.2"}
	ZooKeeperVersions = []string{"3.9.5", "3.5.10", "3.4.14"}
)

// KafkaVersion is the peer in benchmarks and the oracle for behaviour.
const KafkaVersion = "4.3.1"

func newest(version string, of []string) string {
	if version == "" {
		return of[0]
	}
	return version
}

// bounded gives ctx the usual deadline where it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, startTimeout)
}

// poll asks again until done says yes or the context ends; the error then
// carries the last reason. It asks often at first and every 20 ms at last, so
// that the time of a fast start is known within a twentieth.
func poll(ctx context.Context, what string, done func(context.Context) error) error {
	begin := time.Now()
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w", what, context.Cause(ctx), err)
		case <-time.After(min(max(time.Since(begin)/20, time.Millisecond), 20*time.Millisecond)):
		}
	}
}

// closeAll ends what a failed start has begun, newest first.
func closeAll(begun []io.Closer) {
	for i := len(begun) - 1; i >= 0; i-- {
		begun[i].Close()
	}
}
