package api

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// A pump sends the same bytes again and again and reads the answers, without
// allocation of its own.
type pump struct {
	c       *peer
	request []byte
	answer  []byte
	epoch   []byte // in request: counted up by every stroke; nil without a session
}

func (r *rig) pump(req kmsg.Request) *pump {
	return &pump{c: r.dial(), request: kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1), answer: make([]byte, 1<<20)}
}

// sessionPump is a pump of incremental fetches in a new session of all 16 partitions.
func (r *rig) sessionPump(from map[int32]int64) *pump {
	id := ask[*kmsg.FetchResponse](r.dial(), fetchOf("out", 0, 0, from)).SessionID
	const mark = 0x7a7b7c7d
	p := r.pump(fetchOf("out", id, mark, nil))
	at := bytes.Index(p.request, binary.BigEndian.AppendUint32(nil, mark))
	p.epoch = p.request[at : at+4]
	binary.BigEndian.PutUint32(p.epoch, 0)
	return p
}

// stroke is one request with its answer.
func (p *pump) stroke() {
	if p.epoch != nil {
		binary.BigEndian.PutUint32(p.epoch, binary.BigEndian.Uint32(p.epoch)+1)
	}
	if _, err := p.c.nc.Write(p.request); err != nil {
		p.c.t.Fatal(err)
	}
	if _, err := io.ReadFull(p.c.nc, p.answer[:4]); err != nil {
		p.c.t.Fatal(err)
	}
	n := binary.BigEndian.Uint32(p.answer)
	if _, err := io.ReadFull(p.c.nc, p.answer[4:4+n]); err != nil {
		p.c.t.Fatal(err)
	}
}

// hotRequests are what clients send all the time, each ready to be pumped.
func hotRequests(t testing.TB) map[string]*pump {
	r := newRig(t, nil)
	r.topic("in", 1)
	r.topic("out", 16)
	from := map[int32]int64{}
	for p := range int32(16) {
		r.append("out", p, 1, 1000)
		from[p] = 0
	}
	end := map[int32]int64{}
	for p := range from {
		end[p] = 1
	}
	return map[string]*pump{
		"produce 16 KiB":             r.pump(produceOf("in", 0, -1, batch(16, 1000))),
		"fetch of 16 partitions":     r.pump(fetchOf("out", 0, -1, from)),
		"fetch of 16 without news":   r.pump(fetchOf("out", 0, -1, end)),
		"session of 16":              r.sessionPump(from),
		"session of 16 without news": r.sessionPump(end),
	}
}

// TestHotRequestsAllocateNothing counts the allocations of the whole process.
func TestHotRequestsAllocateNothing(t *testing.T) {
	if raceOn {
		t.Skip("the race detector allocates")
	}
	for name, p := range hotRequests(t) {
		for range 200 {
			p.stroke() // pools and files are warm
		}
		if p.epoch != nil {
			// frame size, correlation, no tags, throttle time, error code
			wantCode(t, name, int16(binary.BigEndian.Uint16(p.answer[4+4+1+4:])), kafka.None)
		}
		if n := testing.AllocsPerRun(500, p.stroke); n != 0 {
			t.Errorf("%s: %v allocations for a request", name, n)
		}
	}
}

// BenchmarkHotRequests asks what a request costs on a real socket, client included.
func BenchmarkHotRequests(b *testing.B) {
	for name, p := range hotRequests(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(p.request)))
			for b.Loop() {
				p.stroke()
			}
		})
	}
}
