package oracle

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// wireCases are the stories of versions, frames and bodies.
func wireCases() []Case {
	return []Case{
		{"api versions", apiVersions},
		{"frames that are no requests", badFrames},
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
