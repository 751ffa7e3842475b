package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"varve/broker/kafka"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// frame is a request as a client would send it, without its size.
func frame(t testing.TB, r kmsg.Request) []byte {
	t.Helper()
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("tester"))
	return f.AppendRequest(nil, r, 7)[PrefixSize:]
}

func TestHeadersOfEveryServedRequestAreRead(t *testing.T) {
	for _, a := range APIs {
		for v := a.Min; v <= a.Max; v++ {
			r := kmsg.RequestForKey(a.Key)
			r.SetVersion(v)
			h, body, err := ParseHeader(frame(t, r))
			if err != nil {
				t.Fatalf("%s v%d: %v", a.Name, v, err)
			}
			if want := (Header{a.Key, v, 7, "tester"}); h != want {
				t.Errorf("header %v, want %v", h, want)
			}
			if want := r.AppendTo(nil); !bytes.Equal(body, want) {
				t.Errorf("%s v%d: body %x, want %x", a.Name, v, body, want)
			}
		}
	}
}

func TestRequestsNotServedAreRefusedByName(t *testing.T) {
	old := kmsg.NewPtrProduceRequest()
	old.Version = 2
	future := kmsg.NewPtrMetadataRequest()
	future.Version = 99
	other := kmsg.NewPtrLeaderAndISRRequest()
	for want, r := range map[string]kmsg.Request{
		"Produce version 2 is not served: versions 3 to 13 are":   old,
		"Metadata version 99 is not served: versions 0 to 13 are": future,
		"request 4 (LeaderAndISR) version 0 is not served":        other,
	} {
		_, _, err := ParseHeader(frame(t, r))
		if u := (*UnsupportedError)(nil); !errors.As(err, &u) || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}

func TestUnknownApiVersionsIsPassedOnWithoutBody(t *testing.T) {
	r := kmsg.NewPtrApiVersionsRequest()
	r.Version = 5
	h, body, err := ParseHeader(frame(t, r))
	if err != nil || body != nil || h.Version != 5 || h.Correlation != 7 {
		t.Fatalf("got %v, body %x, error %v", h, body, err)
	}
	out := AppendResponseHeader(nil, h)
	out = ApiVersionsResponse(h.Version, APIs, Features{}).AppendTo(out)
	SetFrameSize(out, len(out))
	// size 16, correlation 7, code 35, one row: key 18, 0 to 4
	if got, want := hex.EncodeToString(out), "00000010"+"00000007"+"0023"+"00000001"+"0012"+"0000"+"0004"; got != want {
		t.Errorf("answer\n %s, want\n %s", got, want)
	}
}

func TestResponseHeaders(t *testing.T) {
	for _, x := range []struct {
		h    Header
		want string
	}{
		{Header{Key: Metadata, Version: 8, Correlation: 1}, "0000000000000001"},
		{Header{Key: Metadata, Version: 9, Correlation: 1}, "000000000000000100"},
		{Header{Key: ApiVersions, Version: 4, Correlation: 1}, "0000000000000001"},
	} {
		if got := hex.EncodeToString(AppendResponseHeader(nil, x.h)); got != x.want {
			t.Errorf("%v: %s, want %s", x.h, got, x.want)
		}
	}
}

func TestHeaderCutAnywhereIsAnError(t *testing.T) {
	r := kmsg.NewPtrMetadataRequest()
	r.Version = 9
	f := frame(t, r)
	whole := len(f) - len(r.AppendTo(nil))
	for n := range whole {
		if _, _, err := ParseHeader(f[:n]); err == nil {
			t.Errorf("a header cut at %d of %d passes", n, whole)
		}
	}
}

func TestFrameSizesAreHeldToTheLimit(t *testing.T) {
	for prefix, want := range map[string]string{
		"\x00\x00\x00\x0a": "",
		"\x00\x00\x04\x00": "",
		"\x00\x00\x04\x01": "above socket.request.max.bytes",
		"\x00\x00\x00\x09": "below 10 bytes",
		"\xff\xff\xff\xff": "below 10 bytes",
		"\x16\x03\x01\x02": "speaks TLS",
		"GET ":             "speaks HTTP",
	} {
		_, err := FrameSize([]byte(prefix), 1024)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", prefix, err, want)
		}
	}
}

func TestOldApiVersionsLeavesOutFeaturesFromZero(t *testing.T) {
	f := Features{Epoch: 3, List: []Feature{{"group.version", 0, 1, 1}, {"metadata.version", 7, 30, 29}}}
	for v, want := range map[int16]int{0: 0, 2: 0, 3: 1, 4: 2} {
		r := ApiVersionsResponse(v, APIs, f)
		if len(r.SupportedFeatures) != want {
			t.Errorf("v%d supports %d features, want %d", v, len(r.SupportedFeatures), want)
		}
		if len(r.ApiKeys) != len(APIs) || r.ApiKeys[0].MinVersion != 0 || r.ErrorCode != int16(kafka.None) {
			t.Errorf("v%d: %d keys from %d, code %d", v, len(r.ApiKeys), r.ApiKeys[0].MinVersion, r.ErrorCode)
		}
	}
}

func TestSoftwareNamesFollowKIP511(t *testing.T) {
	for s, want := range map[string]bool{
		"apache-kafka-java": true, "2.4.0-SNAPSHOT": true, "a": true,
		"": false, "-a": false, "a.": false, "a b": false, "é": false,
	} {
		if got := ValidSoftware(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	for _, a := range APIs {
		r := kmsg.RequestForKey(a.Key)
		r.SetVersion(a.Max)
		f.Add(frame(f, r))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := ParseHeader(b)
		if err != nil || body == nil {
			return
		}
		if !Supported(h.Key, h.Version) || len(body) > len(b) {
			t.Fatalf("%v with a body of %d of %d bytes passes", h, len(body), len(b))
		}
		if r, err := Decode(h, body); err == nil && r.Key() != h.Key {
			t.Fatalf("decoded %d as %d", h.Key, r.Key())
		}
		TraceRequest(nil, h, body)
	})
}
