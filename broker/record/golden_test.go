package record

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"

	"varve/broker/kafka"
)

// javaBatches reads testdata/java.txt: a name and a batch in hex a line.
func javaBatches(t testing.TB) map[string]Batch {
	t.Helper()
	text, err := os.ReadFile("testdata/java.txt")
	if err != nil {
		t.Fatal(err)
	}
	batches := map[string]Batch{}
	for line := range strings.Lines(string(text)) {
		name, digits, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		batches[name] = b
	}
	return batches
}

// javaRecords are the records of the compressed batches; "none" lacks the third.
var javaRecords = []Record{
	{Timestamp: now, Key: []byte("k"), Value: []byte("v")},
	{Timestamp: now - 7},
	{Timestamp: now + 90000, Key: []byte{}, Value: bytes.Repeat([]byte("long "), 20000)},
	{Timestamp: now, Key: bytes.Repeat([]byte("key"), 50), Value: []byte{}, Headers: []Header{{[]byte("h"), nil}, {[]byte{}, []byte("x")}}},
}

func TestJavaBatchesAreRead(t *testing.T) {
	batches := javaBatches(t)
	for codec := CodecGzip; codec <= CodecZstd; codec++ {
		b, rest, err := Parse(batches[codec.String()])
		if err != nil || len(rest) != 0 || !b.ValidCRC() || b.Codec() != codec || b.LastSequence() != 10 || b.LeaderEpoch() != 17 {
			t.Fatalf("%v: %v, rest %d, crc %t, %v", codec, b, len(rest), b.ValidCRC(), err)
		}
		got := list(t, b)
		for i, want := range javaRecords {
			want.Offset = 100 + kafka.Offset(i)
			if len(got[i].Headers) == 0 {
				got[i].Headers = nil
			}
			if !reflect.DeepEqual(got[i], want) {
				t.Errorf("%v: record %d is not Java's", codec, i)
			}
		}
	}
}

func TestBuilderWritesJavasBytes(t *testing.T) {
	java := javaBatches(t)
	p := &Producer{ID: 42, Epoch: 3, Sequence: 7}
	for name, w := range map[string]*Builder{
		"none":  {BaseOffset: 100, LeaderEpoch: 17, Producer: p},
		"txn":   {BaseOffset: 100, LeaderEpoch: 17, Producer: p, Transactional: true},
		"plain": {LeaderEpoch: -1},
	} {
		w.Add(javaRecords[0])
		if name == "none" {
			w.Add(javaRecords[1])
			w.Add(javaRecords[3])
		}
		if got := w.AppendTo(nil); !bytes.Equal(got, java[name]) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, got, []byte(java[name]))
		}
	}
}

func TestMarkersAreJavasBytes(t *testing.T) {
	java := javaBatches(t)
	for name, commit := range map[string]bool{"commit": true, "abort": false} {
		m := EndTxnMarker{Commit: commit, CoordinatorEpoch: 77}
		b := Batch(AppendEndTxn(nil, Producer{ID: 42, Epoch: 3}, m, now))
		b.Stamp(100, 17)
		if !bytes.Equal(b, java[name]) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, []byte(b), []byte(java[name]))
		}
		if got, ok, err := java[name].EndTxn(); got != m || !ok || err != nil {
			t.Errorf("%s: read %+v, %t, %v", name, got, ok, err)
		}
	}
}

// A raw snappy block, without Java's framing, is what librdkafka writes.
func TestBareSnappyIsRead(t *testing.T) {
	framed := build(CodecSnappy, javaRecords[0])
	bare := append(bytes.Clone(framed[:HeaderSize]), framed[HeaderSize+xerialHeaderSize+4:]...)
	b := Batch(bare)
	if got := list(t, b); len(got) != 1 || string(got[0].Value) != "v" {
		t.Errorf("read %+v", got)
	}
}
