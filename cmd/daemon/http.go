// Package daemon is what every daemon of Varve has beside its work: the HTTP port
// with the pages that Hadoop's daemons have, and the way it is told to stop.
//
//	/          what it is and does, for people
//	/healthz   200 or 503 and why, as JSON
//	/metrics   Prometheus
//	/jmx       the same figures as beans, as JSON; ?qry=NAME picks one
//	/conf      every key's effective value and where it came from
//	/logLevel  ?log=NAME asks, &level=LEVEL sets
//	/stacks    what every goroutine does
package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Subject is the daemon that the pages tell of.
type Subject interface {
	// Health is nil, or what is wrong and what to do.
	Health() error
	// Sections are the tables of the front page.
	Sections() []Section
	// Beans are figures by bean name, as /jmx shows them.
	Beans() []Bean
	// Conf are the effective settings.
	Conf() []Setting
	// Level returns a logger's effective level; a non-empty level sets it first.
	Level(logger, level string) (string, error)
}

// A Section is one table of the front page.
type Section struct {
	Title string
	Note  string
	Head  []string
	Rows  [][]string
}

// A Bean is a named set of figures.
type Bean struct {
	Name   string
	Values map[string]any
}

// A Setting is one key's effective value.
type Setting struct{ Key, Value, Origin string }

// Pages is a running HTTP port.
type Pages struct {
	title   string
	subject Subject
	server  *http.Server
	ln      net.Listener
}

// Serve begins to answer on addr (host:port; port 0 picks a free one).
func Serve(addr, title string, subject Subject, metrics prometheus.Gatherer) (*Pages, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("http.listener: listening on %s: %w: choose another with -http HOST:PORT, or none with http.listener=", addr, err)
	}
	p := &Pages{title: title, subject: subject, ln: ln}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.front)
	mux.HandleFunc("GET /healthz", p.health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /jmx", p.jmx)
	mux.HandleFunc("GET /conf", p.conf)
	mux.HandleFunc("GET /logLevel", p.logLevel)
	mux.HandleFunc("GET /stacks", stacks)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go p.server.Serve(ln)
	return p, nil
}

// Addr is the address that is served.
func (p *Pages) Addr() string { return p.ln.Addr().String() }

// Close stops answering; requests under way have a second.
func (p *Pages) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		return p.server.Close()
	}
	return nil
}

func (p *Pages) health(w http.ResponseWriter, _ *http.Request) {
	answer := map[string]string{"status": "ok"}
	code := http.StatusOK
	if err := p.subject.Health(); err != nil {
		answer["status"], answer["cause"], code = "unhealthy", err.Error(), http.StatusServiceUnavailable
	}
	writeJSON(w, code, answer)
}

func (p *Pages) jmx(w http.ResponseWriter, r *http.Request) {
	want := r.URL.Query().Get("qry")
	beans := []map[string]any{}
	for _, b := range p.subject.Beans() {
		if want != "" && want != b.Name {
			continue
		}
		one := map[string]any{"name": b.Name}
		for k, v := range b.Values {
			one[k] = v
		}
		beans = append(beans, one)
	}
	writeJSON(w, http.StatusOK, map[string]any{"beans": beans})
}

func (p *Pages) conf(w http.ResponseWriter, _ *http.Request) {
	type property struct {
		Key      string `json:"key"`
		Value    string `json:"value"`
		Resource string `json:"resource"`
	}
	out := []property{}
	for _, s := range p.subject.Conf() {
		out = append(out, property{s.Key, s.Value, s.Origin})
	}
	writeJSON(w, http.StatusOK, map[string]any{"properties": out})
}

func (p *Pages) logLevel(w http.ResponseWriter, r *http.Request) {
	logger := r.URL.Query().Get("log")
	if logger == "" {
		http.Error(w, "name a logger: /logLevel?log=kafka.server&level=DEBUG", http.StatusBadRequest)
		return
	}
	level, err := p.subject.Level(logger, r.URL.Query().Get("level"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "Effective Level: %s\n", level)
}

func stacks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	pprof.Lookup("goroutine").WriteTo(w, 2)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(v)
}

// SortSettings orders settings by key, as people look for them.
func SortSettings(s []Setting) {
	slices.SortFunc(s, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
}

// WriteReady writes the one line that says where the daemon serves: "ready" and
// key=value pairs in the order given.
func WriteReady(w io.Writer, pairs ...string) {
	var b strings.Builder
	b.WriteString("ready")
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(&b, " %s=%s", pairs[i], pairs[i+1])
	}
	b.WriteByte('\n')
	io.WriteString(w, b.String())
}
