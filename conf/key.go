// Package conf is what a Varve process knows of its configuration: one table
// of keys (Kafka's where the thing is Kafka's), the layers that set them, and
// where each effective value came from.
//
//	default < server.properties < environment (VARVE_…) < -D key=value
//	        < dynamic, for all brokers < dynamic, for this broker
//
// Names, types, defaults, bounds, synonyms and the wording of errors are those
// of Kafka 4.3. Load answers a bad configuration with all its faults, each
// with file, line and key. Topic is a topic's effective configs, computed from
// the broker's and its own; TopicEntries and BrokerEntries are what
// DescribeConfigs answers.
//
// Hadoop's site files are read by the package site below, Java's properties
// syntax by the package properties.
package conf

import (
	"slices"
	"strings"
)

// Key is one row of the table.
type Key struct {
	Name     string    // a name that ends in .* stands for all that begin so
	Type     Type      //
	Default  string    // as it would stand in a file
	Null     bool      // no default: unset is not the same as empty
	Check    Check     // zero: any value of the type
	Unit     Unit      // zero: none
	Scope    Scope     // zero: broker
	Update   Update    // zero: needs a restart; does not bind topic configs
	Status   Status    // zero: used
	Why      string    // of NoEffect the reason, of Refused what to use instead
	Internal bool      // for tests; not described, not documented
	Synonyms []Synonym // keys that give the value where this one is not set, in their order
	Doc      string    // one sentence
}

// Synonym is another key for the same thing, perhaps in another unit: its
// value times Factor is the first key's.
type Synonym struct {
	Name   string
	Factor int64
}

const (
	minute = 60 * 1000
	hour   = 60 * minute
)

// Type is a value's type. The numbers are DescribeConfigs' ConfigType.
type Type int8

const (
	Unknown Type = iota
	Bool
	String
	Int // 32 bits
	Short
	Long
	Double
	List // comma separated
	Class
	Password
)

var typeNames = [...]string{"UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}

// String is Kafka's name of the type, as in "Not a number of type INT".
func (t Type) String() string { return typeNames[t] }

// Unit is what a number counts.
type Unit string

const (
	Milliseconds   Unit = "ms"
	Seconds        Unit = "s"
	Minutes        Unit = "minutes"
	Hours          Unit = "hours"
	Bytes          Unit = "bytes"
	BytesPerSecond Unit = "bytes/s"
)

// Scope says where a key may stand.
type Scope uint8

const (
	Broker Scope = iota
	Topic
	Both
)

// Update says how a broker key may change while the broker runs.
type Update uint8

const (
	ReadOnly    Update = iota // at a restart
	PerBroker                 // for one broker
	ClusterWide               // for one broker, or for all
)

// String is Kafka's name of the mode, as in its documentation.
func (u Update) String() string { return [...]string{"read-only", "per-broker", "cluster-wide"}[u] }

// Status says what Varve does with a key.
type Status uint8

const (
	Used     Status = iota
	NoEffect        // accepted; nothing depends on it
	Refused         // a configuration that sets it does not start
)

// Keys is the table, by name.
var Keys = byName(topicKeys, serverKeys, logKeys, replicationKeys, coordinatorKeys, remoteKeys, elsewhereKeys, varveKeys)

func byName(tables ...[]Key) []Key {
	all := slices.Concat(tables...)
	slices.SortFunc(all, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Lookup returns the row of a name: its own, or the family's that it belongs
// to; nil where there is neither.
func Lookup(name string) *Key {
	if k := exact(name); k != nil {
		return k
	}
	for prefix := name; ; {
		dot := strings.LastIndexByte(prefix, '.')
		if dot < 0 {
			return nil
		}
		prefix = prefix[:dot]
		if k := exact(prefix + ".*"); k != nil {
			return k
		}
	}
}

func exact(name string) *Key {
	i, found := slices.BinarySearchFunc(Keys, name, func(k Key, name string) int { return strings.Compare(k.Name, name) })
	if !found {
		return nil
	}
	return &Keys[i]
}

// Family reports whether the row stands for many keys.
func (k *Key) Family() bool { return strings.HasSuffix(k.Name, ".*") }

// Sensitive reports whether the value must not be shown.
func (k *Key) Sensitive() bool { return k.Type == Password }

func (k *Key) forTopic() bool  { return k.Scope != Broker }
func (k *Key) forBroker() bool { return k.Scope != Topic }
