package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/record"
	"varve/broker/vfs"
	"varve/cmd/e2e/servers"
)

// TestKafkasDumpToolReadsWhatABrokerWrote looks at a log of several segments as a kill
// leaves it, as recovery and further records leave it, and as a clean stop leaves it.
func TestKafkasDumpToolReadsWhatABrokerWrote(t *testing.T) {
	servers.NeedKafkaTools(t)
	v := broker(t)
	create(t, v, "dumped", 1, "segment.bytes", "1048576", "index.interval.bytes", "4096")
	want := wide("dumped", 0, 2500)
	inEveryCodec(t, v, "dumped", want)
	dir := filepath.Join(v.DataDir, "log", "dumped-0")

	v.Kill()
	// The last segment may end in zeros that were written ahead: the tool prints every
	// batch and then fails at them, as with Kafka's own log.preallocate.
	said, _ := dump(t, files(t, dir, "*.log"), "--print-data-log")
	same(t, "after a kill", payloads(said), want)

	start(t, v)
	more := wide("dumped", len(want), 600)
	produce(t, client(t, v.Addr, toPartition0()...), "dumped", more)
	want = append(want, more...)
	if err := v.Stop(); err != nil {
		t.Fatal(err)
	}
	said = mustDump(t, files(t, dir, "*.log"), "--print-data-log")
	same(t, "after a clean stop", payloads(said), want)
	offsetsAreDense(t, said)
	if n := len(files(t, dir, "*.log")); n < 3 {
		t.Errorf("%d segments, want at least 3", n)
	}
	for _, ext := range []string{"*.index", "*.timeindex", "*.snapshot"} {
		if len(files(t, dir, ext)) == 0 {
			t.Errorf("no %s in %s", ext, dir)
		}
	}
	said = mustDump(t, files(t, dir, "*.index", "*.timeindex", "*.snapshot"))
	shows(t, said, `(?m)^offset: \d+ position: [1-9]\d*$`, `(?m)^timestamp: \d+ offset: \d+$`, `producerId: \d+ producerEpoch: 0 .*lastSequence: \d+`)
	shows(t, mustDump(t, files(t, dir, "*.index"), "--index-sanity-check"), `passed sanity check`)
}

