package standalone

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// file writes a server.properties of these lines.
func file(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// configured is what options come to; nothing is started.
func configured(t *testing.T, o Options) *Process {
	t.Helper()
	p := &Process{}
	o.Stderr = io.Discard
	if err := p.configure(o); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestADefineStandsOverTheFlagOverTheFile(t *testing.T) {
	name := file(t, "num.partitions=3", "node.id=7", "tier.url=file:///from/file", "log.dirs=/from/file")
	data := t.TempDir()
	p := configured(t, Options{ConfFile: name, Defines: []string{"num.partitions=5"}, DataDir: data, Tier: "file:///from/flag"})
	for key, want := range map[string]string{"tier.url": "file:///from/flag"} {
		if got := p.conf.String(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if got := p.conf.Int("num.partitions"); got != 5 {
		t.Errorf("num.partitions is %d, want 5 of -D", got)
	}
	if got := p.conf.Int("node.id"); got != 7 {
		t.Errorf("node.id is %d, want 7 of the file", got)
	}
	if got := p.conf.List("log.dirs"); len(got) != 1 || got[0] != filepath.Join(data, "log") {
		t.Errorf("log.dirs is %v, want the one of -data-dir", got)
	}
}

func TestTheFileKeepsItsPlacesWithoutAFlag(t *testing.T) {
	p := configured(t, Options{ConfFile: file(t, "log.dirs=/from/file", "tier.url=file:///from/file")})
	if got := p.conf.List("log.dirs"); len(got) != 1 || got[0] != "/from/file" {
		t.Errorf("log.dirs is %v", got)
	}
	if got := p.conf.String("tier.url"); got != "file:///from/file" {
		t.Errorf("tier.url is %q", got)
	}
}

func TestABadFileIsToldWithAllItsFaults(t *testing.T) {
	name := file(t, "num.partitions=none", "log.retention.ms=later")
	_, err := Start(t.Context(), Options{ConfFile: name, Defines: []string{"min.insync.replicas=0"}, DataDir: t.TempDir(), Stderr: io.Discard})
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range []string{"num.partitions", "log.retention.ms", "min.insync.replicas", name + ":1", name + ":2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s in:\n%v", want, err)
		}
	}
}

func TestWithoutATierNothingIsTiered(t *testing.T) {
	p := start(t, Options{DataDir: t.TempDir(), Tier: "none", Quiet: true})
	defer stop(t, p)
	if p.TierURL() != "" {
		t.Errorf("a tier at %q", p.TierURL())
	}
	var ready bytes.Buffer
	p.WriteReady(&ready)
	if strings.Contains(ready.String(), "tier=") || !strings.HasPrefix(ready.String(), "ready plaintext=127.0.0.1:") {
		t.Errorf("ready line: %q", ready.String())
	}
}

// admin asks a running process as operators do.
func admin(t *testing.T, p *Process) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(p.Bootstrap()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

func TestARestartKeepsTopicsRecordsAndTheClustersID(t *testing.T) {
	o := Options{DataDir: t.TempDir(), Quiet: true}
	p := start(t, o)
	cluster := p.runner.Image().ClusterID()
	made, err := admin(t, p).CreateTopic(t.Context(), 2, 1, nil, "orders")
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(p.Bootstrap()), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), kgo.StringRecord("one"), kgo.StringRecord("two")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	stop(t, p)

	p = start(t, o)
	defer stop(t, p)
	if got := p.runner.Image().ClusterID(); got != cluster {
		t.Errorf("cluster %q, was %q", got, cluster)
	}
	topics, err := admin(t, p).ListTopics(t.Context(), "orders")
	if err != nil || topics["orders"].ID != made.ID || len(topics["orders"].Partitions) != 2 {
		t.Errorf("topic: %+v (%v), was %v", topics["orders"], err, made.ID)
	}
	ends, err := admin(t, p).ListEndOffsets(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	records := int64(0)
	ends.Each(func(o kadm.ListedOffset) { records += o.Offset })
	if records != 2 {
		t.Errorf("%d records, want 2", records)
	}
}

func TestPagesOfARunningBroker(t *testing.T) {
	p := start(t, Options{DataDir: t.TempDir(), Quiet: true})
	defer stop(t, p)
	if _, err := admin(t, p).CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/": "orders", "/healthz": "ok", "/metrics": "varve_partitions 1", "/jmx": "ReplicaManager",
		"/conf": "num.partitions", "/logLevel?log=kafka.server&level=DEBUG": "DEBUG"} {
		resp, err := http.Get("http://" + p.HTTP() + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s without %q:\n%s", path, resp.Status, want, text)
		}
	}
	if _, err := (subject{p}).Level("kafka", "LOUD"); err == nil {
		t.Error("level LOUD was taken")
	}
}

func TestForDevelopmentTopicsAreMadeOnDemandInATemporaryFolder(t *testing.T) {
	o := Options{Defines: []string{"num.partitions=3"}}
	o.forDevelopment("/some/folder")
	p := configured(t, o)
	if !p.conf.Bool("auto.create.topics.enable") || p.conf.Int("num.partitions") != 3 || p.conf.Int("group.initial.rebalance.delay.ms") != 0 {
		t.Error("the settings of -dev, with -D over them, are not in force")
	}
	if o.DataDir != "/some/folder" || o.Listener != "127.0.0.1:0" || o.HTTP != "127.0.0.1:0" {
		t.Errorf("%+v", o)
	}
}

func TestWhatDevSaysIsOneLineOfJSON(t *testing.T) {
	p := start(t, Options{DataDir: t.TempDir(), Quiet: true})
	defer stop(t, p)
	var line bytes.Buffer
	p.writeDev(&line)
	var said struct{ Bootstrap, HTTP, Tier string }
	if err := json.Unmarshal(line.Bytes(), &said); err != nil || bytes.Count(line.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("%q: %v", line.String(), err)
	}
	if said.Bootstrap != p.Bootstrap() || said.HTTP != p.HTTP() || said.Tier != p.TierURL() {
		t.Errorf("%+v", said)
	}
}

func TestAPageThatCannotBeServedStopsTheStart(t *testing.T) {
	p := start(t, Options{DataDir: t.TempDir(), Quiet: true})
	defer stop(t, p)
	dir := t.TempDir()
	if _, err := Start(t.Context(), Options{DataDir: dir, Listener: "127.0.0.1:0", HTTP: p.HTTP(), Quiet: true, Stderr: io.Discard}); err == nil {
		t.Fatal("it started on a port that is taken")
	}
	stop(t, start(t, Options{DataDir: dir, Quiet: true})) // its locks are free again
}

func TestADataFolderWithACommaIsRefused(t *testing.T) {
	err := new(Process).configure(Options{DataDir: filepath.Join(t.TempDir(), "logs, and more"), Stderr: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "has a comma") {
		t.Errorf("configure says %v, want a word about the comma", err)
	}
}
