package quickstart

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// records are what a file comes to.
func records(t *testing.T, text []byte) [][]byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if in.size != int64(len(text)) {
		t.Errorf("size %d, want %d", in.size, len(text))
	}
	var out [][]byte
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(line))
	}
}

func TestARecordIsALineWithItsNewline(t *testing.T) {
	for _, c := range []struct {
		name, text string
		lengths    []int
	}{
		{"lines", "a\nbb\n", []int{2, 3}},
		{"no newline at the end", "a\nbb", []int{2, 2}},
		{"empty lines", "\n\n", []int{1, 1}},
		{"Windows lines", "a\r\n", []int{3}},
		{"bytes that are no text", "\x00\xff\n\x80", []int{3, 1}},
		{"a line that is just too long", strings.Repeat("x", lineMax) + "\n", []int{lineMax, 1}},
		{"a line that just fits", strings.Repeat("x", lineMax-1) + "\n", []int{lineMax}},
		{"nothing", "", nil},
	} {
		got := records(t, []byte(c.text))
		if len(got) != len(c.lengths) || string(bytes.Join(got, nil)) != c.text {
			t.Errorf("%s: %d records that join to %d bytes, want %d and %d", c.name, len(got), len(bytes.Join(got, nil)), len(c.lengths), len(c.text))
			continue
		}
		for i, n := range c.lengths {
			if len(got[i]) != n {
				t.Errorf("%s: record %d has %d bytes, want %d", c.name, i, len(got[i]), n)
			}
		}
	}
}

func TestTheSampleIsAsLongAsItSays(t *testing.T) {
	in, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	n, err := io.Copy(io.Discard, in.r)
	if err != nil || n != in.size || n < 1<<20 {
		t.Errorf("%d bytes (%v), said to be %d", n, err, in.size)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := open(dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

func TestNothingIsDrawnWhereThereIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	b := newBar(&out, "produced", 100)
	b.at(50)
	b.done()
	if out.Len() > 0 {
		t.Errorf("drawn: %q", out.String())
	}
}

func TestTheBarIsDrawnAndWiped(t *testing.T) {
	for _, c := range []struct {
		total, at int64
		want      string
	}{
		{100, 50, "produced [" + strings.Repeat("█", 15) + strings.Repeat("·", 15) + "]  50%"},
		{100, 300, "[" + strings.Repeat("█", 30) + "] 100%"},
		{0, 2000, "produced 2.0 kB"},
	} {
		var out bytes.Buffer
		b := newBar(&out, "produced", c.total)
		b.on = true
		b.at(c.at)
		b.at(c.at) // too soon: nothing more
		if n := strings.Count(out.String(), "\r"); n != 1 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%d of %d, %d times: %q, want %q", c.at, c.total, n, out.String(), c.want)
		}
		b.done()
		if !strings.HasSuffix(out.String(), "\r\x1b[K") {
			t.Errorf("not wiped: %q", out.String())
		}
	}
}
