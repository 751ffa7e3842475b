package properties

import (
	"strings"
	"testing"
)

// Each case was given to java.util.Properties (OpenJDK 17), which read the same.
func TestReadsAsJavaReads(t *testing.T) {
	for _, c := range []struct{ text, key, value string }{
		{"a=b", "a", "b"},
		{"a:b", "a", "b"},
		{"a b", "a", "b"},
		{"  a  =  b  ", "a", "b  "},
		{"a", "a", ""},
		{"a==b", "a", "=b"},
		{"a\\=b=c", "a=b", "c"},
		{"a=one,\\\n   two", "a", "one,two"},
		{"a=one,\\\r\n   two\r\n", "a", "one,two"},
		{"ke\\\n  y=v", "key", "v"},
		{"a=x\\\\\nb", "a", `x\`},
		{"a=x\\", "a", "x"},
		{"a=x\\\n", "a", "x"},
		{"a=x\\\n# no comment", "a", "x# no comment"},
		{"a=\\t\\u0041\\q", "a", "\tAq"},
		{"a=#b", "a", "#b"},
		{"# c\n! d\n\n \t\na=b", "a", "b"},
		{"a=${x}", "a", "${x}"},
		{"a=caf\xc3\xa9", "a", "café"},
		{"a=caf\xe9", "a", "café"},
		{"\xef\xbb\xbfa=b", "a", "b"},
		{"a=b\rc=d", "a", "b"},
	} {
		entries, faults := Parse([]byte(c.text))
		if len(faults) > 0 {
			t.Errorf("%q: %v", c.text, faults[0])
			continue
		}
		if got, want := Map(entries)[c.key], c.value; got != want || entries[0].Key != c.key {
			t.Errorf("%q: got %+v, want %q = %q", c.text, entries, c.key, want)
		}
	}
}

func TestKeepsLinesAndDuplicates(t *testing.T) {
	entries, faults := Parse([]byte("# one\na=1\nb=2,\\\n  3\n\na=4\n=5\nc=\\u00g0\n"))
	want := []Entry{{2, "a", "1"}, {3, "b", "2,3"}, {6, "a", "4"}}
	if len(entries) != len(want) {
		t.Fatalf("got %+v, want %+v", entries, want)
	}
	for i := range want {
		if entries[i] != want[i] {
			t.Errorf("entry %d: got %+v, want %+v", i, entries[i], want[i])
		}
	}
	if len(faults) != 2 || faults[0].Line != 7 || faults[1].Error() != "line 8: invalid unicode literal" {
		t.Errorf("got %v, want faults at 7 and 8", faults)
	}
}

func TestOneEntryIsBounded(t *testing.T) {
	_, faults := Parse([]byte("a=" + strings.Repeat("x", lineMax)))
	if len(faults) != 1 {
		t.Errorf("got %v, want one fault", faults)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a=b\\\r\n c\n#\n\\u0041:x"))
	f.Add([]byte("\\\n\\\n=\n\x00\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, faults := Parse(text)
		natural := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + 1
		last := 0
		for _, e := range entries {
			if e.Line <= last || e.Line > natural {
				t.Fatalf("entry %+v after line %d of %d", e, last, natural)
			}
			last = e.Line
		}
		for _, e := range faults {
			if e.Line < 1 || e.Line > natural {
				t.Fatalf("fault %v of %d lines", e, natural)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := []byte(strings.Repeat("# a comment line of some length\nlog.retention.check.interval.ms=300000\n", 200))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if entries, _ := Parse(text); len(entries) != 200 {
			b.Fatal(len(entries))
		}
	}
}
