package site

import (
	"fmt"
	"strings"
)

// depthMax is how often a value is expanded, one variable each time.
const depthMax = 20

// expand replaces ${var} until none is left that is bound. Where a variable's
// value names the variable itself, what was written is returned, as in Hadoop;
// a longer circle is an error.
func (c *Configuration) expand(expr string) (string, error) {
	eval := expr
	for range depthMax {
		start, name, ok := variable(eval)
		if !ok {
			return eval, nil
		}
		value, bound := c.lookup(name)
		if !bound {
			return eval, nil
		}
		ref := "${" + name + "}"
		if strings.Contains(value, ref) {
			return expr, nil
		}
		eval = eval[:start] + value + eval[start+len(ref):]
	}
	if _, _, left := variable(eval); left {
		return "", fmt.Errorf("variable substitution depth too large: %d %s", depthMax, expr)
	}
	return eval, nil
}

// variable finds the first innermost ${name}: a name has no blank, $, { or }.
func variable(s string) (start int, name string, ok bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], "${")
		if i < 0 {
			return 0, "", false
		}
		start = from + i
		end := strings.IndexAny(s[start+2:], "}${ ")
		switch {
		case end > 0 && s[start+2+end] == '}':
			return start, s[start+2 : start+2+end], true
		case end < 0:
			return 0, "", false
		}
		from = start + 2
	}
}

// lookup binds a variable: environment, system property, key.
func (c *Configuration) lookup(name string) (string, bool) {
	if env, ok := strings.CutPrefix(name, "env."); ok {
		return c.lookupEnv(env)
	}
	if v, ok := c.Properties[name]; ok {
		return v, true
	}
	return c.Raw(name)
}

// lookupEnv reads NAME, NAME-otherwise (where unset) and NAME:-otherwise
// (where unset or empty).
func (c *Configuration) lookupEnv(expr string) (string, bool) {
	name, otherwise, hasDefault := strings.Cut(expr, "-")
	name, orEmpty := strings.CutSuffix(name, ":")
	if !hasDefault && orEmpty {
		name += ":"
	}
	value, set := "", false
	if c.Env != nil {
		value, set = c.Env(name)
	}
	if hasDefault && (!set || orEmpty && value == "") {
		return otherwise, true
	}
	return value, set
}
