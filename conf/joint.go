package conf

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
)

// joint finds faults between keys. Each is told at the setting that a reader
// would change.
func (c *Config) joint() []Fault {
	var faults []Fault
	at := func(key, format string, args ...any) {
		faults = append(faults, Fault{Error, c.Origin(key), key, fmt.Sprintf(format, args...)})
	}
	if c.Set("node.id") && c.Set("broker.id") && c.Int("node.id") != c.Int("broker.id") {
		at("broker.id", "is %d and node.id is %d: they are one number", c.Int("broker.id"), c.Int("node.id"))
	}
	c.jointListeners(at)
	c.jointLogs(at)
	c.jointTier(at)
	if low, high := c.Int("group.min.session.timeout.ms"), c.Int("group.max.session.timeout.ms"); low > high {
		at("group.min.session.timeout.ms", "is %d, more than group.max.session.timeout.ms=%d", low, high)
	}
	if wait, lag := c.Long("replica.fetch.wait.max.ms"), c.Long("replica.lag.time.max.ms"); wait > lag {
		at("replica.fetch.wait.max.ms", "is %d, more than replica.lag.time.max.ms=%d: followers would leave the in-sync replicas while they wait", wait, lag)
	}
	return faults
}

type faultAt func(key, format string, args ...any)

func (c *Config) jointListeners(at faultAt) {
	listeners, faults := c.endpoints("listeners")
	for _, f := range faults {
		at("listeners", "%s", f)
	}
	if len(listeners) == 0 && len(faults) == 0 {
		at("listeners", "has none for clients")
	}
	names := map[string]bool{}
	for i, e := range listeners {
		if names[e.Name] {
			at("listeners", "has %s twice", e.Name)
		}
		names[e.Name] = true
		if e.Protocol != "PLAINTEXT" {
			at("listeners", "has %s, which is %s: this version has PLAINTEXT only", e, e.Protocol)
		}
		for _, other := range listeners[:i] {
			if e.Port != 0 && e.Port == other.Port && e.Host == other.Host {
				at("listeners", "has %s and %s on one port", other, e)
			}
		}
	}
	if c.Value("advertised.listeners") != nil {
		c.jointAdvertised(at, names)
	}
	if name := c.InterBrokerListener(); c.Set("inter.broker.listener.name") && !names[name] {
		at("inter.broker.listener.name", "is %s, which is none of listeners", name)
	}
}

func (c *Config) jointAdvertised(at faultAt, names map[string]bool) {
	const key = "advertised.listeners"
	advertised, faults := c.endpoints(key)
	for _, f := range faults {
		at(key, "%s", f)
	}
	for _, e := range advertised {
		ip := net.ParseIP(e.Host)
		switch {
		case ip != nil && ip.IsUnspecified():
			at(key, "cannot use the nonroutable meta-address %s. Use a routable IP address.", e.Host)
		case e.Host == "":
			at(key, "has %s, which names no host", e)
		case !names[e.Name]:
			at(key, "has %s, which is none of listeners", e.Name)
		}
	}
}

func (c *Config) jointLogs(at faultAt) {
	dirs := c.List("log.dirs")
	key := "log.dirs"
	if !c.Set(key) {
		key = "log.dir"
	}
	if len(dirs) == 0 || slices.Contains(dirs, "") {
		at(key, "names an empty folder")
	}
	for i, dir := range dirs {
		if slices.Contains(dirs[:i], dir) {
			at(key, "names %s twice", dir)
		}
	}
	if ms := c.Long("log.roll.ms"); ms < 1 {
		at("log.roll.ms", "must be at least 1")
	}
	if ms := c.Long("log.retention.ms"); ms < 1 && ms != -1 {
		at("log.retention.ms", "is %d: it must be -1 (no limit) or at least 1", ms)
	}
	if n := c.Int("socket.request.max.bytes"); n < c.Int("message.max.bytes") {
		at("socket.request.max.bytes", "is %d, less than message.max.bytes=%d: no such batch could arrive", n, c.Int("message.max.bytes"))
	}
}

// tierSchemes are the stores that a tier may lie in; the others have no
// rename that refuses to overwrite, or hide which of several stores a path is in.
var tierSchemes = []string{"hdfs", "file"}

func (c *Config) jointTier(at faultAt) {
	if c.String("tier.url") != "" { // empty is none, over a file that names one
		u, err := url.Parse(c.String("tier.url"))
		switch {
		case err != nil:
			at("tier.url", "is no URL: %v", err)
		case u.Scheme == "":
			at("tier.url", "is %q: it must begin with hdfs:// or file://", c.String("tier.url"))
		case u.Scheme == "file" && u.Host != "":
			at("tier.url", "is %q: write file:///folder, with three slashes and from the root on", c.String("tier.url"))
		case !slices.Contains(tierSchemes, u.Scheme):
			at("tier.url", "is %q: only hdfs:// and file:// have the rename without overwrite that the tier rests on", u.Scheme+"://"+u.Host)
		case u.Path == "" || u.Path == "/":
			at("tier.url", "is the root of a file system: name a folder")
		}
	} else if c.Bool("remote.log.storage.system.enable") {
		at("remote.log.storage.system.enable", "is true and tier.url is not set")
	}
	if !c.TierEnabled() {
		return
	}
	for _, r := range retentions(c.Long("log.retention.ms"), c.Long("log.local.retention.ms"), c.Long("log.retention.bytes"), c.Long("log.local.retention.bytes")) {
		if fault := r.fault(); fault != nil {
			at("log."+r.local, "%s", "is wrong: "+fault.Error())
		}
	}
	if interval := c.Long("tier.upload.interval.ms"); interval == 0 || interval > math.MaxInt64/1_000_000 {
		at("tier.upload.interval.ms", "is %d: it must be -1 (off) or a number of milliseconds", interval)
	}
}

// TierEnabled reports whether topics may have remote.storage.enable: tier.url
// says where.
func (c *Config) TierEnabled() bool { return c.String("tier.url") != "" }
