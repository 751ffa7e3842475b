package oracle

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A leaf is one field of an answer: where it stands and what it says.
type leaf struct {
	path  string // Topics[orders].Partitions[0].ErrorCode
	value string
}

// flatten turns an answer into its leaves in order. Elements of arrays are named by
// their key field where they have one, so that order alone is no difference unless
// it is kept; values that a side learned are replaced by their shared names.
func (s *Side) flatten(v any, rename func(path, value string) string) []leaf {
	var out []leaf
	s.walk(reflect.ValueOf(v), "", func(path, value string) {
		if name, ok := s.names[value]; ok && len(value) > 3 {
			value = "<" + name + ">"
		}
		out = append(out, leaf{path, rename(path, value)})
	})
	return out
}

func (s *Side) walk(v reflect.Value, path string, emit func(path, value string)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			emit(path, "null")
			return
		}
		s.walk(v.Elem(), path, emit)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "Version" || f.Name == "UnknownTags" {
				continue
			}
			s.walk(v.Field(i), strings.TrimPrefix(path+"."+f.Name, "."), emit)
		}
	case reflect.Slice:
		s.walkSlice(v, path, emit)
	case reflect.Array:
		emit(path, fmt.Sprint(v.Interface()))
	default:
		emit(path, fmt.Sprint(v.Interface()))
	}
}

func (s *Side) walkSlice(v reflect.Value, path string, emit func(path, value string)) {
	if v.IsNil() {
		emit(path, "null")
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		emit(path, text(v.Bytes()))
		return
	}
	emit(path+".len", fmt.Sprint(v.Len()))
	type element struct {
		name string
		v    reflect.Value
	}
	var es []element
	for i := range v.Len() {
		e := v.Index(i)
		name := s.elementName(e)
		if name == "" {
			name = fmt.Sprint(i)
		}
		es = append(es, element{name, e})
	}
	slices.SortStableFunc(es, func(a, b element) int { return strings.Compare(a.name, b.name) })
	for _, e := range es {
		s.walk(e.v, path+"["+e.name+"]", emit)
	}
}

// keyFields name an element of an array, in order of preference.
var keyFields = []string{"Topic", "TopicID", "ResourceName", "Name", "Group", "Partition", "NodeID", "ApiKey", "MemberID", "Key"}

// text is hex, of long runs what their batches are: base offset, length and sum.
func text(b []byte) string {
	if len(b) < 16<<10 {
		return hex.EncodeToString(b)
	}
	var out strings.Builder
	for len(b) >= 12 {
		n := 12 + int64(binary.BigEndian.Uint32(b[8:]))
		if n > int64(len(b)) {
			break
		}
		fmt.Fprintf(&out, "batch %d of %d bytes, sum %x; ", binary.BigEndian.Uint64(b), n, sha256.Sum256(b[:n]))
		b = b[n:]
	}
	if len(b) > 0 {
		fmt.Fprintf(&out, "%d bytes more", len(b))
	}
	return out.String()
}

func (s *Side) elementName(v reflect.Value) string {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return ""
	}
	for _, k := range keyFields {
		f := v.FieldByName(k)
		if !f.IsValid() {
			continue
		}
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				continue
			}
			f = f.Elem()
		}
		text := fmt.Sprint(f.Interface())
		if f.Kind() == reflect.Array && f.IsZero() {
			continue
		}
		if name, ok := s.names[text]; ok {
			return name
		}
		return text
	}
	return ""
}

// A Difference is a field in which the two answers part.
type Difference struct {
	Case, Step   string
	API          string
	Version      int16
	Path         string
	Kafka, Varve string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s, %s, %s v%d: %s: kafka %q, varve %q", d.Case, d.Step, d.API, d.Version, d.Path, d.Kafka, d.Varve)
}

// compare returns the paths where the leaves differ.
func compare(kafka, varve []leaf) []Difference {
	k, v := index(kafka), index(varve)
	var out []Difference
	seen := map[string]bool{}
	for _, l := range append(slices.Clone(kafka), varve...) {
		if seen[l.path] {
			continue
		}
		seen[l.path] = true
		a, inK := k[l.path]
		b, inV := v[l.path]
		if !inK {
			a = "(absent)"
		}
		if !inV {
			b = "(absent)"
		}
		if a != b {
			out = append(out, Difference{Path: l.path, Kafka: a, Varve: b})
		}
	}
	return out
}

func index(ls []leaf) map[string]string {
	m := make(map[string]string, len(ls))
	for _, l := range ls {
		m[l.path] = l.value
	}
	return m
}
