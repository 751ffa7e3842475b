package archive

import (
	"bytes"
	"slices"
	"testing"

	"varve/broker/record"
	"varve/tier/container"
	"varve/tier/faulty"
)

// written is a container with one record, and the footer that its writer knows.
func written(t *testing.T, value string) ([]byte, *container.Footer) {
	t.Helper()
	var b record.Builder
	b.Add(record.Record{Value: []byte(value)})
	var file bytes.Buffer
	w := container.NewWriter(&file, container.Footer{ID: "one", Topic: "orders", Epochs: []container.Epoch{{}}})
	if _, err := w.Write(b.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	f, err := w.Finish(container.Parts{})
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), f
}

func TestAFileThatIsNotWhatWasWrittenIsNotCommitted(t *testing.T) {
	mine, want := written(t, "mine")
	other, _ := written(t, "")
	for c := byte('f'); len(other) != len(mine); c++ { // a checksum is written in as many digits as it has
		other, _ = written(t, "min"+string(c))
	}
	for name, file := range map[string][]byte{
		"cut short":                    mine[:len(mine)-1],
		"with a byte too many":         append(slices.Clone(mine), 0),
		"another of the same length":   other,
		"without a byte of the footer": append(slices.Clone(mine[:len(mine)-20]), mine[len(mine)-19:]...),
	} {
		store := faulty.New()
		store.Put("segments/x", file)
		if err := verify(t.Context(), store, "segments/x", want); err == nil {
			t.Errorf("a file %s is taken", name)
		}
	}
	store := faulty.New()
	store.Put("segments/x", mine)
	if err := verify(t.Context(), store, "segments/x", want); err != nil {
		t.Errorf("the file that was written: %v", err)
	}
}
