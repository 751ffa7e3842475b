package conf

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

// update rewrites docs/configuration.md: CONF_UPDATE=1 go test ./conf
var update = os.Getenv("CONF_UPDATE") != ""

func TestDocsAgreeWithTable(t *testing.T) {
	const path = "../docs/configuration.md"
	var want bytes.Buffer
	if err := WriteDocs(&want); err != nil {
		t.Fatal(err)
	}
	if update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what WriteDocs writes; run CONF_UPDATE=1 go test ./conf", path)
	}
}

func TestTableIsSound(t *testing.T) {
	for i := range Keys {
		k := &Keys[i]
		if i > 0 && Keys[i-1].Name == k.Name {
			t.Errorf("%s stands twice", k.Name)
		}
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s: doc %q is no sentence", k.Name, k.Doc)
		}
		if (k.Status == Used) != (k.Why == "") {
			t.Errorf("%s: status %d with reason %q", k.Name, k.Status, k.Why)
		}
		if !k.Null {
			if _, err := k.Parse(k.Default); err != nil && !(k.Check.Text == "non-empty string" && k.Default == "") {
				t.Errorf("default: %v", err)
			}
		}
		for _, s := range k.Synonyms {
			if other := exact(s.Name); other == nil || !other.forBroker() {
				t.Errorf("%s: synonym %s is no broker key", k.Name, s.Name)
			}
		}
		if k.Scope == Topic && k.Null != k.Internal {
			t.Errorf("%s: a topic config without default", k.Name)
		}
	}
}

func load(t *testing.T, text string, defines ...string) *Config {
	t.Helper()
	c, err := Load(FromProperties("server.properties", []byte(text)), FromDefines(defines))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLaterLayersWin(t *testing.T) {
	c, err := Load(
		FromDefines([]string{"num.partitions=4", "tier.url=hdfs://ns1/varve"}),
		FromProperties("server.properties", []byte("num.partitions=2\nlog.dirs=/a, /b\nmin.insync.replicas=2\n")),
		FromEnviron([]string{"VARVE_NUM_PARTITIONS=3", "VARVE_MIN_INSYNC_REPLICAS=1", "VARVE_CONF_DIR=/etc", "HOME=/root"}),
		FromDynamic(DynamicDefault, map[string]string{"log.retention.ms": "5"}),
	)
	if err != nil || len(c.Faults) != 0 {
		t.Fatalf("err %v, faults %v", err, c.Faults)
	}
	for _, want := range []string{
		"num.partitions 4 -D", "min.insync.replicas 1 environment VARVE_MIN_INSYNC_REPLICAS", "log.dirs /a,/b server.properties:2",
		"log.retention.ms 5 dynamic, all brokers", "log.roll.ms 604800000 default", "broker.rack  default",
	} {
		name, _, _ := strings.Cut(want, " ")
		if got := name + " " + Format(c.Value(name)) + " " + c.Origin(name).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := c.List("log.dirs"); len(got) != 2 || got[1] != "/b" {
		t.Errorf("log.dirs: got %q", got)
	}
}

func TestSynonymsGiveValues(t *testing.T) {
	for _, c := range []struct {
		text, key string
		want      int64
	}{
		{"", "log.retention.ms", 168 * hour},
		{"log.retention.hours=1", "log.retention.ms", hour},
		{"log.retention.hours=1\nlog.retention.minutes=2", "log.retention.ms", 2 * minute},
		{"log.retention.hours=-1", "log.retention.ms", -1},
		{"broker.id=7", "node.id", 7},
		{"log.roll.hours=2", "log.roll.ms", 2 * hour},
	} {
		if got := load(t, c.text).Long(c.key); got != c.want {
			t.Errorf("%q: %s is %d, want %d", c.text, c.key, got, c.want)
		}
	}
}

func TestBadFileIsAnsweredWithAllItsFaults(t *testing.T) {
	text := `# a bad one
node.id=1
num.partitons=3
num.partitions=many
segment.bytes=5
log.dirs=/a
log.dirs=/b,/b
broker.id=2
listeners=PLAINTEXT://:9092,SSL://:9093,EXTRA://:9094,PLAINTEXT://:99999
advertised.listeners=PLAINTEXT://0.0.0.0:9092
ssl.keystore.location=/x
num.io.threads=8
log.message.timestamp.difference.max.ms=5
tier.url=s3a://bucket/x
\u00zz=1
varve.cluster=
`
	c, err := Load(FromProperties("server.properties", []byte(text)), FromDefines([]string{"nonsense"}))
	var invalid *Invalid
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want *Invalid", err)
	}
	want := `configuration has 13 errors
  server.properties:4: num.partitions is wrong: Invalid value many for configuration num.partitions: Not a number of type INT
  server.properties:7: log.dirs names /b twice
  server.properties:8: broker.id is 2 and node.id is 1: they are one number
  server.properties:9: listeners has a listener EXTRA whose protocol listener.security.protocol.map does not say
  server.properties:9: listeners has "PLAINTEXT://:99999", whose port is not between 0 and 65535
  server.properties:9: listeners has SSL://:9093, which is SSL: this version has PLAINTEXT only
  server.properties:10: advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.
  server.properties:11: ssl.keystore.location is refused: this version has no TLS: use a PLAINTEXT listener and remove the ssl keys
  server.properties:13: log.message.timestamp.difference.max.ms is refused: use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms
  server.properties:14: tier.url is "s3a://bucket": only hdfs:// and file:// have the rename without overwrite that the tier rests on
  server.properties:15: invalid unicode literal
  server.properties:16: varve.cluster is wrong: Invalid value  for configuration varve.cluster: String must be non-empty
  -D: nonsense is not key=value`
	if got := err.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var rest []string
	for _, f := range c.Faults {
		rest = append(rest, f.String())
	}
	wantRest := `server.properties:3: num.partitons is not a known key and is ignored; did you mean num.partitions?
server.properties:5: segment.bytes is a topic config and is ignored; log.segment.bytes is its default for all topics
server.properties:7: log.dirs is set again; line 6 does not count
server.properties:12: num.io.threads has no effect: ` + noThreads
	if got := strings.Join(rest, "\n"); got != wantRest {
		t.Errorf("got\n%s\nwant\n%s", got, wantRest)
	}
}

func TestListenersLeaveTheControllersOut(t *testing.T) {
	c := load(t, `listeners=PLAINTEXT://:9092,CONTROLLER://:9093,v6://[::1]:0
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,V6:PLAINTEXT
advertised.listeners=PLAINTEXT://b1.example:9092,CONTROLLER://b1.example:9093,V6://[::1]:9095
`)
	if got := c.Listeners(); len(got) != 2 || got[0].Address() != ":9092" || got[1].String() != "V6://[::1]:0" {
		t.Errorf("listeners: got %v", got)
	}
	if got := c.Advertised(); len(got) != 2 || got[0].String() != "PLAINTEXT://b1.example:9092" || got[1].Host != "::1" {
		t.Errorf("advertised: got %v", got)
	}
	if got := load(t, "").Advertised(); len(got) != 1 || got[0].String() != "PLAINTEXT://:9092" {
		t.Errorf("advertised by default: got %v", got)
	}
}

func TestShippedFilesLoadWithoutAFault(t *testing.T) {
	c, err := Load(FromProperties("server.properties", ServerProperties))
	if err != nil || len(c.Faults) > 0 {
		t.Fatalf("err %v, faults %v", err, c.Faults)
	}
	// A commented line shows a key with its default.
	for i, line := range strings.Split(string(ServerProperties), "\n") {
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "#"), "=")
		if !ok || !strings.HasPrefix(line, "#") || strings.Contains(name, " ") {
			continue
		}
		k := exact(name)
		if k == nil {
			t.Errorf("line %d: %s is no key", i+1, name)
		} else if !k.Null && value != k.Default {
			t.Errorf("line %d: %s shows %q, default is %q", i+1, name, value, k.Default)
		}
	}
}

