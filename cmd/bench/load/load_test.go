package load

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestBatchIsWhole(t *testing.T) {
	for _, size := range []int{0, 1000, 16384} {
		b := newBatch(size, 100)
		if n := int(binary.BigEndian.Uint32(b.bytes[8:])) + 12; n != len(b.bytes) {
			t.Errorf("size %d: the length field says %d of %d bytes", size, n, len(b.bytes))
		}
		if got := crc32.Checksum(b.bytes[21:], castagnoli); got != binary.BigEndian.Uint32(b.bytes[17:]) {
			t.Errorf("size %d: checksum %x", size, got)
		}
		if size == 0 && b.records != 1 || size > 0 && len(b.bytes) > size {
			t.Errorf("size %d: %d records in %d bytes", size, b.records, len(b.bytes))
		}
	}
}

func TestMomentTravelsInTheFirstValue(t *testing.T) {
	b := newBatch(1000, 100)
	at := time.Unix(1_700_000_000, 123_456_789)
	b.due(at)
	if got := b.sentAt(slices.Clone(b.bytes)); !got.Equal(at) {
		t.Errorf("sent at %v, want %v", got, at)
	}
	if got := crc32.Checksum(b.bytes[21:], castagnoli); got != binary.BigEndian.Uint32(b.bytes[17:]) {
		t.Error("the checksum is not of what is sent")
	}
}

func TestSkimCountsFromTheNextOffset(t *testing.T) {
	b := newBatch(1000, 100)
	var log []byte
	for i := range 3 {
		binary.BigEndian.PutUint64(b.bytes, uint64(i*b.records))
		log = append(log, b.bytes...)
	}
	whole, n := len(log), int64(b.records)
	log = append(log, b.bytes[:100]...) // the answer was cut here
	calls := 0
	next, records, size := skim(log, n+2, func([]byte) { calls++ })
	if next != 3*n || records != 2*n-2 || size != int64(whole) || calls != 2 {
		t.Errorf("next %d, %d records, %d bytes, %d batches; want %d, %d, %d, 2", next, records, size, calls, 3*n, 2*n-2, whole)
	}
}

func TestStatIsReadPastAnyName(t *testing.T) {
	line := "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 17 18 19 20 1000 22"
	u, err := parseStat(line)
	if err != nil || u.cpu != 3*time.Second || u.rss != 1000*int64(os.Getpagesize()) {
		t.Errorf("%+v, %v; want 3 s and 1000 pages", u, err)
	}
	if _, err := parseStat("42 (short) S 1 2"); err == nil {
		t.Error("a short line is taken")
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	u, err := usageOf([]int{os.Getpid()})
	if err != nil || u.rss < 1<<20 {
		t.Errorf("%+v, %v; want more than a MiB in memory", u, err)
	}
}

func TestLatencyIsOfTheWholeRun(t *testing.T) {
	var all []time.Duration
	for i := range 1000 {
		all = append(all, time.Duration(1000-i)*time.Millisecond)
	}
	l := latencyOf(all)
	want := Latency{501 * time.Millisecond, 991 * time.Millisecond, 1000 * time.Millisecond, 1000 * time.Millisecond}
	if l != want {
		t.Errorf("%+v, want %+v", l, want)
	}
}
