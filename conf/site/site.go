// Package site reads Hadoop's XML configuration (core-site.xml, hdfs-site.xml)
// with Hadoop's rules, and says from it what a client of HDFS must know.
//
//	<configuration>
//	  <property><name>fs.defaultFS</name><value>hdfs://${env.NS:-ns1}</value><final>true</final></property>
//	  <xi:include href="more.xml"/>
//	</configuration>
//
// A later resource replaces what an earlier one set, unless that said final;
// Set replaces both. ${} is expanded when a value is asked for: env.NAME with
// its defaults, then system properties (-D), then other keys; what is unbound
// stays as it is written.
package site

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Configuration is Hadoop's class of that name: keys, raw values, origins.
type Configuration struct {
	// Env looks up environment variables for ${env.NAME}; nil is none.
	Env func(name string) (string, bool)
	// Properties are the -D system properties, which ${} sees before any key.
	Properties map[string]string

	props    map[string]property
	warnings []string
}

type property struct {
	value  string
	final  bool
	origin Origin
}

// Origin is where a value came from; Line is 0 where there are no lines.
type Origin struct {
	Name string
	Line int
}

func (o Origin) String() string {
	if o.Line == 0 {
		return o.Name
	}
	return fmt.Sprintf("%s:%d", o.Name, o.Line)
}

// New returns a configuration that knows no key.
func New() *Configuration {
	return &Configuration{props: map[string]property{}}
}

// Dir is where the site files are: $HADOOP_CONF_DIR, else
// $HADOOP_HOME/etc/hadoop, else "".
func Dir(env func(string) string) string {
	if dir := env("HADOOP_CONF_DIR"); dir != "" {
		return dir
	}
	if home := env("HADOOP_HOME"); home != "" {
		return filepath.Join(home, "etc", "hadoop")
	}
	return ""
}

// Load reads core-site.xml and hdfs-site.xml of a folder, "" being none. A
// missing file is fine, one that is not well formed is an error.
func Load(dir string) (*Configuration, error) {
	c := New()
	c.Env = os.LookupEnv
	if dir == "" {
		return c, nil
	}
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		if err := c.AddFile(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return c, nil
}

// Set sets a key from a program or a flag; it overrides final ones.
func (c *Configuration) Set(name, value, origin string) {
	c.put(name, property{value: value, origin: Origin{Name: origin}}, true)
}

// put sets a key under the deprecated names that it has, too.
func (c *Configuration) put(name string, p property, force bool) {
	for _, n := range aliases(name) {
		before, known := c.props[n]
		if known && before.final && !force {
			if before.value != p.value {
				c.warnings = append(c.warnings, fmt.Sprintf("%s:an attempt to override final parameter: %s;  Ignoring.", p.origin.Name, n))
			}
			continue
		}
		c.props[n] = p
	}
}

// Warnings are what Hadoop would log while it loads.
func (c *Configuration) Warnings() []string { return c.warnings }

// Raw is a key's value as it is written.
func (c *Configuration) Raw(name string) (string, bool) {
	p, ok := c.props[name]
	return p.value, ok
}

// Origin is where a key's value was set; ok is false where it is not.
func (c *Configuration) Origin(name string) (Origin, bool) {
	p, ok := c.props[name]
	return p.origin, ok
}

// Get is a key's value with ${} expanded and the blanks around it off; ""
// where it is not set. An expansion without end is an error.
func (c *Configuration) Get(name string) (string, error) {
	p, ok := c.props[name]
	if !ok {
		return "", nil
	}
	v, err := c.expand(p.value)
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", p.origin, name, err)
	}
	return strings.TrimSpace(v), nil
}

// List is a comma separated value, blanks and empty items left out.
func (c *Configuration) List(name string) ([]string, error) {
	v, err := c.Get(name)
	if err != nil {
		return nil, err
	}
	var items []string
	for _, item := range strings.Split(v, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

// Bool is true or false in any case; anything else is otherwise, as in Hadoop.
func (c *Configuration) Bool(name string, otherwise bool) (bool, error) {
	v, err := c.Get(name)
	switch {
	case err != nil:
		return otherwise, err
	case strings.EqualFold(v, "true"):
		return true, nil
	case strings.EqualFold(v, "false"):
		return false, nil
	}
	return otherwise, nil
}
