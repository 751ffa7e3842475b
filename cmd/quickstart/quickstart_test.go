package quickstart

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/cmd/standalone"
)

// told runs a story up to where everything is in the tier and nothing is local.
func told(t *testing.T) *story {
	t.Helper()
	var text bytes.Buffer
	for i := range 30_000 {
		fmt.Fprintf(&text, "line %d of a log that fills three segments or so, were it but a little longer\n", i)
	}
	dir := t.TempDir()
	s := &story{out: io.Discard, dir: dir, input: &input{name: "text", r: reader(&text), c: io.NopCloser(nil)}, patience: 3 * time.Second,
		options: standalone.Options{DataDir: dir, Listener: "127.0.0.1:0", HTTP: "127.0.0.1:0", Quiet: true, Stderr: io.Discard}}
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	for _, step := range []func(context.Context) error{s.create, s.produce, s.offload} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestDamageInTheTierIsTold flips one bit of one container: both ways back must see it.
func TestDamageInTheTierIsTold(t *testing.T) {
	s := told(t)
	name := damage(t, filepath.Join(s.dir, "tier"))
	if err := s.scan(t.Context()); err == nil || !strings.Contains(err.Error(), filepath.Base(name)) {
		t.Errorf("reading the tier: %v, want an error that names %s", err, filepath.Base(name))
	}
	if err := s.consume(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing came for 3s after") {
		t.Errorf("consuming through the broker: %v, want an end of waiting for what the broker refuses", err)
	}
}

// damage flips a bit in the records of the first container below dir.
func damage(t *testing.T, dir string) (name string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name == "" && strings.HasSuffix(path, ".seg") {
			name = path
		}
		return err
	})
	if err != nil || name == "" {
		t.Fatalf("no container in %s: %v", dir, err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 4
	if err := os.Chmod(name, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestWhatDiffersIsNotEqual(t *testing.T) {
	var sent tally
	sent.add([]byte("one\n"))
	sent.add([]byte("two\n"))
	for what, values := range map[string][]string{
		"a record less":         {"one\n"},
		"a record more":         {"one\n", "two\n", ""},
		"a byte less":           {"one\n", "two"},
		"another byte":          {"one\n", "twp\n"},
		"the records exchanged": {"two\n", "one\n"},
	} {
		var got tally
		for _, v := range values {
			got.add([]byte(v))
		}
		if err := sent.compare(&got); err == nil {
			t.Errorf("%s counts as equal", what)
		}
	}
	var got tally
	got.add([]byte("one\n"))
	got.add([]byte("two\n"))
	if err := sent.compare(&got); err != nil {
		t.Errorf("the same records: %v", err)
	}
}

// TestALineOfAnyLengthJoinsToItself cuts what is longer than a record may be.
func TestALineOfAnyLengthJoinsToItself(t *testing.T) {
	text := "short\n" + strings.Repeat("x", 3*lineMax+7) + "\n\nend without a newline"
	in := &input{r: bufio.NewReaderSize(strings.NewReader(text), lineMax), c: io.NopCloser(nil)}
	var joined strings.Builder
	n := 0
	for {
		line, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(line) > lineMax {
			t.Fatalf("a record of %d bytes, want at most %d", len(line), lineMax)
		}
		joined.Write(line)
		n++
	}
	if joined.String() != text || n != 7 {
		t.Errorf("%d records of %d bytes, want 7 that join to the %d bytes", n, joined.Len(), len(text))
	}
}
