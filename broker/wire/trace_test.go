package wire

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func ExampleTraceRequest() {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = 9, -1, 30000
	r.Topics = []kmsg.ProduceRequestTopic{{Topic: "orders", Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: 3, Records: make([]byte, 90)}}}}
	h := Header{Key: Produce, Version: 9, Correlation: 7, ClientID: "app"}
	fmt.Printf("%s\n", TraceRequest(nil, h, r.AppendTo(nil)))
	fmt.Printf("%s\n", TraceRequest(nil, h, []byte{1, 2}))
	// Output:
	// Produce v9 #7 from "app" {Acks=-1 TimeoutMillis=30000 Topics=[{Topic="orders" Partitions=[{Partition=3 Records=<90 bytes>}]}]}
	// Produce v9 #7 from "app" (2 bytes: response did not contain enough data to be valid)
}

func TestEveryServedRequestAndResponseCanBeTraced(t *testing.T) {
	for _, a := range APIs {
		for v := a.Min; v <= a.Max; v++ {
			h := Header{Key: a.Key, Version: v}
			req, resp := kmsg.RequestForKey(a.Key), kmsg.ResponseForKey(a.Key)
			req.SetVersion(v)
			resp.SetVersion(v)
			for _, s := range []string{
				string(TraceRequest(nil, h, req.AppendTo(nil))),
				string(TraceResponse(nil, h, resp.AppendTo(nil))),
			} {
				if s[len(s)-1] != '}' {
					t.Errorf("%s v%d: %s", a.Name, v, s)
				}
			}
		}
	}
}
