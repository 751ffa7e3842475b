package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// An Endpoint is a named address: of listeners, to listen on, or of
// advertised.listeners, to be told to clients.
type Endpoint struct {
	Name string
	Host string // "" is every interface; IPv6 without brackets
	Port int    // 0 is a free one
}

// Address is host:port, IPv6 in brackets.
func (e Endpoint) Address() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }

func (e Endpoint) String() string { return e.Name + "://" + e.Address() }

// A ListenerSet is the broker's open listeners.
type ListenerSet struct {
	bound     []Endpoint // with the ports that they have got
	listeners []net.Listener
}

// Listen opens all listeners, or none.
func Listen(ctx context.Context, endpoints []Endpoint) (*ListenerSet, error) {
	s := &ListenerSet{}
	for _, e := range endpoints {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", e.Address())
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("listening on %v: %w%s", e, err, advice(err))
		}
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			e.Port = a.Port
		}
		s.bound = append(s.bound, e)
		s.listeners = append(s.listeners, l)
	}
	return s, nil
}

// Bound are the listeners' endpoints with their real ports.
func (s *ListenerSet) Bound() []Endpoint { return slices.Clone(s.bound) }

// Serve has the server accept on every listener, each in a goroutine of its own;
// failed is told when one ends before Shutdown.
func (s *ListenerSet) Serve(server *Server, failed func(error)) {
	for i, l := range s.listeners {
		name := s.bound[i].Name
		go func() {
			if err := server.Serve(name, l); err != nil {
				failed(err)
			}
		}()
	}
}

// Close closes all listeners; for a start that fails before Serve.
func (s *ListenerSet) Close() {
	for _, l := range s.listeners {
		l.Close()
	}
}

// A Resolver is what the machine knows of names: os.Hostname and a net.Resolver's
// LookupHost.
type Resolver struct {
	Hostname   func() (string, error)
	LookupHost func(ctx context.Context, host string) ([]string, error)
}

// Advertised is what clients are told of each listener, by Kafka's rules: what
// advertised.listeners says; a port 0 there is the listener's own. Where it is not
// set (nil), the listeners themselves, and for an empty host the machine's name,
// which must resolve: a client that cannot resolve it connects once and never
// again. An address that means every interface is refused.
func (s *ListenerSet) Advertised(ctx context.Context, advertised []Endpoint, r Resolver) ([]Endpoint, error) {
	if advertised == nil {
		return s.advertiseBound(ctx, r)
	}
	told := slices.Clone(advertised)
	for i := range told {
		e := &told[i]
		at := slices.IndexFunc(s.bound, func(b Endpoint) bool { return strings.EqualFold(b.Name, e.Name) })
		switch {
		case at < 0:
			return nil, fmt.Errorf("advertised.listeners has %v, and listeners has no %s", *e, e.Name)
		case e.Host == "":
			return nil, fmt.Errorf("advertised.listeners has %v: it needs a host that clients can reach", *e)
		case unspecified(e.Host):
			return nil, fmt.Errorf("advertised.listeners cannot use the nonroutable meta-address %s: name one that clients can reach", e.Host)
		case e.Port == 0:
			e.Port = s.bound[at].Port
		}
	}
	return told, nil
}

func (s *ListenerSet) advertiseBound(ctx context.Context, r Resolver) ([]Endpoint, error) {
	told := s.Bound()
	for i := range told {
		e := &told[i]
		switch {
		case unspecified(e.Host):
			return nil, fmt.Errorf("listeners has %v and advertised.listeners is not set: clients cannot be told the meta-address %s; set advertised.listeners", *e, e.Host)
		case e.Host == "":
			name, err := ownName(ctx, r)
			if err != nil {
				return nil, fmt.Errorf("listeners has %v without a host and advertised.listeners is not set: %w; set advertised.listeners", *e, err)
			}
			e.Host = name
		}
	}
	return told, nil
}

// ownName is the machine's name, if it resolves.
func ownName(ctx context.Context, r Resolver) (string, error) {
	name, err := r.Hostname()
	if err != nil {
		return "", fmt.Errorf("asking for this machine's name: %w", err)
	}
	if _, err := r.LookupHost(ctx, name); err != nil {
		return "", fmt.Errorf("this machine's name does not resolve: %w", err)
	}
	return name, nil
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// advice says what to do about a port that cannot be had; "" where the error says it.
func advice(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return ": another program listens there; end it, or choose another port (0 is a free one)"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return ": this machine has no such address; 0.0.0.0 is all that it has"
	}
	return ""
}