func TestKeysOfFamiliesAreKnown(t *testing.T) {
	for name, want := range map[string]string{
		"ssl.keystore.key": "ssl.*", "rsm.config.a.b": "rsm.config.*", "zookeeper.connect": "zookeeper.*",
		"listener.name.internal.sasl.enabled.mechanisms": "listener.name.*", "log.dirs": "log.dirs",
	} {
		if k := Lookup(name); k == nil || k.Name != want {
			t.Errorf("%s: got %v, want %s", name, k, want)
		}
	}
	if k := Lookup("nope"); k != nil {
		t.Errorf("nope: got %s", k.Name)
	}
}

func TestDoublesAreWrittenAsJavaWritesThem(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{{0.5, "0.5"}, {1, "1.0"}, {0, "0.0"}, {1e7, "1.0E7"}, {9999999, "9999999.0"}, {0.001, "0.001"}, {0.0001, "1.0E-4"}, {1.7976931348623157e308, "1.7976931348623157E308"}} {
		if got := formatDouble(c.f); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("listeners=A://[::1]:0,B\nlog.dirs=,\nnode.id=x\ntier.url=%%", "a=b")
	f.Fuzz(func(t *testing.T, text, define string) {
		c, err := Load(FromProperties("f", []byte(text)), FromDefines([]string{define}))
		var invalid *Invalid
		if err != nil && !errors.As(err, &invalid) {
			t.Fatalf("error of type %T", err)
		}
		if n := len(c.Effective()); n < 200 {
			t.Fatalf("%d effective keys", n)
		}
		c.Topic(nil)
		c.BrokerEntries()
	})
}

// How long does a start spend on its configuration? (5 ms at most for the
// largest real file, some 250 lines of them set.)
func BenchmarkLoad(b *testing.B) {
	var text bytes.Buffer
	for i := range Keys {
		if k := &Keys[i]; k.forBroker() && k.Status != Refused && !k.Null {
			text.WriteString("# comment\n" + k.Name + "=" + k.Default + "\n")
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(FromProperties("server.properties", text.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

// Is a topic's effective config cheap enough to compute for 10 000 topics at a start?
func BenchmarkTopic(b *testing.B) {
	c, _ := Load()
	own := map[string]string{"segment.bytes": "1048576", "retention.ms": "1000"}
	b.ReportAllocs()
	for b.Loop() {
		if c.Topic(own).SegmentBytes != 1048576 {
			b.Fatal("wrong")
		}
	}
}
