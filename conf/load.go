package conf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Config is the effective configuration of a process. It does not change;
// With makes another.
type Config struct {
	// Faults are those that did not stop the start: notes and warnings.
	Faults []Fault

	sources  []Source
	settings map[string][]Setting // of a key, the one that counts first
	values   map[string]any       // of a key that is set, parsed

	topicDefaults func() TopicConfig
}

// Load joins sources, later ones of the same layer on top. On an error, which
// is *Invalid, the Config still answers every key that was right.
func Load(sources ...Source) (*Config, error) {
	c := &Config{sources: sources, settings: map[string][]Setting{}, values: map[string]any{}}
	var faults []Fault
	for _, s := range sources {
		faults = append(faults, s.faults...)
		for _, setting := range s.settings {
			c.settings[setting.Key] = append([]Setting{setting}, c.settings[setting.Key]...)
		}
	}
	for _, all := range c.settings {
		slices.SortStableFunc(all, func(a, b Setting) int { return cmp.Compare(b.Origin.Layer, a.Origin.Layer) })
		faults = append(faults, c.take(all[0])...)
	}
	c.topicDefaults = sync.OnceValue(c.brokerTopic)
	faults = append(faults, c.joint()...)
	return c, c.sort(faults)
}

// With is c with more sources on top, for configs altered at run time.
func (c *Config) With(sources ...Source) (*Config, error) {
	return Load(slices.Concat(c.sources, sources)...)
}

// sort keeps notes and warnings in c and returns the rest as an error.
func (c *Config) sort(faults []Fault) error {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Origin.Layer, b.Origin.Layer), strings.Compare(a.Origin.Name, b.Origin.Name),
			cmp.Compare(a.Origin.Line, b.Origin.Line), strings.Compare(a.Key, b.Key))
	})
	var errors []Fault
	for _, f := range faults {
		if f.Severity == Error {
			errors = append(errors, f)
		} else {
			c.Faults = append(c.Faults, f)
		}
	}
	if len(errors) > 0 {
		return &Invalid{errors}
	}
	return nil
}

// take parses the setting that counts and says what there is to say of it.
func (c *Config) take(s Setting) []Fault {
	fault := func(severity Severity, reason string) []Fault {
		return []Fault{{severity, s.Origin, s.Key, reason}}
	}
	k := Lookup(s.Key)
	switch {
	case k == nil:
		reason := "is not a known key and is ignored"
		if near := nearest(s.Key); near != "" {
			reason += "; did you mean " + near + "?"
		}
		return fault(Warning, reason)
	case !k.forBroker():
		reason := "is a topic config and is ignored"
		if len(k.Synonyms) > 0 {
			reason += "; " + k.Synonyms[0].Name + " is its default for all topics"
		}
		return fault(Warning, reason)
	case k.Status == Refused:
		return fault(Error, "is refused: "+k.Why)
	}
	v, err := k.Parse(s.Value)
	if err != nil {
		return fault(Error, "is wrong: "+err.Error())
	}
	c.values[s.Key] = v
	if k.Status == NoEffect {
		return fault(Note, "has no effect: "+k.Why)
	}
	return nil
}

// Set reports whether a source sets the key itself.
func (c *Config) Set(name string) bool { return len(c.settings[name]) > 0 }

// Origin is where the effective value of a key came from.
func (c *Config) Origin(name string) Origin {
	_, s := c.resolve(name)
	return s.Origin
}

// Value is the effective value of a key, nil where it has none.
func (c *Config) Value(name string) any {
	v, _ := c.resolve(name)
	return v
}

// resolve finds a key's value: the first of the key and its synonyms that is
// set, else the first that has a default.
func (c *Config) resolve(name string) (any, Setting) {
	k := exact(name)
	if k == nil {
		panic("conf: no key " + name + " in the table")
	}
	if v, ok := c.values[name]; ok {
		return v, c.settings[name][0]
	}
	for _, s := range k.Synonyms {
		if v, ok := c.values[s.Name]; ok && s.Name != name {
			return s.convert(v), c.settings[s.Name][0]
		}
	}
	if !k.Null {
		return k.defaultValue(), Setting{Key: name, Value: k.Default}
	}
	for _, s := range k.Synonyms {
		if other := exact(s.Name); !other.Null {
			return s.convert(other.defaultValue()), Setting{Key: s.Name, Value: other.Default}
		}
	}
	return nil, Setting{Key: name}
}

// convert turns a synonym's value into the key's unit; below zero means no
// limit, whatever the unit.
func (s Synonym) convert(v any) any {
	n, ok := v.(int64)
	switch {
	case !ok || s.Factor == 1:
		return v
	case n < 0:
		return int64(-1)
	}
	return n * s.Factor
}

func (k *Key) defaultValue() any {
	v, reason := parse(k.Type, k.Default)
	if reason != "" {
		panic(fmt.Sprintf("conf: default %q of %s: %s", k.Default, k.Name, reason))
	}
	return v
}

// Each getter panics where the table knows no such key of that type: that is
// the caller's mistake. A key without a value is the zero value; Value tells
// the difference.

func get[T any](c *Config, name string) T {
	v := c.Value(name)
	if v == nil {
		var zero T
		return zero
	}
	typed, ok := v.(T)
	if !ok {
		panic(fmt.Sprintf("conf: %s is a %T", name, v))
	}
	return typed
}

// Bool is the value of a BOOLEAN key.
func (c *Config) Bool(name string) bool { return get[bool](c, name) }

// Int is the value of an INT or SHORT key.
func (c *Config) Int(name string) int { return int(get[int64](c, name)) }

// Long is the value of a LONG, INT or SHORT key.
func (c *Config) Long(name string) int64 { return get[int64](c, name) }

// Double is the value of a DOUBLE key.
func (c *Config) Double(name string) float64 { return get[float64](c, name) }

// String is the value of a STRING, CLASS or PASSWORD key.
func (c *Config) String(name string) string { return get[string](c, name) }

// List is the value of a LIST key.
func (c *Config) List(name string) []string { return get[[]string](c, name) }

// Effective is one line of what `varve conf -dump` and /conf show.
type Effective struct {
	Key    *Key
	Name   string
	Value  string // "" where there is none, ****** where it is a password
	Origin Origin
}

// Effective lists every broker key with its value and origin, by name.
func (c *Config) Effective() []Effective {
	var all []Effective
	for i := range Keys {
		k := &Keys[i]
		if k.Family() || k.Internal || !k.forBroker() {
			continue
		}
		v, s := c.resolve(k.Name)
		e := Effective{Key: k, Name: k.Name, Value: Format(v), Origin: s.Origin}
		if k.Sensitive() && v != nil {
			e.Value = "******"
		}
		all = append(all, e)
	}
	return all
}
