package conf

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says what a fault means for the start.
type Severity uint8

const (
	Note    Severity = iota // a key that has no effect
	Warning                 // looks like a mistake; the start goes on
	Error                   // the process does not start
)

// Fault is one thing to say about a configuration.
type Fault struct {
	Severity Severity
	Origin   Origin
	Key      string
	Reason   string
}

func (f Fault) String() string {
	if f.Key == "" {
		return f.Origin.String() + ": " + f.Reason
	}
	return f.Origin.String() + ": " + f.Key + " " + f.Reason
}

// Invalid is a configuration that a process cannot start with.
type Invalid struct {
	Faults []Fault // errors all, in the order of the sources
}

func (e *Invalid) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "configuration has %d error", len(e.Faults))
	if len(e.Faults) != 1 {
		b.WriteByte('s')
	}
	for _, f := range e.Faults {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// nearest returns the known key that is most like name, "" where none is.
func nearest(name string) string {
	best, bestDistance := "", max(2, len(name)/5)+1
	for i := range Keys {
		k := &Keys[i]
		if k.Family() || k.Internal || !k.forBroker() {
			continue
		}
		if d := distance(name, k.Name, bestDistance); d < bestDistance {
			best, bestDistance = k.Name, d
		}
	}
	return best
}

// distance is the number of letters to put in, take out or change that make a
// b; limit where it is not below limit.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
		if slices.Min(row) >= limit {
			return limit
		}
	}
	return row[len(b)]
}
