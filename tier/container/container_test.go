package container

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"varve/broker/kafka"
	"varve/broker/record"
)

const testID = "0d2f3c4b-5a69-4887-9605-1423d4e5f607"

// batches builds n batches of 3 records of the given value size, from base on.
func batches(base kafka.Offset, n, size int) []byte {
	var b []byte
	for range n {
		w := record.Builder{BaseOffset: base, LeaderEpoch: 7}
		for i := range 3 {
			w.Add(record.Record{Timestamp: 1000 + int64(base) + int64(i), Key: []byte("k"), Value: bytes.Repeat([]byte{byte(base)}, size)})
		}
		b = w.AppendTo(b)
		base += 3
	}
	return b
}

var testParts = Parts{
	OffsetIndex: binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 5), 90),
	TimeIndex:   binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, 1045), 5),
	TxnIndex:    AppendAborted(nil, []AbortedTxn{{7, 40, 41, 42}}),
	Producers:   []byte("snapshot"),
	Epochs:      AppendEpochs(nil, []kafka.EpochStart{{Epoch: 5, Start: 0}, {Epoch: 7, Start: 40}}),
	Aborted:     AppendAborted(nil, []AbortedTxn{{7, 40, 41, 42}, {9, 10, 60, 45}}),
}

// write makes a container of the log, giving it in pieces of the given size.
func write(t testing.TB, log []byte, end kafka.Offset, piece int) ([]byte, *Footer, error) {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, Footer{ID: testID, Topic: "orders", TopicID: "AAAAAAAAAAAAAAAAAAAAAA", Partition: 3,
		Base: 40, End: end, LeaderEpoch: 7, Broker: 1, Epochs: []Epoch{{7, 40}}})
	for rest := log; len(rest) > 0; {
		n := min(piece, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			return nil, nil, err
		}
		rest = rest[n:]
	}
	f, err := w.Finish(testParts)
	if err == nil && w.Size() > SizeEstimate(int64(len(log)), testParts, 1) {
		t.Errorf("the file has %d bytes, estimated were %d at most", w.Size(), SizeEstimate(int64(len(log)), testParts, 1))
	}
	return out.Bytes(), f, err
}

