package log4j

import (
	"os"
	"slices"
	"strings"

	"varve/conf/properties"
)

// ConfigureFile reads a log4j.properties file; see Configure. A file that
// cannot be read is told on stderr and leaves everything as it is.
func (h *Hierarchy) ConfigureFile(path string, system map[string]string) {
	text, err := os.ReadFile(path)
	if err != nil {
		h.complain("ERROR", "Could not read configuration file [%s].", path)
		h.complain("ERROR", "%v", err)
		h.complain("ERROR", "Ignoring configuration file [%s].", path)
		return
	}
	h.Configure(text, system)
}

// Configure applies the text of a log4j.properties file as log4j's
// PropertyConfigurator does: it adds to what there is, unless log4j.reset is
// true; the appenders of loggers that it names are replaced. system are the
// -D properties, which ${} sees first. Nothing in a file stops the process:
// what is wrong is told on stderr, in log4j's words where it has them, and
// left out.
func (h *Hierarchy) Configure(text []byte, system map[string]string) {
	entries, faults := properties.Parse(text)
	for _, f := range faults {
		h.complain("ERROR", "Could not read the configuration at %v.", f)
	}
	c := configurator{h: h, keys: properties.Map(entries), system: system, made: map[string]*appender{}}
	for key := range c.keys {
		c.sorted = append(c.sorted, key)
	}
	slices.Sort(c.sorted)

	h.mu.Lock()
	before := h.mu.appenders
	c.configure()
	after := h.inUse()
	h.mu.appenders = after
	h.refresh()
	h.mu.Unlock()
	for a := range before {
		if !after[a] {
			a.out.close(closeMax)
		}
	}
}

// configurator is one run over one file; the hierarchy's lock is held.
type configurator struct {
	h      *Hierarchy
	keys   map[string]string
	sorted []string
	system map[string]string
	made   map[string]*appender // nil where it could not be made
}

func (c *configurator) configure() {
	if strings.EqualFold(c.value("log4j.reset"), "true") {
		c.reset()
	}
	if _, ok := c.keys["log4j.configDebug"]; ok {
		c.h.complain("WARN", "[log4j.configDebug] is deprecated. Use [log4j.debug] instead.")
	}
	if _, ok := c.keys["log4j.threshold"]; ok {
		c.h.mu.threshold = toLevel(c.value("log4j.threshold"), All)
	}
	for _, key := range []string{"log4j.rootLogger", "log4j.rootCategory"} {
		if _, ok := c.keys[key]; ok {
			c.logger(c.h.mu.root, c.value(key))
			break
		}
	}
	for _, key := range c.sorted {
		name, ok := strings.CutPrefix(key, "log4j.logger.")
		if !ok {
			name, ok = strings.CutPrefix(key, "log4j.category.")
		}
		if !ok || name == "" {
			continue
		}
		n := c.h.node(name)
		c.logger(n, c.value(key))
		if additive := c.value("log4j.additivity." + name); additive != "" {
			n.additive = strings.EqualFold(strings.TrimSpace(additive), "true")
		}
	}
}

// reset brings every logger back to how log4j begins.
func (c *configurator) reset() {
	level := Debug
	c.h.mu.root.level, c.h.mu.root.appenders = &level, nil
	c.h.mu.threshold = All
	for _, n := range c.h.mu.nodes {
		n.level, n.appenders, n.additive = nil, nil, true
	}
}

// value is a key's value with ${} replaced, "" where it is not set.
func (c *configurator) value(key string) string {
	raw := c.keys[key]
	v, err := substitute(raw, c.system, c.keys)
	if err != nil {
		c.h.complain("ERROR", "Bad option value [%s].", raw)
		c.h.complain("ERROR", "%v", err)
		return raw
	}
	return v
}

// logger applies "[LEVEL], appender, appender" to n.
func (c *configurator) logger(n *node, value string) {
	tokens := strings.Split(value, ",")
	if value != "" && !strings.HasPrefix(value, ",") {
		c.level(n, tokens[0])
		tokens = tokens[1:]
	}
	n.appenders = nil
	for _, token := range tokens {
		if token == "" {
			continue // nothing between two commas is nothing, a blank is a name
		}
		if a := c.appender(strings.TrimSpace(token)); a != nil && !slices.Contains(n.appenders, a) {
			n.appenders = append(n.appenders, a)
		}
	}
}

func (c *configurator) level(n *node, text string) {
	text = strings.TrimSpace(text)
	if strings.EqualFold(text, "inherited") || strings.EqualFold(text, "null") {
		if n.parent == nil {
			c.h.complain("WARN", "The root logger cannot be set to null.")
			return
		}
		n.level = nil
		return
	}
	l := toLevel(text, Debug)
	n.level = &l
}

// inUse lists the appenders that some logger still has; the lock is held.
func (h *Hierarchy) inUse() map[*appender]bool {
	used := map[*appender]bool{}
	for _, a := range h.mu.root.appenders {
		used[a] = true
	}
	for _, n := range h.mu.nodes {
		for _, a := range n.appenders {
			used[a] = true
		}
	}
	return used
}
