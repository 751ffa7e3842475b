package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Header says what a request is and who sent it.
type Header struct {
	Key, Version int16
	Correlation  int32
	ClientID     string // aliases the frame; "" where null
}

// An UnsupportedError is a request of a key or a version that is not served. Kafka
// closes the connection; so do we.
type UnsupportedError struct{ Header Header }

func (e *UnsupportedError) Error() string {
	h := e.Header
	a, ok := Lookup(h.Key)
	if !ok {
		return fmt.Sprintf("request %d (%s) version %d is not served", h.Key, Name(h.Key), h.Version)
	}
	return fmt.Sprintf("%s version %d is not served: versions %d to %d are", a.Name, h.Version, a.Min, a.Max)
}

// String is the request's name and version, for logs.
func (h Header) String() string { return fmt.Sprintf("%s v%d", Name(h.Key), h.Version) }

// Flexible tells whether the request's body has compact lengths and tags.
func (h Header) Flexible() bool { return flexible(h.Key, h.Version) }

// ParseHeader splits a frame, without its size, into header and body. A request
// that is not served is an *UnsupportedError, with one exception: ApiVersions of
// any version is passed on, with a nil body where the version is unknown, because
// it is answered (KIP-511).
func ParseHeader(frame []byte) (Header, []byte, error) {
	c := cursor{b: frame}
	h := Header{Key: c.int16(), Version: c.int16(), Correlation: c.int32()}
	h.ClientID, _ = c.nullableString(false) // never compact, whatever the version
	if c.bad {
		return h, nil, &DecodeError{"request header", "it ends early"}
	}
	if !Supported(h.Key, h.Version) {
		if h.Key == ApiVersions {
			return h, nil, nil
		}
		return h, nil, &UnsupportedError{h}
	}
	if h.Flexible() {
		c.skipTags()
	}
	if c.bad {
		return h, nil, &DecodeError{h.String() + " header", "its tags end early"}
	}
	return h, c.b, nil
}

// AppendResponseHeader appends the header of the answer to h, after a size field
// that SetFrameSize fills in.
func AppendResponseHeader(dst []byte, h Header) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Correlation))
	if h.Key != ApiVersions && h.Flexible() {
		dst = append(dst, 0)
	}
	return dst
}

// SetFrameSize writes the size of the frame that begins with frame, of n bytes in
// all: those of the size field do not count.
func SetFrameSize(frame []byte, n int) {
	binary.BigEndian.PutUint32(frame, uint32(n-PrefixSize))
}

// Decode reads a body into the request that kmsg has for it; strings are copied,
// byte fields alias the body.
func Decode(h Header, body []byte) (kmsg.Request, error) {
	r := kmsg.RequestForKey(h.Key)
	if r == nil || !Supported(h.Key, h.Version) {
		return nil, &UnsupportedError{h}
	}
	r.SetVersion(h.Version)
	if err := r.ReadFrom(body); err != nil {
		return nil, &DecodeError{h.String(), err.Error()}
	}
	return r, nil
}
