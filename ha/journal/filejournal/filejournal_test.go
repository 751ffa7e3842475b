package filejournal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"strings"
	"testing"

	"varve/broker/vfs"
	"varve/ha/journal"
	"varve/ha/journal/journaltest"
)

// home is a folder in memory.
type home struct{ mem *vfs.Mem }

func (h home) Together() bool { return false }

func (h home) TryOpen(t *testing.T) (journal.Journal, error) {
	j, err := Open(h.mem, "/meta", Options{FileBytes: 8 << 10})
	if err != nil {
		return nil, err
	}
	return j, nil
}

func (h home) Open(t *testing.T) journal.Journal {
	t.Helper()
	j, err := h.TryOpen(t)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (h home) Damage(t *testing.T, n journal.Number) {
	flip(t, h.mem, fmt.Appendf(nil, "edit %d ", n-1))
}

// flip alters the first byte of the first place where needle stands.
func flip(t *testing.T, mem *vfs.Mem, needle []byte) {
	t.Helper()
	name := "/meta/edits-00000000000000000001.log"
	b, err := vfs.ReadFile(mem, name)
	at := bytes.Index(b, needle)
	if err != nil || at < 0 {
		t.Fatalf("no %q in %s, %v", needle, name, err)
	}
	write(t, mem, name, at, []byte{b[at] ^ 1})
}

func write(t *testing.T, mem *vfs.Mem, name string, at int, b []byte) {
	t.Helper()
	f, err := mem.OpenFile(name, openReadWrite, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

func TestJournal(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Home { return home{vfs.NewMem()} })
}

// TestDamageNamesFileAndOffset is H1: only the last edit may be torn.
func TestDamageNamesFileAndOffset(t *testing.T) {
	h := home{vfs.NewMem()}
	j := h.Open(t)
	term, _ := j.Take(t.Context(), "a")
	for i := range 5 {
		term.Append(t.Context(), fmt.Appendf(nil, "edit %d ", i))
	}
	j.Close()
	h.Damage(t, 2)
	_, err := h.TryOpen(t)
	want := "edits-00000000000000000001.log: no valid edit 2 at offset 144, but edit 3 at offset 224"
	if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), want) {
		t.Fatalf("opening says %v, want %q", err, want)
	}
}

// TestATornLastEditIsCut at every length of what reached the disk.
func TestATornLastEditIsCut(t *testing.T) {
	h := home{vfs.NewMem()}
	j := h.Open(t)
	term, _ := j.Take(t.Context(), "a")
	for i := range 3 {
		term.Append(t.Context(), fmt.Appendf(nil, "edit %d, with some more to tear ", i))
	}
	at := int(j.(*Journal).mu.files[0].at[2])
	end := int(j.(*Journal).mu.files[0].tail)
	j.Close()
	name := "/meta/edits-00000000000000000001.log"
	for cut := at; cut < end; cut++ {
		mem := h.mem.Kill()
		write(t, mem, name, cut, make([]byte, end-cut))
		j := home{mem}.Open(t).(*Journal)
		n, _ := j.end()
		if want := journal.Number(2); n != want && !(n == 3 && onlyZeros(t, h.mem, name, cut, end)) {
			t.Fatalf("cut at %d of [%d,%d): %d edits, want %d", cut, at, end, n, want)
		}
		term, err := j.Take(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		if e, err := term.Append(t.Context(), []byte("after")); err != nil || e.N != n+1 {
			t.Fatalf("cut at %d: the next edit is %d, %v", cut, e.N, err)
		}
		j.Close()
		again := home{mem}.Open(t).(*Journal)
		if m, _ := again.end(); m != n+1 {
			t.Fatalf("cut at %d: %d edits after another start, want %d", cut, m, n+1)
		}
		again.Close()
	}
}

// onlyZeros tells whether what was cut was zeros: then nothing was lost.
func onlyZeros(t *testing.T, mem *vfs.Mem, name string, from, to int) bool {
	t.Helper()
	b, err := vfs.ReadFile(mem, name)
	if err != nil {
		t.Fatal(err)
	}
	return len(bytes.Trim(b[from:to], "\x00")) == 0
}

// TestAPowerCutAtAnyOperationLosesNothingAcknowledged fails every operation in turn,
// cuts the power there, and looks for all that was acknowledged.
func TestAPowerCutAtAnyOperationLosesNothingAcknowledged(t *testing.T) {
	for stop, ended := 1, false; !ended; stop++ {
		mem := vfs.NewMem()
		count := 0
		mem.Rule(func(op vfs.Op) error {
			if op.Changes() {
				count++
			}
			if count >= stop && op.Changes() {
				return errors.New("power is gone")
			}
			return nil
		})
		acked, err := fill(t, mem)
		ended = err == nil
		for try := range 4 {
			var chance *rand.Rand
			if try > 0 {
				chance = rand.New(rand.NewSource(int64(stop*10 + try)))
			}
			verify(t, mem.PowerCut(chance), acked, stop)
		}
	}
}

// fill writes edits and snapshots until something fails; it returns the edits that
// were acknowledged.
func fill(t *testing.T, mem *vfs.Mem) (acked []journal.Edit, err error) {
	t.Helper()
	j, err := Open(mem, "/meta", Options{FileBytes: 2 << 10})
	if err != nil {
		return nil, err
	}
	defer j.Close()
	term, err := j.Take(t.Context(), "a")
	if err != nil {
		return nil, err
	}
	for i := range 40 {
		e, err := term.Append(t.Context(), fmt.Appendf(nil, "edit %d%s", i, strings.Repeat(".", i*5)))
		if err != nil {
			if _, again := term.Append(t.Context(), nil); again == nil {
				t.Fatal("an append after a failed one succeeds (H1)")
			}
			return acked, err
		}
		acked = append(acked, e)
		if i%9 == 8 {
			if err := term.SaveSnapshot(t.Context(), journal.Snapshot{N: e.N, Hash: e.Hash, Image: []byte("image")}); err != nil {
				return acked, err
			}
		}
	}
	return acked, nil
}

func verify(t *testing.T, mem *vfs.Mem, acked []journal.Edit, stop int) {
	t.Helper()
	j, err := Open(mem, "/meta", Options{FileBytes: 2 << 10})
	if err != nil {
		t.Fatalf("power cut at operation %d after %d edits: %v", stop, len(acked), err)
	}
	defer j.Close()
	s, err := j.LoadSnapshot(t.Context())
	if err != nil {
		t.Fatalf("power cut at operation %d: %v", stop, err)
	}
	end, _ := j.end()
	if int(end) < len(acked) {
		t.Fatalf("power cut at operation %d: %d edits, %d were acknowledged", stop, end, len(acked))
	}
	if end == 0 {
		return
	}
	edits, err := j.Read(t.Context(), s.N+1, 1<<20)
	if err != nil {
		t.Fatalf("power cut at operation %d: reading behind snapshot %d: %v", stop, s.N, err)
	}
	for _, e := range edits {
		if int(e.N) <= len(acked) && (e.Hash != acked[e.N-1].Hash || !bytes.Equal(e.Payload, acked[e.N-1].Payload)) {
			t.Fatalf("power cut at operation %d: edit %d is not what was acknowledged", stop, e.N)
		}
	}
}

// TestASecondProcessIsKeptOut.
func TestASecondProcessIsKeptOut(t *testing.T) {
	h := home{vfs.NewMem()}
	j := h.Open(t)
	defer j.Close()
	if _, err := h.TryOpen(t); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("a second open of the folder: %v, want a held lock", err)
	}
}

