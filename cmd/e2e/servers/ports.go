package servers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// Ports are taken below the range from which Linux and macOS give out the ports
// of outgoing connections, so that none of those can take one between the
// look and the server's bind.
const portMin, portMax = 15000, 32000

var given struct {
	sync.Mutex
	ports map[int]bool // what this program has given out; never given twice
}

// FreePort returns a port of loopback on which nothing listens and which this
// program has not been given before.
func FreePort() (int, error) {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = make(map[int]bool)
	}
	for range 1000 {
		port := portMin + rand.IntN(portMax-portMin)
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		l.Close()
		given.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d in 1000 tries", portMin, portMax)
}

// freeAddrs returns n addresses HOST:PORT on loopback.
func freeAddrs(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		addrs[i] = loopback(port)
	}
	return addrs, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// accepts says whether something accepts connections at addr.
func accepts(ctx context.Context, addr string) error {
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

func portOf(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(fmt.Sprintf("servers: %q is not HOST:PORT", addr))
	}
	return port
}
