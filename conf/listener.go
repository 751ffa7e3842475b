package conf

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Endpoint is one address of listeners or advertised.listeners.
type Endpoint struct {
	Name     string // of the listener, upper case
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	Host     string // "" is every interface; IPv6 without brackets
	Port     int    // 0 is a free one
}

// Address is host:port, IPv6 in brackets.
func (e Endpoint) Address() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }

func (e Endpoint) String() string { return e.Name + "://" + e.Address() }

// Listeners are the broker's addresses to listen on: those of listeners that
// are not a controller's.
func (c *Config) Listeners() []Endpoint {
	all, _ := c.endpoints("listeners")
	return all
}

// Advertised are the addresses that clients are told; where
// advertised.listeners is not set, Listeners, whose empty hosts and zero ports
// the process fills in.
func (c *Config) Advertised() []Endpoint {
	if c.Value("advertised.listeners") == nil {
		return c.Listeners()
	}
	all, _ := c.endpoints("advertised.listeners")
	return all
}

// InterBrokerListener is the listener that brokers use among themselves.
func (c *Config) InterBrokerListener() string {
	if name := c.String("inter.broker.listener.name"); name != "" {
		return strings.ToUpper(name)
	}
	return c.String("security.inter.broker.protocol")
}

// endpoints parses a list of addresses and leaves the controllers' out.
func (c *Config) endpoints(key string) ([]Endpoint, []string) {
	var (
		all    []Endpoint
		faults []string
	)
	protocols, bad := c.protocols()
	faults = append(faults, bad...)
	for _, item := range c.List(key) {
		e, err := parseEndpoint(item)
		switch {
		case err != nil:
			faults = append(faults, err.Error())
			continue
		case c.controllerListener(e.Name):
			continue
		}
		if e.Protocol = protocols[e.Name]; e.Protocol == "" {
			faults = append(faults, fmt.Sprintf("has a listener %s whose protocol listener.security.protocol.map does not say", e.Name))
			continue
		}
		all = append(all, e)
	}
	return all, faults
}

func (c *Config) controllerListener(name string) bool {
	for _, n := range c.List("controller.listener.names") {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// protocols is listener.security.protocol.map.
func (c *Config) protocols() (map[string]string, []string) {
	m := map[string]string{}
	var faults []string
	for _, item := range strings.Split(c.String("listener.security.protocol.map"), ",") {
		name, protocol, ok := strings.Cut(strings.TrimSpace(item), ":")
		if !ok {
			faults = append(faults, fmt.Sprintf("meets %q in listener.security.protocol.map, which is not NAME:PROTOCOL", item))
			continue
		}
		m[strings.ToUpper(strings.TrimSpace(name))] = strings.ToUpper(strings.TrimSpace(protocol))
	}
	return m, faults
}

// parseEndpoint reads NAME://host:port, NAME://[v6]:port and NAME://v6:port.
func parseEndpoint(s string) (Endpoint, error) {
	name, address, ok := strings.Cut(s, "://")
	colon := strings.LastIndexByte(address, ':')
	if !ok || name == "" || colon < 0 {
		return Endpoint{}, fmt.Errorf("has %q, which is not NAME://host:port", s)
	}
	host, port := address[:colon], address[colon+1:]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if strings.ContainsAny(host, "[]/@ ") {
		return Endpoint{}, fmt.Errorf("has %q, whose host cannot be one", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Endpoint{}, fmt.Errorf("has %q, whose port is not between 0 and 65535", s)
	}
	return Endpoint{Name: strings.ToUpper(name), Host: host, Port: int(n)}, nil
}
