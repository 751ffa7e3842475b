package log4j

import (
	"strconv"
	"strings"
	"unicode"
)

// options are the beans' properties of one appender or layout: how each is
// set, under its name with a small first letter.
type options map[string]func(value string) bool

// set gives the options of prefix ("log4j.appender.A.") to o; keys with a
// further dot are others' (layout.…, filter.…).
func (c *configurator) set(o options, prefix, class string) {
	for _, key := range c.sorted {
		name, ours := strings.CutPrefix(key, prefix)
		if !ours || name == "" || strings.Contains(name, ".") || name == "layout" || name == "errorhandler" {
			continue
		}
		name = decapitalize(name)
		value := c.value(key)
		setter := o[name]
		switch {
		case setter == nil:
			c.h.complain("WARN", "No such property [%s] in %s.", name, class)
		case !setter(value):
			c.h.complain("WARN", "Failed to set property [%s] to value \"%s\". ", name, value)
		}
	}
}

// decapitalize is java.beans.Introspector's: URL stays, File is file.
func decapitalize(name string) string {
	if len(name) > 1 && unicode.IsUpper(rune(name[0])) && unicode.IsUpper(rune(name[1])) {
		return name
	}
	return strings.ToLower(name[:1]) + name[1:]
}

func toString(to *string) func(string) bool {
	return func(v string) bool { *to = v; return true }
}

func toBool(to *bool) func(string) bool {
	return func(v string) bool {
		v = strings.TrimSpace(v)
		if strings.EqualFold(v, "true") || strings.EqualFold(v, "false") {
			*to = strings.EqualFold(v, "true")
			return true
		}
		return false
	}
}

func toInt(to *int) func(string) bool {
	return func(v string) bool {
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32)
		if err == nil {
			*to = int(n)
		}
		return err == nil
	}
}

// ignored takes an option that has no meaning here.
func ignored(string) bool { return true }

// fileSize reads 10MB, 512 kb, 1GB or bytes; ok is false where it is none.
func fileSize(v string) (int64, bool) {
	v = strings.ToUpper(strings.TrimSpace(v))
	factor := int64(1)
	for _, u := range []struct {
		suffix string
		factor int64
	}{{"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}} {
		if number, ok := strings.CutSuffix(v, u.suffix); ok {
			v, factor = strings.TrimSpace(number), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > 1<<62/factor {
		return 0, false
	}
	return n * factor, true
}