// TestADamagedSnapshotFallsBackToTheOneBefore, whose edits are kept for that.
func TestADamagedSnapshotFallsBackToTheOneBefore(t *testing.T) {
	mem := vfs.NewMem()
	if _, err := fill(t, mem); err != nil {
		t.Fatal(err)
	}
	write(t, mem, "/meta/snapshot-00000000000000000036.img", 60, []byte{0xff})
	j := home{mem}.Open(t)
	defer j.Close()
	if s, err := j.LoadSnapshot(t.Context()); err != nil || s.N != 27 {
		t.Fatalf("snapshot of edit %d, %v; want 27", s.N, err)
	}
	if edits, err := j.Read(t.Context(), 28, 1<<20); err != nil || len(edits) != 13 {
		t.Fatalf("%d edits behind it, %v; want 13", len(edits), err)
	}
}

// TestBytesOfARecord pins the format.
func TestBytesOfARecord(t *testing.T) {
	e := journal.Edit{N: 2, ID: journal.EditID{Writer: 7, Count: 9}, Epoch: 7, Payload: []byte{0, 0xab, 0xcd}}
	b, _ := appendRecord(nil, e, [32]byte{0xee})
	want := "0000000000000002" + "0000000000000007" + "0000000000000009" + "00000007" + "00000003"
	if got := hex.EncodeToString(b[:32]); got != want || len(b)%align != 0 || b[36] != 0xee || b[72] != 0 || b[73] != 0xab {
		t.Fatalf("record is %x, want %s…", b, want)
	}
	got, previous, n, ok := parseRecord(b)
	if !ok || n != len(b) || got.N != 2 || got.ID != e.ID || got.Epoch != 7 || !bytes.Equal(got.Payload, e.Payload) || previous != [32]byte{0xee} {
		t.Fatalf("it parses to %+v, %d, %v", got, n, ok)
	}
}

func FuzzScan(f *testing.F) {
	b := encodeFileHeader(1, [32]byte{})
	record, hash := appendRecord(nil, journal.Edit{N: 1, Epoch: 1, Payload: []byte("one")}, [32]byte{})
	second, _ := appendRecord(nil, journal.Edit{N: 2, Epoch: 1, Payload: []byte("two")}, hash)
	f.Add(append(append(b, record...), second...))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := scan("x", 1, b)
		if err == nil && (r.tail > int64(len(b)) || len(r.at) != int(r.next()-1)) {
			t.Fatalf("%d edits to %d of %d bytes", len(r.at), r.tail, len(b))
		}
		parseRecord(b)
		laterRecord(b, 0)
	})
}

// BenchmarkAppend is the latency of one edit on a real disk.
func BenchmarkAppend(b *testing.B) {
	j, err := Open(vfs.OS{}, b.TempDir()+"/meta", Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	term, err := j.Take(b.Context(), "a")
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := term.Append(b.Context(), payload); err != nil {
			b.Fatal(err)
		}
	}
}
