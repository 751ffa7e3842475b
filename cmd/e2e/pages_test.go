package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestThePagesTellOfTheBroker reads every page of a broker that has a topic.
func TestThePagesTellOfTheBroker(t *testing.T) {
	v := broker(t)
	create(t, v, "seen-on-a-page", 2)
	produce(t, client(t, v.Addr), "seen-on-a-page", numbered("page", 0, 25))
	at := "http://" + v.HTTP
	shows(t, page(t, at+"/"), `<td[^>]*>seen-on-a-page</td>`, v.Addr, `healthy`)
	shows(t, page(t, at+"/metrics"), `(?m)^go_goroutines \d+$`, `(?m)^(varve|kafka)_\w+`)
	shows(t, page(t, at+"/stacks"), `(?m)^goroutine \d+ \[`)
	shows(t, page(t, at+"/logLevel?log=kafka.server&level=DEBUG"), `Effective Level: DEBUG`)
	var health struct{ Status string }
	fromJSON(t, page(t, at+"/healthz"), &health)
	if health.Status != "ok" {
		t.Errorf("/healthz says %+v", health)
	}
	var jmx struct{ Beans []map[string]any }
	fromJSON(t, page(t, at+"/jmx?qry=varve:type=Process"), &jmx)
	if len(jmx.Beans) != 1 || jmx.Beans[0]["Version"] == "" {
		t.Errorf("/jmx of the process: %v", jmx.Beans)
	}
	var conf struct {
		Properties []struct{ Key, Value, Resource string }
	}
	fromJSON(t, page(t, at+"/conf"), &conf)
	found := false
	for _, p := range conf.Properties {
		found = found || p.Key == "offsets.topic.num.partitions" && p.Value == "4" && strings.Contains(p.Resource, "-D")
	}
	if !found {
		t.Error("/conf does not show offsets.topic.num.partitions as -D set it")
	}
}

// page is the body of a page that must be there.
func page(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(within(t), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, r.Status, err, b)
	}
	return string(b)
}

func fromJSON(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
