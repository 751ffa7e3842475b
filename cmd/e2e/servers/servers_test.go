package servers

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// versions returns the newest, or all where VARVE_VERSIONS=all asks for the
// slow run (make test-versions).
func versions(of []string) []string {
	if os.Getenv("VARVE_VERSIONS") == "all" {
		return of
	}
	return of[:1]
}

func TestZooKeeperAnswersAndComesBackAfterAKill(t *testing.T) {
	for _, version := range versions(ZooKeeperVersions) {
		t.Run(version, func(t *testing.T) {
			z := ZooKeeperFor(t, ZooKeeperOptions{Version: version})
			answer, err := z.Ask(t.Context(), "srvr")
			if err != nil || !strings.Contains(answer, "Zookeeper version: "+version) {
				t.Fatalf("srvr: %q, %v; want version %s", answer, err, version)
			}
			z.Kill()
			if _, err := z.Ask(t.Context(), "ruok"); err == nil {
				t.Fatal("it still answers after a kill")
			}
			if err := z.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if answer, err := z.Ask(t.Context(), "ruok"); answer != "imok" {
				t.Fatalf("ruok after a restart: %q, %v", answer, err)
			}
		})
	}
}

func TestHDFSKeepsFilesOverARestart(t *testing.T) {
	for _, version := range versions(HDFSVersions) {
		t.Run(version, func(t *testing.T) {
			h := HDFSFor(t, HDFSOptions{Version: version})
			want := bytes.Repeat([]byte("varve "), 10_000)
			put(t, h.WebURL+"/one?op=CREATE&user.name="+userName(), want)
			if err := h.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := h.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := get(t, h.WebURL+"/one?op=OPEN&user.name="+userName()); !bytes.Equal(got, want) {
				t.Fatalf("read back %d bytes, want the %d written", len(got), len(want))
			}
			ls, err := h.Shell(t.Context(), "-ls", h.URL+"/one")
			if err != nil || !strings.Contains(ls.Stdout, "60000") {
				t.Fatalf("hadoop fs -ls: %+v, %v; want a file of 60000 bytes", ls, err)
			}
		})
	}
}

func TestHDFSSafeModeRefusesWrites(t *testing.T) {
	h := HDFSFor(t, HDFSOptions{DataNodes: 2})
	if err := h.SafeMode(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	r, err := h.Shell(t.Context(), "-mkdir", "/refused")
	if code, _ := ExitCode(err); code != 1 || !strings.Contains(r.Stderr, "Name node is in safe mode") {
		t.Fatalf("mkdir in safe mode: %+v, %v", r, err)
	}
	if err := h.SafeMode(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Shell(t.Context(), "-mkdir", "/allowed"); err != nil {
		t.Fatalf("mkdir after safe mode: %+v, %v", r, err)
	}
}

func TestPairFailsOverWhenTheActiveIsKilled(t *testing.T) {
	for _, version := range versions(HDFSVersions) {
		t.Run(version, func(t *testing.T) {
			p := HDFSPairFor(t, HDFSOptions{Version: version}, nil)
			active, err := p.Active(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			active.Kill()
			other := p.Other(active)
			err = poll(t.Context(), other.ID+" to be active", func(ctx context.Context) error {
				now, err := p.Active(ctx)
				if err == nil && now != other {
					t.Fatalf("%s, which was killed, is active", now.ID)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			state, err := p.HAAdmin(t.Context(), "-getServiceState", other.ID)
			if err != nil || strings.TrimSpace(state.Stdout) != "active" {
				t.Fatalf("haadmin -getServiceState %s: %+v, %v", other.ID, state, err)
			}
		})
	}
}

func TestKafkaMakesAndListsATopic(t *testing.T) {
	k := KafkaFor(t, KafkaOptions{})
	makeTopic(t, k, "layers", "--partitions", "3")
	r, err := KafkaTool(t.Context(), KafkaTopics, "--bootstrap-server", k.Addr, "--list")
	if err != nil || strings.TrimSpace(r.Stdout) != "layers" {
		t.Fatalf("topics --list: %+v, %v", r, err)
	}
	for p := range 3 {
		if _, err := os.Stat(filepath.Join(k.DataDir, "layers-"+string(rune('0'+p)))); err != nil {
			t.Error(err)
		}
	}
}

func TestKafkaToolTakesInputAndGivesOutput(t *testing.T) {
	k := KafkaFor(t, KafkaOptions{})
	makeTopic(t, k, "lines")
	producer, err := KafkaCommand(t.Context(), KafkaConsoleProducer, "--bootstrap-server", k.Addr, "--topic", "lines")
	if err != nil {
		t.Fatal(err)
	}
	producer.Stdin = strings.NewReader("one\ntwo\nthree\n")
	if out, err := producer.CombinedOutput(); err != nil {
		t.Fatalf("console producer: %v\n%s", err, out)
	}
	r, err := KafkaTool(t.Context(), KafkaConsoleConsumer, "--bootstrap-server", k.Addr,
		"--topic", "lines", "--partition", "0", "--offset", "earliest", "--max-messages", "3")
	if err != nil || r.Stdout != "one\ntwo\nthree\n" {
		t.Fatalf("console consumer: %+v, %v", r, err)
	}
}

func TestTieredKafkaTakesARemoteTopic(t *testing.T) {
	k := KafkaFor(t, KafkaOptions{Tiered: true})
	makeTopic(t, k, "cold", "--config", "remote.storage.enable=true")
	if _, err := os.Stat(filepath.Join(k.Dir, "tier")); err != nil {
		t.Fatalf("the remote store's folder: %v", err)
	}
}

func TestShellWorksWithoutACluster(t *testing.T) {
	needJars(t, hadoopJars(HDFSVersions[0]))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := HadoopShell(t.Context(), "-cat", "file://"+dir+"/a")
	if err != nil || r.Stdout != "abc" {
		t.Fatalf("-cat: %+v, %v", r, err)
	}
	r, err = HadoopShell(t.Context(), "-cat", "file://"+dir+"/b")
	if code, ok := ExitCode(err); !ok || code != 1 || r.Code != 1 || !strings.HasPrefix(r.Stderr, "cat: `file://") {
		t.Fatalf("-cat of what is not there: %+v, %v", r, err)
	}
}

func makeTopic(t *testing.T, k *Kafka, topic string, flags ...string) {
	t.Helper()
	args := append([]string{"--bootstrap-server", k.Addr, "--create", "--topic", topic}, flags...)
	if _, err := KafkaTool(t.Context(), KafkaTopics, args...); err != nil {
		t.Fatal(err)
	}
}

func userName() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	return "root"
}

// put writes a file by WebHDFS, which answers the first request with where to
// send the bytes.
func put(t *testing.T, url string, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "PUT", url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated {
		t.Fatalf("PUT %s: %s\n%s", url, resp.Status, said)
	}
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", url, resp.Status, err, body)
	}
	return body
}
