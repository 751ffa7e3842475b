package conn_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"varve/broker/conn"
	"varve/broker/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A doorbell answers heartbeats when somebody has rung.
type doorbell struct {
	mu struct {
		sync.Mutex
		rung    bool
		waiting *conn.Waker
	}
}

func (d *doorbell) Serve(c *conn.Conn, h wire.Header, body []byte, out *conn.Out) error {
	req, err := wire.Decode(h, body)
	if err != nil {
		return err
	}
	until := time.Now().Add(10 * time.Second)
	for !d.listen(c.Waker()) && c.Park(until) {
	}
	out.Respond(h, req.ResponseKind())
	return nil
}

// listen registers first and looks then: a ring in between is not lost.
func (d *doorbell) listen(w *conn.Waker) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.waiting = w
	return d.mu.rung
}

func (d *doorbell) ring() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.rung = true
	if d.mu.waiting != nil {
		d.mu.waiting.Wake()
	}
}

func (d *doorbell) Closed(*conn.Conn) {}

func Example() {
	ctx := context.Background()
	bell := &doorbell{}
	listeners, err := conn.Listen(ctx, []conn.Endpoint{{Name: "PLAINTEXT", Host: "127.0.0.1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := conn.NewServer(conn.Config{}, bell)
	listeners.Serve(server, func(err error) { fmt.Println(err) })

	client, err := net.Dial("tcp", listeners.Bound()[0].Address())
	if err != nil {
		fmt.Println(err)
		return
	}
	client.Write(kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrHeartbeatRequest(), 42))
	time.AfterFunc(10*time.Millisecond, bell.ring)
	answer := make([]byte, 10)
	n, _ := client.Read(answer)
	fmt.Printf("%x\n", answer[:n])
	client.Close()
	fmt.Println(server.Shutdown(ctx))
	// Output:
	// 000000060000002a0000
	// <nil>
}
