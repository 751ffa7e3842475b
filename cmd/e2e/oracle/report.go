package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cases are all the stories.
func Cases() []Case {
	return slices.Concat(wireCases(), metadataCases(), topicCases(), configCases(), produceCases(), fetchCases(), offsetCases(), groupCases())
}

// Compatibility is docs/compatibility.md: what was compared, and every difference that
// we want.
func (r *Report) Compatibility(kafka string) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Compatibility")
	p("")
	p("Written by `make oracle`, which asks Apache Kafka %s and Varve the same requests in the same order and compares", kafka)
	p("the answers field by field (addresses, clocks and drawn ids aside).")
	p("A difference that does not stand below fails the run.")
	p("")
	p("## What was asked")
	p("")
	p("Every version that both serve is asked what is right and what is wrong, and the versions beside them.")
	p("")
	p("| request | versions | compared |")
	p("|--|--|--|")
	total := 0
	for _, key := range slices.Sorted(maps.Keys(r.Asked)) {
		n := 0
		for _, asked := range r.Asked[key] {
			n += asked
		}
		total += n
		p("| %s | %d to %d | %d |", kmsg.NameForKey(key), r.Served[key].Min, r.Served[key].Max, n)
	}
	p("| **all** | | **%d** |", total)
	p("")
	p("Stories: %s.", strings.Join(slices.Sorted(maps.Keys(r.Stories)), "; "))
	p("")
	p("## Differences that we want")
	p("")
	for i := range Rules {
		where := Rules[i].API
		if step := Rules[i].Step; step != "" {
			where += " (" + step + ")"
		}
		p("- **%s**: %s", where, Rules[i].Reason)
	}
	return b.String()
}

// Unused are the rules that allowed nothing: what they speak of is a difference no more.
func (r *Report) Unused() (out []string) {
	for i := range Rules {
		if r.Allowed[&Rules[i]] == 0 {
			out = append(out, fmt.Sprintf("%s %s: %s", Rules[i].API, Rules[i].Step, Rules[i].Reason))
		}
	}
	return out
}
