package e2e

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"varve/cmd/e2e/servers"
)

// used is a broker that has run, stopped, and left a topic in its folder.
func used(t *testing.T, o servers.VarveOptions) *servers.Varve {
	t.Helper()
	v := servers.VarveFor(t, o)
	adm := admin(t, v)
	if _, err := adm.CreateTopic(t.Context(), 2, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	if err := v.Stop(); err != nil {
		t.Fatal(err)
	}
	return v
}

// Each is refused with an exit code and a message that says what is wrong, where.
func TestWhatItCannotStartOnIsNamed(t *testing.T) {
	write := func(t *testing.T, name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(t *testing.T, name string, change func([]byte) []byte) {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, string(change(b)))
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, data string)
		want  []string
	}{
		"another cluster's log dir": {func(t *testing.T, data string) {
			edit(t, data+"/log/meta.properties", func(b []byte) []byte { return bytes.Replace(b, []byte("cluster.id="), []byte("cluster.id=x"), 1) })
		}, []string{"meta.properties says cluster.id=x", "belongs to another"}},
		"another node's log dir": {func(t *testing.T, data string) {
			edit(t, data+"/log/meta.properties", func(b []byte) []byte {
				return bytes.Replace(b, []byte("node.id=1"), []byte("node.id=7"), 1)
			})
		}, []string{"node.id=7", "and this is 1"}},
		"damaged meta.properties": {func(t *testing.T, data string) {
			write(t, data+"/log/meta.properties", "\x00\x01\x02")
		}, []string{"meta.properties"}},
		"the metadata log is gone": {func(t *testing.T, data string) {
			if err := os.RemoveAll(data + "/metadata"); err != nil {
				t.Fatal(err)
			}
		}, []string{"metadata went back from edit"}},
		"the metadata log is damaged in its middle": {func(t *testing.T, data string) {
			edit(t, data+"/metadata/edits-00000000000000000001.log", func(b []byte) []byte { b[200] ^= 1; return b })
		}, []string{"edits-00000000000000000001.log", "at offset"}},
		"a folder where a file should be": {func(t *testing.T, data string) {
			name := data + "/log/recovery-point-offset-checkpoint"
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(name, 0o755); err != nil {
				t.Fatal(err)
			}
		}, []string{"recovery-point-offset-checkpoint", "is a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := used(t, servers.VarveOptions{})
			c.spoil(t, v.DataDir)
			refused(t, v, c.want...)
		})
	}
}

func TestDerivedFilesMayBeDamagedOrTorn(t *testing.T) {
	v := used(t, servers.VarveOptions{})
	summaries, err := filepath.Glob(v.DataDir + "/log/.varve_cleanshutdown-*")
	if err != nil || len(summaries) != 1 {
		t.Fatalf("summaries %v, %v", summaries, err)
	}
	for _, name := range summaries {
		if err := os.WriteFile(name, []byte("not a summary"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if topics, err := admin(t, v).ListTopics(t.Context()); err != nil || !topics.Has("orders") {
		t.Fatalf("topics %v, %v", topics.Names(), err)
	}
}

func TestWhatIsTakenIsNamed(t *testing.T) {
	for _, address := range []func(*servers.Varve) string{
		func(v *servers.Varve) string { return v.Addr }, func(v *servers.Varve) string { return v.HTTP }} {
		v := prepared(t, servers.VarveOptions{})
		ln, err := net.Listen("tcp", address(v))
		if err != nil {
			t.Fatal(err)
		}
		refused(t, v, address(v), "address already in use")
		ln.Close()
	}
	running := servers.VarveFor(t, servers.VarveOptions{})
	refused(t, prepared(t, servers.VarveOptions{Properties: map[string]string{"metadata.log.dir": running.DataDir + "/metadata"}}), "locked by another process")
	refused(t, prepared(t, servers.VarveOptions{Properties: map[string]string{"log.dirs": running.DataDir + "/log"}}), "is another cluster's")
}

func TestTiersThatCannotBeAreRefused(t *testing.T) {
	for url, want := range map[string]string{
		"s3a://bucket/x": "s3a", "viewfs://c/x": "viewfs", "hdfs:///x": "names no NameNode", "file://": "name a folder", "nonsense": "tier.url", "%%": "tier.url",
	} {
		refused(t, prepared(t, servers.VarveOptions{Tier: url}), want)
	}
}

func TestEveryFaultOfAConfigurationIsListed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(name, []byte("num.partitions=x\n\nlog.retention.ms=-5\nlisteners=FOO\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, prepared(t, servers.VarveOptions{Args: []string{"-conf", name, "-D", "node.id=y"}}),
		name+":1: num.partitions", name+":3: log.retention.ms", "node.id")
	refused(t, prepared(t, servers.VarveOptions{Args: []string{"-D", "nokey"}}), "nokey is not key=value")
}

// prepared is a broker that has not started.
func prepared(t *testing.T, o servers.VarveOptions) *servers.Varve {
	t.Helper()
	v, err := servers.NewVarve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// refused starts a broker that must not start: it ends by itself, with a message and
// without a stack.
func refused(t *testing.T, v *servers.Varve, want ...string) {
	t.Helper()
	err := v.Start(t.Context())
	if err == nil {
		t.Fatalf("it started, want a refusal with %q", want)
	}
	for _, w := range append(want, "exit status 1") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the refusal lacks %q:\n%v", w, err)
		}
	}
	if strings.Contains(err.Error(), "goroutine ") {
		t.Errorf("the refusal has a stack:\n%v", err)
	}
}
