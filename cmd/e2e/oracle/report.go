package oracle

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Cases are all the stories.
func Cases() []Case {
	return slices.Concat(topicCases(), logCases(), groupCases())
}

// WriteCompatibility writes docs/compatibility.md: what was compared, and every
// difference that we want.
func (r *Report) WriteCompatibility(w io.Writer, versions string) error {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("# Compatibility")
	p("")
	p("Written by `make oracle`, which asks a real Kafka %s and Varve the same requests in the same order and", versions)
	p("compares the answers field by field (addresses, clocks and drawn ids aside). A difference that no rule below")
	p("allows fails the run.")
	p("")
	p("| story | requests compared |")
	p("|--|--|")
	total := 0
	for _, name := range slices.Sorted(maps.Keys(r.Asked)) {
		p("| %s | %d |", name, r.Asked[name])
		total += r.Asked[name]
	}
	p("| **all** | **%d** |", total)
	p("")
	p("## Differences that we want")
	p("")
	for _, rule := range Rules {
		api := rule.API
		if api == "" {
			api = "any API"
		}
		p("- %s, `%s`: %s.", api, rule.Path, rule.Reason)
	}
	return nil
}
