package wire

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TraceRequest appends a request for people to read: its header, then its body as
// name=value pairs without what is zero. Record bytes appear as their length.
func TraceRequest(dst []byte, h Header, body []byte) []byte {
	dst = fmt.Appendf(dst, "%s #%d from %q", h, h.Correlation, h.ClientID)
	r := kmsg.RequestForKey(h.Key)
	if r == nil || h.Version > r.MaxVersion() {
		return fmt.Appendf(dst, " (%d bytes not decoded)", len(body))
	}
	r.SetVersion(h.Version)
	if err := r.ReadFrom(body); err != nil {
		return fmt.Appendf(dst, " (%d bytes: %v)", len(body), err)
	}
	return appendValue(append(dst, ' '), reflect.ValueOf(r))
}

// TraceResponse appends the answer to h for people to read. body is what follows
// the response header.
func TraceResponse(dst []byte, h Header, body []byte) []byte {
	dst = fmt.Appendf(dst, "%s #%d answers", h, h.Correlation)
	r := kmsg.ResponseForKey(h.Key)
	if r == nil {
		return fmt.Appendf(dst, " (%d bytes not decoded)", len(body))
	}
	r.SetVersion(h.Version)
	if err := r.ReadFrom(body); err != nil {
		return fmt.Appendf(dst, " (%d bytes: %v)", len(body), err)
	}
	return appendValue(append(dst, ' '), reflect.ValueOf(r))
}

// appendValue appends what kmsg decoded. Fields named Version and the tags that
// nobody knows are left out.
func appendValue(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return appendValue(dst, v.Elem())
	case reflect.Struct:
		return appendStruct(dst, v)
	case reflect.Slice, reflect.Array:
		return appendList(dst, v)
	case reflect.String:
		return strconv.AppendQuote(dst, v.String())
	default:
		return fmt.Append(dst, v.Interface())
	}
}

func appendStruct(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '{')
	first := true
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "Version" || name == "UnknownTags" || v.Field(i).IsZero() {
			continue
		}
		if !first {
			dst = append(dst, ' ')
		}
		first = false
		dst = append(append(dst, name...), '=')
		dst = appendValue(dst, v.Field(i))
	}
	return append(dst, '}')
}

func appendList(dst []byte, v reflect.Value) []byte {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if v.Kind() == reflect.Array {
			return fmt.Appendf(dst, "%x", v.Interface())
		}
		return fmt.Appendf(dst, "<%d bytes>", v.Len())
	}
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendValue(dst, v.Index(i))
	}
	return append(dst, ']')
}
