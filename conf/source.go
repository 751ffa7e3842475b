package conf

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"varve/conf/properties"
)

// Layer says what kind of source a setting is from; a higher one wins.
type Layer uint8

const (
	Default Layer = iota
	File
	Environment
	Flag
	DynamicDefault // altered at run time, for all brokers
	DynamicBroker  // altered at run time, for this broker
)

// Origin is where a value came from.
type Origin struct {
	Layer Layer
	Name  string // of the file, the variable
	Line  int    // in the file; 0 where there are none
}

func (o Origin) String() string {
	switch o.Layer {
	case Default:
		return "default"
	case File:
		if o.Line == 0 {
			return o.Name
		}
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	case Environment:
		return "environment " + o.Name
	case Flag:
		return "-D"
	case DynamicDefault:
		return "dynamic, all brokers"
	case DynamicBroker:
		return "dynamic, this broker"
	}
	panic(fmt.Sprintf("conf: layer %d", o.Layer))
}

// Setting is a key as one source sets it.
type Setting struct {
	Key    string
	Value  string
	Origin Origin
}

// Source is what one place sets, and what was wrong with it.
type Source struct {
	settings []Setting
	faults   []Fault
}

// FromFile reads a server.properties file. That it cannot be read is a fault
// of the source, told with the others.
func FromFile(path string) Source {
	text, err := os.ReadFile(path)
	if err != nil {
		return Source{faults: []Fault{{Severity: Error, Origin: Origin{Layer: File, Name: path}, Reason: err.Error()}}}
	}
	return FromProperties(path, text)
}

// FromProperties reads the text of a properties file; name is for messages.
func FromProperties(name string, text []byte) Source {
	var s Source
	entries, faults := properties.Parse(text)
	for _, f := range faults {
		s.faults = append(s.faults, Fault{Severity: Error, Origin: Origin{File, name, f.Line}, Reason: f.Reason})
	}
	lineOf := make(map[string]int, len(entries))
	for _, e := range entries {
		origin := Origin{File, name, e.Line}
		if before, again := lineOf[e.Key]; again {
			s.faults = append(s.faults, Fault{Severity: Warning, Origin: origin, Key: e.Key,
				Reason: fmt.Sprintf("is set again; line %d does not count", before)})
		}
		lineOf[e.Key] = e.Line
		s.settings = append(s.settings, Setting{e.Key, e.Value, origin})
	}
	return s
}

// EnvPrefix begins the names of variables that set keys: VARVE_NUM_PARTITIONS
// is num.partitions. One underscore is a dot, two are one, three are a dash.
const EnvPrefix = "VARVE_"

// notKeys are variables of the start scripts, which have the prefix too. Most
// are those of Hadoop's daemons; VARVE_LOG_DIR is where log4j writes, as
// HADOOP_LOG_DIR is, and the records' folders are VARVE_LOG_DIRS. Some are the tests'.
var notKeys = []string{"VARVE_CACHE", "VARVE_REQUIRE_SERVERS", "VARVE_SKIPS", "VARVE_VERSIONS", "VARVE_CONF_DIR", "VARVE_DAEMON_ROOT_LOGGER", "VARVE_HOME", "VARVE_IDENT_STRING", "VARVE_LOG4J", "VARVE_LOG_DIR",
	"VARVE_LOGFILE", "VARVE_OPTS", "VARVE_PID_DIR", "VARVE_ROOT_LOGGER"}

// FromEnviron takes what VARVE_… variables set; environ is as os.Environ's.
func FromEnviron(environ []string) Source {
	var s Source
	names := strings.NewReplacer("___", "-", "__", "_", "_", ".")
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, EnvPrefix)
		if !ours || slices.Contains(notKeys, name) {
			continue
		}
		key := names.Replace(strings.ToLower(rest))
		s.settings = append(s.settings, Setting{key, value, Origin{Layer: Environment, Name: name}})
	}
	slices.SortFunc(s.settings, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return s
}

// FromDefines takes -D flags, key=value each; a later one wins.
func FromDefines(defines []string) Source {
	var s Source
	for _, define := range defines {
		key, value, ok := strings.Cut(define, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			s.faults = append(s.faults, Fault{Severity: Error, Origin: Origin{Layer: Flag}, Key: define, Reason: "is not key=value"})
			continue
		}
		s.settings = append(s.settings, Setting{key, value, Origin{Layer: Flag}})
	}
	return s
}

// FromDynamic takes configs that were altered while brokers ran; layer is
// DynamicDefault or DynamicBroker.
func FromDynamic(layer Layer, values map[string]string) Source {
	var s Source
	for _, key := range sortedKeys(values) {
		s.settings = append(s.settings, Setting{key, values[key], Origin{Layer: layer}})
	}
	return s
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
