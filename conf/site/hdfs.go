package site

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// DefaultPort is a NameNode's RPC port where none is named.
const DefaultPort = 8020

// HDFS answers what a client must know of one file system.
type HDFS struct {
	// Nameservice is the logical name, "" where the URI names a host.
	Nameservice string
	// NameNodes are host:port, in the order of the configuration, at least one.
	NameNodes []string
	// RandomOrder asks the client to begin with any of them.
	RandomOrder bool

	// UseDatanodeHostname: connect to DataNodes by name, not by address.
	UseDatanodeHostname bool
	// Kerberos is the NameNodes' principal, _HOST still in it; "" is SIMPLE.
	Kerberos string
	// RPCProtection is hadoop.rpc.protection, in its order: authentication,
	// integrity, privacy.
	RPCProtection []string
	// DataTransferProtection is dfs.data.transfer.protection, as above; empty is none.
	DataTransferProtection []string
	// Replication and BlockSize are the cluster's for new files; 0 where not said.
	Replication int
	BlockSize   int64
	// UmaskMode is fs.permissions.umask-mode, "022" where not said.
	UmaskMode string

	// FailoverAttempts, FailoverBaseMs and FailoverMaxMs pace the change from one
	// NameNode to the next.
	FailoverAttempts int
	FailoverBaseMs   int
	FailoverMaxMs    int
}

// DefaultFS is fs.defaultFS, file:/// where not set.
func (c *Configuration) DefaultFS() (string, error) {
	v, err := c.Get("fs.defaultFS")
	if err != nil || v == "" {
		return "file:///", err
	}
	return v, nil
}

// HDFS resolves hdfs://nameservice/… or hdfs://host[:port]/…; without a host,
// hdfs:///…, fs.defaultFS says which. A name counts as logical when
// dfs.nameservices has it and dfs.client.failover.proxy.provider.<ns> is set;
// there is no way from a logical name to DNS.
func (c *Configuration) HDFS(uri string) (HDFS, error) {
	authority, err := c.authority(uri)
	if err != nil {
		return HDFS{}, err
	}
	g := getter{c: c}
	h := g.client()
	nameservices := g.list("dfs.nameservices")
	provider := g.get("dfs.client.failover.proxy.provider." + authority)
	if slices.Contains(nameservices, authority) {
		h.Nameservice = authority
		h.NameNodes = g.nameNodes(authority)
		h.RandomOrder = g.bool("dfs.client.failover.random.order."+authority, g.bool("dfs.client.failover.random.order", true))
	}
	switch {
	case g.err != nil:
		return HDFS{}, g.err
	case len(h.NameNodes) > 1 && provider == "":
		return HDFS{}, fmt.Errorf("%s: dfs.client.failover.proxy.provider.%s is not set, so %s would be looked up as a host", uri, authority, authority)
	case len(h.NameNodes) > 0:
		return h, nil
	case h.Nameservice != "" && provider != "":
		return HDFS{}, fmt.Errorf("could not find any configured addresses for URI %s", uri)
	}
	h.Nameservice = ""
	address, err := hostPort(authority)
	if err != nil {
		return HDFS{}, fmt.Errorf("%s: %w", uri, err)
	}
	h.NameNodes = []string{address}
	return h, nil
}

// NameNodes is the part of HDFS that most ask for.
func (c *Configuration) NameNodes(uri string) ([]string, error) {
	h, err := c.HDFS(uri)
	return h.NameNodes, err
}

// authority is the host part of an hdfs:// URI, or that of fs.defaultFS.
func (c *Configuration) authority(uri string) (string, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", err
	case u.Scheme != "hdfs":
		return "", fmt.Errorf("%s is not an hdfs:// URI", uri)
	case u.Host != "":
		return u.Host, nil
	}
	fs, err := c.DefaultFS()
	if err != nil {
		return "", err
	}
	d, err := url.Parse(fs)
	if err != nil || d.Scheme != "hdfs" || d.Host == "" {
		return "", fmt.Errorf("%s names no NameNode and fs.defaultFS is %s", uri, fs)
	}
	return d.Host, nil
}