func TestFileIsTheSameHoweverTheLogIsCut(t *testing.T) {
	log := batches(40, 4, 20)
	whole, _, err := write(t, log, 51, len(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []int{1, 7, 60, 61, 62, 100, 4096} {
		cut, _, err := write(t, log, 51, piece)
		if err != nil || !bytes.Equal(cut, whole) {
			t.Errorf("in pieces of %d: %d bytes, %v; want %d", piece, len(cut), err, len(whole))
		}
	}
	if !bytes.HasPrefix(whole, log) {
		t.Error("the container does not begin with the log's bytes")
	}
}

func TestGoldenBytesOfTheEnd(t *testing.T) {
	log := batches(40, 2, 4)
	file, _, err := write(t, log, 45, 50)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"0d2f3c4b-5a69-4887-9605-1423d4e5f607","topic":"orders","topicId":"AAAAAAAAAAAAAAAAAAAAAA","partition":3,` +
		`"base":40,"end":45,"leaderEpoch":7,"broker":1,"epochs":[{"epoch":7,"start":40}],"maxTs":1045,"batches":2,"records":6,` +
		`"splits":[{"pos":0,"offset":40}],"parts":{"aborted":{"pos":269,"size":68,"crc32c":3169184990},"epochs":{"pos":256,"size":13,"crc32c":552409981}`
	tail := file[len(log):]
	if i := bytes.IndexByte(tail, '{'); i < 0 || !strings.HasPrefix(string(tail[i:]), want) {
		t.Errorf("footer:\n%s\nwant\n%s", tail[max(i, 0):], want)
	}
	if got := hex.EncodeToString(file[len(file)-8:]); got != "5641525653454731" {
		t.Errorf("magic %s", got)
	}
	golden := "00000005" + "0000005a" + "0000000000000415" + "00000005"
	if got := hex.EncodeToString(tail[:20]); got != golden {
		t.Errorf("indexes %s, want %s", got, golden)
	}
}

func TestTailGivesBackWhatWasWritten(t *testing.T) {
	log := batches(40, 30_000, 60) // > 8 MiB
	end := kafka.Offset(40 + 3*30_000 - 1)
	file, f, err := write(t, log, end, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	tail, err := DecodeTail(file, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if tail.Records != 90_000 || tail.Batches != 30_000 || tail.MaxTimestamp != 1000+int64(end) || tail.Size() != int64(len(file)) {
		t.Errorf("footer counts %+v, size %d", tail.Footer, tail.Size())
	}
	for p := OffsetIndex; p < parts; p++ {
		if !bytes.Equal(tail.Part(p), file[f.Parts[p].Pos:f.Parts[p].End()]) {
			t.Errorf("part %s differs", p)
		}
	}
	if a, b := tail.Position(44), tail.Position(45); a != 0 || b != 90 {
		t.Errorf("positions %d, %d, want 0, 90", a, b)
	}
	if a, b := tail.OffsetForTime(1045), tail.OffsetForTime(1046); a != 40 || b != 46 {
		t.Errorf("offsets for time %d, %d, want 40, 46", a, b)
	}
	for pos := int64(0); pos < int64(len(log)); pos += SumBytes {
		chunk := bytes.Clone(log[pos:min(pos+SumBytes, int64(len(log)))])
		if err := tail.CheckChunk(pos, chunk); err != nil {
			t.Error(err)
		}
		chunk[len(chunk)/2] ^= 1
		var c *CorruptError
		if err := tail.CheckChunk(pos, chunk); !errors.As(err, &c) {
			t.Errorf("a flipped bit at %d passes: %v", pos, err)
		}
	}
}

func TestShortTailSaysHowMuchIsNeeded(t *testing.T) {
	file, f, err := write(t, batches(40, 100, 100), 339, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 15, 16, 100, 400} {
		_, err := DecodeTail(file[len(file)-n:], int64(len(file)))
		var more *MoreError
		if !errors.As(err, &more) || more.Need <= int64(n) {
			t.Fatalf("with %d bytes: %v", n, err)
		}
		for errors.As(err, &more) {
			_, err = DecodeTail(file[int64(len(file))-more.Need:], int64(len(file)))
			if err == nil && more.Need > int64(len(file))-f.Parts[Log].Size {
				t.Errorf("asked for %d bytes, %d are enough", more.Need, int64(len(file))-f.Parts[Log].Size)
			}
			more = nil
		}
		if err != nil {
			t.Errorf("from %d bytes: %v", n, err)
		}
	}
}

func TestEveryFlippedBitBehindTheLogIsFound(t *testing.T) {
	log := batches(40, 2, 4)
	file, _, err := write(t, log, 45, 50)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(log); i < len(file); i++ {
		bad := bytes.Clone(file)
		bad[i] ^= 0x10
		if _, err := DecodeTail(bad, int64(len(bad))); err == nil {
			t.Errorf("byte %d of %d flipped and nobody noticed", i, len(file))
		}
	}
	for n := range file {
		if _, err := DecodeTail(file[:n], int64(n)); err == nil {
			t.Errorf("cut to %d of %d bytes and nobody noticed", n, len(file))
		}
	}
}

func TestUnknownFeatureIsRefusedByName(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, Footer{Requires: []string{"columns"}, ID: testID, Base: 40, End: 45, Epochs: []Epoch{{7, 40}}})
	if _, err := w.Write(batches(40, 2, 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(testParts); err != nil {
		t.Fatal(err)
	}
	_, err := DecodeFooter(out.Bytes(), int64(out.Len()))
	var f *FeatureError
	if !errors.As(err, &f) || f.Feature != "columns" {
		t.Errorf("got %v", err)
	}
}

func TestDamagedLogDoesNotLeaveTheBroker(t *testing.T) {
	good := batches(40, 3, 30)
	for _, c := range []struct {
		name string
		log  []byte
		end  kafka.Offset
		want string
	}{
		{"flipped record byte", flip(good, 80), 48, "CRC32C"},
		{"flipped magic", flip(good, 16), 48, "magic"},
		{"torn", good[:len(good)-1], 48, "ends inside the batch"},
		{"short", good, 60, "ends at offset 48"},
		{"too long", good, 45, "offsets 46 to 48"},
		{"backwards", append(bytes.Clone(good), good...), 60, "offsets 40 to 42"},
	} {
		_, _, err := write(t, c.log, c.end, 33)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 4
	return b
}

func TestEpochsAndAbortedComeBack(t *testing.T) {
	e, err := DecodeEpochs(testParts.Epochs)
	if err != nil || len(e) != 2 || e[1] != (kafka.EpochStart{Epoch: 7, Start: 40}) {
		t.Errorf("epochs %v, %v", e, err)
	}
	a, err := DecodeAborted(testParts.Aborted)
	if err != nil || len(a) != 2 || a[1] != (AbortedTxn{9, 10, 60, 45}) {
		t.Errorf("aborted %v, %v", a, err)
	}
	for _, bad := range []string{"", "0\n", "1\n0\n", "0\n2\n1 1\n", "0\n1\n1 -1\n", "0\n1\nx 1\n"} {
		if _, err := DecodeEpochs([]byte(bad)); err == nil {
			t.Errorf("epochs %q accepted", bad)
		}
	}
}

func FuzzDecodeTail(f *testing.F) {
	file, _, err := write(f, batches(40, 2, 4), 45, 50)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file, int64(len(file)))
	f.Add(file[100:], int64(len(file)))
	f.Fuzz(func(t *testing.T, tail []byte, size int64) {
		x, err := DecodeTail(tail, size)
		if err != nil {
			return
		}
		if x.Size() > 0 && x.Position(x.End) >= x.Parts[Log].Size && len(x.Part(OffsetIndex)) == 0 {
			t.Errorf("position %d of %d", x.Position(x.End), x.Parts[Log].Size)
		}
	})
}

func FuzzDecodeSmallParts(f *testing.F) {
	f.Add(testParts.Epochs)
	f.Add(testParts.Aborted)
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := DecodeEpochs(b); err == nil && !bytes.Equal(AppendEpochs(nil, e), b) && !bytes.Equal(AppendEpochs(nil, e), append(b, '\n')) {
			// Numbers have other spellings (+1, 01); what they mean must be stable.
			if again, err := DecodeEpochs(AppendEpochs(nil, e)); err != nil || len(again) != len(e) {
				t.Errorf("epochs %q: %v", b, err)
			}
		}
		if a, err := DecodeAborted(b); err == nil && !bytes.Equal(AppendAborted(nil, a), b) {
			t.Errorf("aborted %x comes back otherwise", b)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	log := batches(40, 5000, 1000)
	w := NewWriter(discard{}, Footer{Base: 40, End: 1 << 40})
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		w.batch = walker{}
		if _, err := w.Write(log); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
