// Package wire owns the bytes of the Kafka protocol between a client and a
// broker: which requests are served in which versions, the headers, the messages.
// It reads from and appends to byte slices; it knows no socket and no file.
//
//	request:   size int32 | key int16 | version int16 | correlation int32 | client id | tags¹ | body
//	response:  size int32 | correlation int32 | tags¹ | body
//	¹ flexible versions only; a response to ApiVersions never has them
//
// Size counts what follows it. Messages go through kmsg, except those of every
// second: Produce and Fetch are decoded in place and encoded around the record
// bytes by hand, without allocation; kmsg is their oracle in the tests.
//
// Decoded strings and byte slices alias the frame. They are good while the request
// is served; what outlives it must be cloned.
package wire

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// PrefixSize is the length of a frame's size field, in bytes.
const PrefixSize = 4

// minFrame is the shortest request: key, version, correlation id, null client id.
const minFrame = 10

// A FrameError is a size field that is no request's: the connection is closed.
type FrameError struct {
	Prefix [PrefixSize]byte
	Size   int32
	Max    int
}

func (e *FrameError) Error() string {
	switch p := e.Prefix; {
	case p[0] == 0x16 && p[1] == 0x03:
		return "reading a request: the client speaks TLS to a listener without TLS"
	case string(p[:]) == "GET " || string(p[:]) == "POST" || string(p[:]) == "HEAD":
		return "reading a request: the client speaks HTTP to a Kafka listener"
	case e.Size < minFrame:
		return fmt.Sprintf("reading a request: size %d is below %d bytes", e.Size, minFrame)
	default:
		return fmt.Sprintf("reading a request: size %d is above socket.request.max.bytes, %d", e.Size, e.Max)
	}
}

// FrameSize reads the size field at the start of b, which has at least PrefixSize
// bytes, and holds it to max before anything is allocated for it.
func FrameSize(b []byte, max int) (int, error) {
	n := int32(binary.BigEndian.Uint32(b))
	if n < minFrame || int(n) > max {
		return 0, &FrameError{[PrefixSize]byte(b[:PrefixSize]), n, max}
	}
	return int(n), nil
}

// A DecodeError is a request whose body is not what its version says.
type DecodeError struct {
	What string // request and field
	Why  string
}

func (e *DecodeError) Error() string { return "decoding " + e.What + ": " + e.Why }

// alias is b as a string without a copy.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
