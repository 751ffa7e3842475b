package conn

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
)

func TestPortsInUseAreNamed(t *testing.T) {
	s, err := Listen(t.Context(), []Endpoint{{"PLAINTEXT", "127.0.0.1", 0}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	taken := s.Bound()[0]
	if taken.Port == 0 {
		t.Fatal("port 0 has become none")
	}
	_, err = Listen(t.Context(), []Endpoint{{"A", "127.0.0.1", 0}, {"B", "127.0.0.1", taken.Port}})
	if err == nil || !strings.Contains(err.Error(), "listening on B://127.0.0.1:") || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("error %v", err)
	}
}

func TestEndpointsOfIPv6HaveBrackets(t *testing.T) {
	for e, want := range map[Endpoint]string{
		{"PLAINTEXT", "::1", 9092}: "PLAINTEXT://[::1]:9092",
		{"PLAINTEXT", "", 9092}:    "PLAINTEXT://:9092",
		{"OUT", "h.example", 1}:    "OUT://h.example:1",
	} {
		if e.String() != want {
			t.Errorf("%v, want %s", e, want)
		}
	}
	s, err := Listen(t.Context(), []Endpoint{{"PLAINTEXT", "::1", 0}})
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	defer s.Close()
	nc, err := net.Dial("tcp", s.Bound()[0].Address())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestAdvertisedListenersFollowKafkasRules(t *testing.T) {
	known := Resolver{
		Hostname: func() (string, error) { return "node7", nil },
		LookupHost: func(_ context.Context, host string) ([]string, error) {
			if host != "node7" {
				return nil, errors.New("no such host")
			}
			return []string{"10.0.0.7"}, nil
		},
	}
	lost := known
	lost.Hostname = func() (string, error) { return "nowhere", nil }
	for _, x := range []struct {
		name       string
		bound      []Endpoint
		advertised []Endpoint
		resolver   Resolver
		want       string // told, or a part of the error
	}{
		{"as said", []Endpoint{{"PLAINTEXT", "0.0.0.0", 9092}}, []Endpoint{{"PLAINTEXT", "b.example", 19092}}, lost, "PLAINTEXT://b.example:19092"},
		{"port of the listener", []Endpoint{{"PLAINTEXT", "", 41234}}, []Endpoint{{"PLAINTEXT", "b.example", 0}}, lost, "PLAINTEXT://b.example:41234"},
		{"IPv6", []Endpoint{{"PLAINTEXT", "::1", 9092}}, nil, lost, "PLAINTEXT://[::1]:9092"},
		{"own name", []Endpoint{{"PLAINTEXT", "", 9092}}, nil, known, "PLAINTEXT://node7:9092"},
		{"own name unknown", []Endpoint{{"PLAINTEXT", "", 9092}}, nil, lost, "this machine's name does not resolve: no such host; set advertised.listeners"},
		{"meta address", []Endpoint{{"PLAINTEXT", "0.0.0.0", 9092}}, nil, known, "set advertised.listeners"},
		{"meta address of IPv6", []Endpoint{{"PLAINTEXT", "::", 9092}}, nil, known, "set advertised.listeners"},
		{"meta address advertised", []Endpoint{{"PLAINTEXT", "", 9092}}, []Endpoint{{"PLAINTEXT", "0.0.0.0", 9092}}, known, "nonroutable meta-address 0.0.0.0"},
		{"no host advertised", []Endpoint{{"PLAINTEXT", "", 9092}}, []Endpoint{{"PLAINTEXT", "", 9092}}, known, "needs a host"},
		{"another listener", []Endpoint{{"PLAINTEXT", "", 9092}}, []Endpoint{{"SSL", "h", 9092}}, known, "listeners has no SSL"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := &ListenerSet{bound: x.bound}
			told, err := s.Advertised(t.Context(), x.advertised, x.resolver)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = told[0].String()
			}
			if !strings.Contains(got, x.want) {
				t.Errorf("%q, want %q", got, x.want)
			}
		})
	}
}