// TestKafkasDumpToolReadsTransactions has the log write what no client can ask a
// standalone broker for yet: transactions with their markers and the index of aborts.
func TestKafkasDumpToolReadsTransactions(t *testing.T) {
	servers.NeedKafkaTools(t)
	dir := t.TempDir()
	d, err := commitlog.OpenDir(vfs.OS{}, dir, commitlog.DirOptions{ClusterID: "c", NodeID: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Create(kafka.TopicPartition{Topic: "txn"}, kafka.TopicID{1}, &commitlog.Config{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(b []byte) {
		if _, err := l.AppendFrom(record.Batch(b), commitlog.Origin{Internal: true}, 5000); err != nil {
			t.Fatal(err)
		}
	}
	for i, commit := range []bool{true, false} {
		p := record.Producer{ID: kafka.ProducerID(7 + i), Sequence: 0}
		w := record.Builder{Producer: &p, Transactional: true}
		w.Add(record.Record{Timestamp: 1000, Value: []byte("inside")})
		add(w.AppendTo(nil))
		add(record.AppendEndTxn(nil, p, record.EndTxnMarker{Commit: commit, CoordinatorEpoch: 3}, 2000))
	}
	if err := d.CloseClean(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	said := mustDump(t, files(t, filepath.Join(dir, "txn-0"), "*.log", "*.txnindex", "*.snapshot"), "--print-data-log")
	shows(t, said, `endTxnMarker: COMMIT coordinatorEpoch: 3`, `endTxnMarker: ABORT coordinatorEpoch: 3`,
		`version: 0 producerId: 8 firstOffset: 2 lastOffset: 3 lastStableOffset: 4`, `producerId: 7 `)
}

// TestAKafkasLogFolderIsRead opens the folder of a real Kafka with Varve's log: as it
// lay while Kafka wrote (what a kill leaves) and after a clean stop.
func TestAKafkasLogFolderIsRead(t *testing.T) {
	k := servers.KafkaFor(t, servers.KafkaOptions{})
	v := &servers.Varve{Addr: k.Addr} // the helpers want no more of a broker than its address
	create(t, v, "adopted", 1, "segment.bytes", "1048576")
	want := wide("adopted", 0, 1500)
	inEveryCodec(t, v, "adopted", want)
	running, stopped := filepath.Join(t.TempDir(), "running"), filepath.Join(t.TempDir(), "stopped")
	copyLogs(t, running, k.DataDir)
	if err := k.Stop(); err != nil {
		t.Fatal(err)
	}
	copyLogs(t, stopped, k.DataDir)
	for _, dir := range []string{running, stopped} {
		got, segments := readFolder(t, dir, "adopted")
		same(t, dir, got, want)
		if segments < 2 {
			t.Errorf("%s: %d segments, want several", dir, segments)
		}
	}
}

// wide are values of about 1 KiB.
func wide(name string, from, n int) []string {
	values := numbered(name, from, n)
	for i := range values {
		values[i] += strings.Repeat(" .", 500)
	}
	return values
}

// inEveryCodec produces the values in order, a share with each codec.
func inEveryCodec(t *testing.T, v *servers.Varve, topic string, values []string) {
	t.Helper()
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	// Plain ones come last and are most, so that segments fill.
	slices.Reverse(codecs)
	for i, codec := range codecs {
		share := values[:min(50, len(values))]
		if i == len(codecs)-1 {
			share = values
		}
		values = values[len(share):]
		produce(t, client(t, v.Addr, append(toPartition0(), kgo.ProducerBatchCompression(codec))...), topic, share)
	}
}

// files are the files of a folder that match, in order of their offsets.
func files(t *testing.T, dir string, patterns ...string) []string {
	t.Helper()
	var out []string
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return out
}

// dump runs kafka-dump-log; a failure is only returned.
func dump(t *testing.T, files []string, args ...string) (string, error) {
	t.Helper()
	r, err := servers.KafkaTool(within(t), servers.KafkaDumpLog, append([]string{"--files", strings.Join(files, ",")}, args...)...)
	return r.Stdout + r.Stderr, err
}

// complaint is how the tool says that something does not fit.
var complaint = regexp.MustCompile(`(?im)^.*(found timestamp mismatch|found out of order|not found for offset|mismatch|isvalid: false|exception|error).*$`)

// mustDump runs kafka-dump-log and wants no complaint.
func mustDump(t *testing.T, files []string, args ...string) string {
	t.Helper()
	said, err := dump(t, files, args...)
	if err != nil {
		t.Fatal(err)
	}
	if c := complaint.FindString(said); c != "" {
		t.Fatalf("dumping %q %q: %s", files, args, c)
	}
	return said
}

var payload = regexp.MustCompile(`(?m)^\| offset: (\d+) .* payload: (.*)$`)

// payloads are the values in a dump, in its order.
func payloads(said string) []string {
	var out []string
	for _, m := range payload.FindAllStringSubmatch(said, -1) {
		out = append(out, m[2])
	}
	return out
}

// offsetsAreDense wants every offset from 0 in its place.
func offsetsAreDense(t *testing.T, said string) {
	t.Helper()
	for i, m := range payload.FindAllStringSubmatch(said, -1) {
		if m[1] != fmt.Sprint(i) {
			t.Fatalf("record %d of the dump has offset %s", i, m[1])
		}
	}
}

// copyLogs copies a log.dir but its lock, which is a process's own.
func copyLogs(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(to, ".lock")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// readFolder opens partition 0 of a topic in a log.dir and reads all its values, whose
// offsets must be 0, 1, 2, …
func readFolder(t *testing.T, dir, topic string) (values []string, segments int) {
	t.Helper()
	d, err := commitlog.OpenDir(vfs.OS{}, dir, commitlog.DirOptions{NodeID: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Abandon()
	l, err := d.Open(kafka.TopicPartition{Topic: topic}, kafka.TopicID{}, &commitlog.Config{RetentionMs: -1})
	if err != nil {
		t.Fatal(err)
	}
	for at := l.Start(); at < l.End(); {
		run, info, err := l.Read(at, 1<<20, l.End(), true)
		if err != nil {
			t.Fatalf("reading at %d of %d: %v", at, l.End(), err)
		}
		b := make([]byte, run.N)
		if _, err := run.File.ReadAt(b, run.Pos); err != nil {
			t.Fatal(err)
		}
		run.Release()
		values = append(values, valuesOf(t, b, len(values))...)
		at = info.Next
	}
	infos, err := l.Segments()
	if err != nil {
		t.Fatal(err)
	}
	return values, len(infos)
}

// valuesOf are the values of whole batches, whose offsets begin at from.
func valuesOf(t *testing.T, b []byte, from int) (values []string) {
	t.Helper()
	for len(b) > 0 {
		batch, rest, err := record.Parse(b)
		if err != nil || !batch.ValidCRC() {
			t.Fatalf("a batch after offset %d: %v, CRC right: %v", from+len(values), err, batch.ValidCRC())
		}
		r := batch.Records(&record.Decompressor{})
		var one record.Record
		for r.Next(&one) {
			if want := kafka.Offset(from + len(values)); one.Offset != want {
				t.Fatalf("a record has offset %d, want %d", one.Offset, want)
			}
			values = append(values, string(one.Value))
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		b = rest
	}
	return values
}
