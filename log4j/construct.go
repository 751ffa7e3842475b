package log4j

import (
	"strings"
	"time"
)

// closeMax is how long a replaced appender may take to write what it has.
const closeMax = 2 * time.Second

// The packages that log4j's classes may be named with.
const log4jPackage = "org.apache.log4j."

// appender makes the appender of a name, once a run; nil where it cannot.
func (c *configurator) appender(name string) *appender {
	if a, ok := c.made[name]; ok {
		return a
	}
	a := c.newAppender(name)
	c.made[name] = a
	return a
}

func (c *configurator) newAppender(name string) *appender {
	prefix := "log4j.appender." + name
	if _, ok := c.keys[prefix]; !ok {
		c.h.complain("ERROR", "Could not find value for key %s", prefix)
		c.h.complain("ERROR", "Could not instantiate appender named \"%s\".", name)
		return nil
	}
	a := &appender{name: name, class: strings.TrimSpace(c.value(prefix)), threshold: All}
	t := c.target(a, prefix+".")
	if t == nil {
		return nil
	}
	a.layout = c.layout(name)
	a.out = &writer{target: t, failed: func(err error) {
		c.h.complain("ERROR", "Failed to write in appender [%s]: %v; lines that cannot be written are dropped.", name, err)
	}}
	return a
}

// target makes what the appender's class writes to and reads its options.
func (c *configurator) target(a *appender, prefix string) target {
	o := options{
		"name": ignored, "encoding": c.encoding, "immediateFlush": toBool(new(bool)), "bufferedIO": toBool(new(bool)), "bufferSize": toInt(new(int)),
		"threshold": func(v string) bool { a.threshold = toLevel(v, a.threshold); return true },
	}
	switch a.class {
	case log4jPackage + "ConsoleAppender":
		return c.console(a, o, prefix)
	case log4jPackage + "FileAppender", log4jPackage + "RollingFileAppender", log4jPackage + "DailyRollingFileAppender":
		return c.file(a, o, prefix, strings.TrimPrefix(a.class, log4jPackage))
	case log4jPackage + "varia.NullAppender":
		return null{}
	}
	c.h.complain("ERROR", "Could not instantiate class [%s].", a.class)
	c.h.complain("ERROR", "Could not instantiate appender named \"%s\".", a.name)
	return nil
}

func (c *configurator) encoding(v string) bool {
	switch strings.ToUpper(strings.TrimSpace(v)) {
	case "UTF-8", "UTF8", "US-ASCII":
		return true
	}
	c.h.complain("WARN", "Lines are written in UTF-8, not in [%s].", v)
	return true
}

func (c *configurator) console(a *appender, o options, prefix string) target {
	to := c.h.stdout
	o["follow"] = toBool(new(bool))
	o["target"] = func(v string) bool {
		switch v := strings.TrimSpace(v); {
		case strings.EqualFold(v, "System.out"):
			to = c.h.stdout
		case strings.EqualFold(v, "System.err"):
			to = c.h.stderr
		default:
			c.h.complain("WARN", "[%s] should be System.out or System.err.", v)
			c.h.complain("WARN", "Using previously set target, System.out by default.")
		}
		return true
	}
	c.set(o, prefix, a.class)
	return console{to}
}

func (c *configurator) file(a *appender, o options, prefix, class string) target {
	t := &file{append: true}
	o["file"] = func(v string) bool { t.path = strings.TrimSpace(v); return true }
	o["append"] = toBool(&t.append)
	size := &bySize{sizeMax: 10 << 20, backups: 1}
	pattern := "'.'yyyy-MM-dd"
	switch class {
	case "RollingFileAppender":
		o["maxBackupIndex"] = toInt(&size.backups)
		o["maxFileSize"] = func(v string) bool {
			n, ok := fileSize(v)
			if !ok {
				c.h.complain("ERROR", "[%s] is not in proper int form.", strings.ToUpper(strings.TrimSpace(v)))
				c.h.complain("ERROR", "[%s] not in expected format.", v)
				n = 10<<20 + 1
			}
			size.sizeMax = n
			return true
		}
		o["maximumFileSize"] = o["maxFileSize"]
		t.roller = size
	case "DailyRollingFileAppender":
		o["datePattern"] = toString(&pattern)
	}
	c.set(o, prefix, a.class)
	if t.path == "" {
		c.h.complain("WARN", "File option not set for appender [%s].", a.name)
		c.h.complain("WARN", "Are you using FileAppender instead of ConsoleAppender?")
		return nil
	}
	if class == "DailyRollingFileAppender" {
		t.roller = c.byDate(a, pattern)
	}
	if err := t.open(); err != nil {
		c.h.complain("ERROR", "setFile(%s,%v) call failed.", t.path, t.append)
		c.h.complain("ERROR", "%v", err)
	}
	return t
}

// byDate is nil, and the file does not roll, where the pattern has no period.
func (c *configurator) byDate(a *appender, pattern string) roller {
	format, err := newDateFormat(pattern)
	if err != nil {
		c.h.complain("ERROR", "DatePattern of appender [%s]: %v", a.name, err)
		return nil
	}
	p, ok := periodOf(format)
	if !ok {
		c.h.complain("ERROR", "Unknown periodicity for appender [%s].", a.name)
		return nil
	}
	return &byDate{format: format, period: p}
}

// layout makes an appender's layout. Without one, or with one of a class that
// is not here, lines are "LEVEL - message": log4j would write nothing at all.
func (c *configurator) layout(name string) layout {
	key := "log4j.appender." + name + ".layout"
	class := strings.TrimSpace(c.value(key))
	switch class {
	case log4jPackage + "PatternLayout", log4jPackage + "EnhancedPatternLayout":
		pattern := "%m%n"
		c.set(options{"conversionPattern": toString(&pattern)}, key+".", class)
		return newPattern(pattern, c.h)
	case log4jPackage + "SimpleLayout":
	case "":
		c.h.complain("ERROR", "No layout set for the appender named [%s].", name)
	default:
		c.h.complain("ERROR", "Could not instantiate class [%s].", class)
	}
	return simple
}
