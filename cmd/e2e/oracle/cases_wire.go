package oracle

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The stories that go through all keys.
const (
	sweepVersions = "versions that are not served"
	sweepBodies   = "bodies that are empty, cut, longer or tagged"
)

// wireCases are the stories of versions, frames and bodies.
func wireCases() []Case {
	return []Case{
		{"api versions", apiVersions},
		{"frames that are no requests", badFrames},
		{sweepVersions, unserved},
		{sweepBodies, bodies},
	}
}

func apiVersions(x *Exchange) {
	ask := func(v int16, name, version string) {
		x.Ask(fmt.Sprintf("as %q %q", name, version), same(func() kmsg.Request {
			req := at(v, kmsg.NewPtrApiVersionsRequest())
			req.ClientSoftwareName, req.ClientSoftwareVersion = name, version
			return req
		}))
	}
	for v := int16(0); v <= 4; v++ {
		ask(v, "oracle", "1.0")
	}
	for _, bad := range []string{"", " ", "-a", "a-", "a_b", "a b", "ä"} {
		ask(3, bad, "1.0")
		ask(3, "oracle", bad)
	}
}

func badFrames(x *Exchange) {
	request := func(key, version int16, rest ...byte) []byte {
		return append([]byte{byte(key >> 8), byte(key), byte(version >> 8), byte(version), 0, 0, 0, 7, 0, 1, 'c'}, rest...)
	}
	x.Frame("nothing", nil)
	x.Frame("one byte", []byte{0})
	x.Frame("half a header", []byte{0, 3, 0, 1, 0, 0})
	x.Frame("key 999", request(999, 0))
	x.Frame("key -1", request(-1, 0))
	x.Frame("metadata version 99", request(3, 99))
	x.Frame("metadata version -1", request(3, -1))
	x.Frame("produce version 0", request(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0))
	x.Frame("fetch version 3", request(1, 3))
	x.Frame("metadata with a negative array", request(3, 1, 0xff, 0xff, 0xff, 0xf0))
	x.Frame("metadata with a huge array", request(3, 1, 0x7f, 0xff, 0xff, 0xff))
	x.Frame("metadata cut short", request(3, 1, 0, 0, 0, 2, 0, 1, 'a'))
	x.Frame("a client id that runs out of the frame", []byte{0, 3, 0, 1, 0, 0, 0, 7, 0x7f, 0xff, 'c'})
}

// unserved asks the versions beside those that are served.
func unserved(x *Exchange) {
	for _, key := range slices.Sorted(maps.Keys(x.Versions)) {
		r := x.Versions[key]
		for _, v := range []int16{-1, r.Min - 1, r.Max + 1, 100} {
			x.Body(fmt.Sprintf("version %d", v), key, v, make([]byte, 40))
		}
	}
}

// bodies sends the least request of every version, and spoils it.
func bodies(x *Exchange) {
	x.Coordinator()
	x.ProducerID()
	for _, key := range slices.Sorted(maps.Keys(x.Versions)) {
		if key == kmsg.ApiVersions.Int16() {
			continue // asked above; 3 and 4 have names that may not be empty
		}
		x.Each(key, func(v int16) {
			body := leastRequest(key, v).AppendTo(nil)
			x.Body("the least", key, v, body)
			x.Body("empty", key, v, nil)
			if len(body) > 1 {
				x.Body("cut by a byte", key, v, body[:len(body)-1])
				x.Body("cut in half", key, v, body[:len(body)/2])
			}
			x.Body("with a byte behind it", key, v, append(slices.Clone(body), 0))
			if req := leastRequest(key, v); req.IsFlexible() {
				tagsOf(req).Set(77, []byte("who knows"))
				x.Body("with a tag that is not known", key, v, req.AppendTo(nil))
			}
		})
	}
}

// leastRequest names nothing and nobody.
func leastRequest(key, version int16) kmsg.Request {
	req := at(version, kmsg.RequestForKey(key))
	switch req := req.(type) {
	case *kmsg.ProduceRequest:
		req.Acks = 1 // 0 would have no answer
	case *kmsg.MetadataRequest:
		req.Topics = []kmsg.MetadataRequestTopic{} // null would list what other stories made
	}
	return req
}

func tagsOf(req kmsg.Request) *kmsg.Tags {
	return reflect.ValueOf(req).Elem().FieldByName("UnknownTags").Addr().Interface().(*kmsg.Tags)
}
