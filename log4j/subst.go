package log4j

import (
	"fmt"
	"strings"
)

// substMax bounds how deep ${} nest; log4j's own overflows the stack.
const substMax = 20

// substitute replaces ${var} by a system property, else by a key of the same
// file, else by nothing. An unbalanced brace is an error and the value counts
// as written.
func substitute(value string, system, file map[string]string) (string, error) {
	return substituteAt(value, system, file, 0)
}

func substituteAt(value string, system, file map[string]string, depth int) (string, error) {
	if depth > substMax {
		return "", fmt.Errorf("%q goes round in a circle", value)
	}
	var b strings.Builder
	rest := value
	for {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			return "", fmt.Errorf("%q has no closing brace. Opening brace at position %d", value, len(value)-len(after)-2)
		}
		rest = behind
		bound, ok := system[name]
		if !ok {
			bound, ok = file[name]
		}
		if ok {
			inner, err := substituteAt(bound, system, file, depth+1)
			if err != nil {
				return "", err
			}
			b.WriteString(inner)
		}
	}
}
