package servers

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// debianPackages says what to install for a program that a test needs.
var debianPackages = map[string]string{
	"java": "default-jdk-headless",
	"mvn":  "maven",
	"kcat": "kcat",
}

// Need skips the test where one of the programs is missing and says what to do.
// In CI (CI=true, or VARVE_REQUIRE_SERVERS=1) it fails instead: there a skip
// would be a lie. A skip is also written to the file that $VARVE_SKIPS names,
// which make test shows at its end.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	var missing []string
	for _, p := range programs {
		bin := p
		if p == "java" {
			bin = javaBinary()
		}
		if _, err := exec.LookPath(bin); err != nil {
			missing = append(missing, p+" (Debian: apt-get install "+cmp.Or(debianPackages[p], p)+")")
		}
	}
	if len(missing) == 0 {
		return
	}
	what := "this test needs " + strings.Join(missing, " and ")
	if os.Getenv("CI") == "true" || os.Getenv("VARVE_REQUIRE_SERVERS") == "1" {
		t.Fatal(what)
	}
	noteSkip(t.Name() + ": " + what)
	t.Skip("SKIPPED: " + what)
}

// TestedVersions returns the newest and the oldest of a list of versions, or all
// of them where VARVE_VERSIONS=all asks for the slow run (make test-versions).
func TestedVersions(of []string) []string {
	if os.Getenv("VARVE_VERSIONS") == "all" || len(of) < 3 {
		return of
	}
	return []string{of[0], of[len(of)-1]}
}

// needJars is Need for tests of servers: Maven is needed only to fetch.
func needJars(t testing.TB, sets ...jarSet) {
	t.Helper()
	Need(t, "java")
	for _, s := range sets {
		if !s.fetched() {
			Need(t, "mvn")
		}
	}
}

func noteSkip(line string) {
	path := os.Getenv("VARVE_SKIPS")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		Notice.Printf("noting a skipped test: %v", err)
		return
	}
	defer f.Close()
	f.WriteString(line + "\n")
}

// ZooKeeperFor starts a ZooKeeper that ends with the test.
func ZooKeeperFor(t testing.TB, o ZooKeeperOptions) *ZooKeeper {
	t.Helper()
	needJars(t, zooKeeperJars(newest(o.Version, ZooKeeperVersions)))
	z, err := StartZooKeeper(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, z.Close, z.Daemon)
	return z
}

// HDFSFor starts an HDFS that ends with the test.
func HDFSFor(t testing.TB, o HDFSOptions) *HDFS {
	t.Helper()
	needJars(t, hadoopJars(newest(o.Version, HDFSVersions)))
	h, err := StartHDFS(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, h.Close, append([]*Daemon{h.NameNode.Daemon}, h.DataNodes...)...)
	return h
}

// HDFSPairFor starts a pair of NameNodes that ends with the test.
func HDFSPairFor(t testing.TB, o HDFSOptions, zk *ZooKeeper) *HDFSPair {
	t.Helper()
	needJars(t, hadoopJars(newest(o.Version, HDFSVersions)), zooKeeperJars(ZooKeeperVersions[0]))
	p, err := StartHDFSPair(t.Context(), o, zk)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, p.Close, p.daemons()...)
	return p
}

// KafkaFor starts a Kafka that ends with the test.
func KafkaFor(t testing.TB, o KafkaOptions) *Kafka {
	t.Helper()
	needJars(t, kafkaJars())
	if o.Tiered {
		needJars(t, kafkaStoreJar())
	}
	k, err := StartKafka(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, k.Close, k.Daemon)
	return k
}

// NeedKafkaTools is Need for tests that run Kafka's tools against something
// else.
func NeedKafkaTools(t testing.TB) {
	t.Helper()
	needJars(t, kafkaJars())
}

// endWith closes a server with its test, and shows what its daemons said last
// where the test has failed.
func endWith(t testing.TB, closeServer func() error, daemons ...*Daemon) {
	t.Cleanup(func() {
		if t.Failed() {
			for _, d := range daemons {
				t.Logf("--- the end of %s's log:\n%s", d.Name, d.Tail(30))
			}
		}
		if err := closeServer(); err != nil {
			t.Errorf("ending a server: %v", err)
		}
	})
}
