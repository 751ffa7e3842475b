package daemon

import (
	"html/template"
	"net/http"
)

var frontPage = template.Must(template.New("front").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width, initial-scale=1">
<style>
 body { font: 15px/1.45 system-ui, sans-serif; margin: 0; color: #1d2733; background: #f6f7f9 }
 header { background: #23435c; color: #fff; padding: 14px 28px; display: flex; gap: 28px; align-items: baseline; flex-wrap: wrap }
 header h1 { font-size: 20px; margin: 0 } header a { color: #cfe3f1; text-decoration: none } header a:hover { text-decoration: underline }
 main { padding: 8px 28px 40px; max-width: 1100px }
 h2 { font-size: 16px; margin: 26px 0 6px } p.note { margin: 0 0 8px; color: #59636e }
 table { border-collapse: collapse; background: #fff; width: 100%; border: 1px solid #dde2e8 }
 section { overflow-x: auto }
 th, td { text-align: left; padding: 6px 12px; border-bottom: 1px solid #eceff3; vertical-align: top; overflow-wrap: anywhere }
 th { background: #eef2f6; font-weight: 600 }
 th:first-child, td:first-child { min-width: 11em }
 .facts td:first-child { width: 11em; color: #59636e }
 .list th:not(:first-child), .list td:not(:first-child) { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
 .ok { color: #9be7b0 } .bad { color: #ffb4ab }
</style></head><body>
<header><h1>{{.Title}}</h1>
{{if .Trouble}}<span class="bad">unhealthy: {{.Trouble}}</span>{{else}}<span class="ok">healthy</span>{{end}}
<nav><a href="/jmx">jmx</a> · <a href="/metrics">metrics</a> · <a href="/conf">conf</a> · <a href="/stacks">stacks</a> · <a href="/healthz">healthz</a></nav></header>
<main>{{range .Sections}}<section><h2>{{.Title}}</h2>{{if .Note}}<p class="note">{{.Note}}</p>{{end}}
<table class="{{if .Head}}list{{else}}facts{{end}}">{{if .Head}}<thead><tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr></thead>{{end}}
<tbody>{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>{{else}}<tr><td>none</td></tr>{{end}}</tbody></table></section>{{end}}
</main></body></html>
`))

func (p *Pages) front(w http.ResponseWriter, _ *http.Request) {
	trouble := ""
	if err := p.subject.Health(); err != nil {
		trouble = err.Error()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	frontPage.Execute(w, map[string]any{"Title": p.title, "Trouble": trouble, "Sections": p.subject.Sections()})
}
