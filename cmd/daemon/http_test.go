package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A pond is a subject that says what it is told to.
type pond struct {
	trouble error
	levels  map[string]string
}

func (p *pond) Health() error { return p.trouble }

func (p *pond) Sections() []Section {
	return []Section{{Title: "Layers", Note: "of sediment", Head: []string{"Year"}, Rows: [][]string{{"<1>"}}}, {Title: "Fish"}}
}

func (p *pond) Beans() []Bean {
	return []Bean{{Name: "varve:type=Water", Values: map[string]any{"Depth": 3}}, {Name: "varve:type=Mud", Values: map[string]any{"Depth": 1}}}
}

func (p *pond) Conf() []Setting {
	s := []Setting{{"b", "2", "file"}, {"a", "1", "default"}}
	SortSettings(s)
	return s
}

func (p *pond) Level(logger, level string) (string, error) {
	if level == "LOUD" {
		return "", errors.New("level LOUD: there is none")
	}
	if level != "" {
		p.levels[logger] = level
	}
	return p.levels[logger], nil
}

func served(t *testing.T) (*pond, *Pages) {
	t.Helper()
	p := &pond{levels: map[string]string{"kafka": "INFO"}}
	registry := prometheus.NewRegistry()
	depth := prometheus.NewGauge(prometheus.GaugeOpts{Name: "pond_depth"})
	registry.MustRegister(depth)
	pages, err := Serve("127.0.0.1:0", "A pond", p, registry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pages.Close() })
	return p, pages
}

// get is a page's status and text.
func get(t *testing.T, p *Pages, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + p.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestEveryPageAnswers(t *testing.T) {
	_, pages := served(t)
	for path, want := range map[string]string{
		"/":                   "&lt;1&gt;", // what a topic is called is no HTML
		"/healthz":            `"status": "ok"`,
		"/metrics":            "pond_depth 0",
		"/jmx":                `"varve:type=Mud"`,
		"/conf":               `"key": "a"`,
		"/logLevel?log=kafka": "Effective Level: INFO",
		"/stacks":             "goroutine ",
	} {
		if code, text := get(t, pages, path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d, without %q:\n%s", path, code, want, text)
		}
	}
	if code, _ := get(t, pages, "/nothing"); code != http.StatusNotFound {
		t.Errorf("/nothing: %d", code)
	}
}

func TestTroubleIsOnTheFrontAndInTheStatus(t *testing.T) {
	pond, pages := served(t)
	pond.trouble = errors.New("dry & cracked")
	if code, text := get(t, pages, "/healthz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "cracked") {
		t.Errorf("/healthz: %d %s", code, text)
	}
	if _, text := get(t, pages, "/"); !strings.Contains(text, "unhealthy: dry &amp; cracked") {
		t.Errorf("the front page does not say so:\n%s", text)
	}
}

func TestOneBeanMayBeAskedFor(t *testing.T) {
	_, pages := served(t)
	for query, want := range map[string]int{"": 2, "?qry=" + url.QueryEscape("varve:type=Water"): 1, "?qry=varve:type=Ice": 0} {
		_, text := get(t, pages, "/jmx"+query)
		var answer struct{ Beans []map[string]any }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Beans == nil || len(answer.Beans) != want {
			t.Errorf("/jmx%s: %v (%v), want %d beans", query, answer.Beans, err, want)
		}
	}
}

func TestLevelsAreSetAndNonsenseIsRefused(t *testing.T) {
	pond, pages := served(t)
	if code, text := get(t, pages, "/logLevel?log=kafka&level=DEBUG"); code != http.StatusOK || pond.levels["kafka"] != "DEBUG" || text != "Effective Level: DEBUG\n" {
		t.Errorf("set: %d %q", code, text)
	}
	for path, want := range map[string]string{"/logLevel": "name a logger", "/logLevel?log=kafka&level=LOUD": "there is none"} {
		if code, text := get(t, pages, path); code != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %q, want %q", path, code, text, want)
		}
	}
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	pond, pages := served(t)
	if _, err := Serve(pages.Addr(), "another", pond, prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), pages.Addr()) {
		t.Errorf("served twice on %s: %v", pages.Addr(), err)
	}
}

func TestReadyIsOneLine(t *testing.T) {
	var b bytes.Buffer
	WriteReady(&b, "bootstrap", "localhost:9092", "node", "1")
	if got := b.String(); got != "ready bootstrap=localhost:9092 node=1\n" {
		t.Errorf("%q", got)
	}
}