// hostPort adds the default port.
func hostPort(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), strconv.Itoa(DefaultPort)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
		return "", fmt.Errorf("%q is not host:port", s)
	}
	return net.JoinHostPort(host, port), nil
}

// getter asks for many keys and keeps the first error.
type getter struct {
	c   *Configuration
	err error
}

func (g *getter) keep(err error) {
	if g.err == nil {
		g.err = err
	}
}

func (g *getter) get(name string) string {
	v, err := g.c.Get(name)
	g.keep(err)
	return v
}

func (g *getter) list(name string) []string {
	v, err := g.c.List(name)
	g.keep(err)
	return v
}

func (g *getter) bool(name string, otherwise bool) bool {
	v, err := g.c.Bool(name, otherwise)
	g.keep(err)
	return v
}

func (g *getter) int(name string, otherwise int64, parse func(string) (int64, error)) int64 {
	text := g.get(name)
	if text == "" {
		return otherwise
	}
	v, err := parse(text)
	if err != nil {
		origin, _ := g.c.Origin(name)
		g.keep(fmt.Errorf("%s: %s: %w", origin, name, err))
	}
	return v
}

// nameNodes are the addresses of a nameservice: those of dfs.ha.namenodes, or
// the one without a node id.
func (g *getter) nameNodes(ns string) []string {
	const key = "dfs.namenode.rpc-address."
	var addresses []string
	add := func(name string) {
		if text := g.get(name); text != "" {
			address, err := hostPort(text)
			if err != nil {
				origin, _ := g.c.Origin(name)
				err = fmt.Errorf("%s: %s: %w", origin, name, err)
			}
			g.keep(err)
			addresses = append(addresses, address)
		}
	}
	ids := g.list("dfs.ha.namenodes." + ns)
	for _, id := range ids {
		add(key + ns + "." + id)
	}
	if len(ids) == 0 {
		add(key + ns)
	}
	return addresses
}

func (g *getter) client() HDFS {
	h := HDFS{
		UseDatanodeHostname:    g.bool("dfs.client.use.datanode.hostname", false),
		DataTransferProtection: g.list("dfs.data.transfer.protection"),
		RPCProtection:          g.list("hadoop.rpc.protection"),
		Replication:            int(g.int("dfs.replication", 0, decimal)),
		BlockSize:              g.int("dfs.blocksize", 0, Size),
		UmaskMode:              g.get("fs.permissions.umask-mode"),
		FailoverAttempts:       int(g.int("dfs.client.failover.max.attempts", 15, decimal)),
		FailoverBaseMs:         int(g.int("dfs.client.failover.sleep.base.millis", 500, decimal)),
		FailoverMaxMs:          int(g.int("dfs.client.failover.sleep.max.millis", 15000, decimal)),
	}
	if g.get("hadoop.security.authentication") == "kerberos" {
		h.Kerberos = g.get("dfs.namenode.kerberos.principal")
	}
	if h.UmaskMode == "" {
		h.UmaskMode = "022"
	}
	if len(h.RPCProtection) == 0 {
		h.RPCProtection = []string{"authentication"}
	}
	return h
}

func decimal(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return n, nil
}

// Size reads a number with Hadoop's binary prefixes: 64k, 128m.
func Size(s string) (int64, error) {
	const prefixes = "kmgtpe"
	number, shift := s, 0
	if n := len(s); n > 0 && (s[n-1] < '0' || s[n-1] > '9') {
		i := strings.IndexByte(prefixes, s[n-1]|0x20)
		if i < 0 {
			return 0, fmt.Errorf("invalid size prefix '%s' in '%s'. Allowed prefixes are k, m, g, t, p, e(case insensitive)", s[n-1:], s)
		}
		number, shift = s[:n-1], 10*(i+1)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	if n<<shift>>shift != n {
		return 0, fmt.Errorf("%s does not fit into 64 bits", s)
	}
	return n << shift, nil
}
