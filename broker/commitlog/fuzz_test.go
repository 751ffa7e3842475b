package commitlog

import (
	"bytes"
	"fmt"
	"testing"

	"varve/broker/kafka"
	"varve/broker/vfs"
)

// Whatever lies in a file beside the logs is read to values or refused; what was read
// is written back as the same values.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("0\n2\n1 0\n4 12\n"))
	f.Add([]byte("0\n1\norders 3 12\n"))
	f.Add([]byte("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=x\n"))
	f.Add([]byte("version: 0\ntopic_id: AQIDAAAAAAAAAAAAAAAAAA"))
	f.Add(summaryOf(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decodeEpochs(b); err == nil {
			again, err := decodeEpochs(e.encode())
			if err != nil || fmt.Sprint(again.list) != fmt.Sprint(e.list) {
				t.Errorf("epochs %v come back as %v, %v", e.list, again, err)
			}
		}
		if m, err := parseMeta(b); err == nil && m.Version != 0 && m.Version != 1 {
			t.Errorf("meta.properties of version %d was taken", m.Version)
		}
		if id, err := parsePartitionMetadata(b); err == nil {
			if again, err := parsePartitionMetadata(encodePartitionMetadata(id)); err != nil || again != id {
				t.Errorf("topic id %v comes back as %v, %v", id, again, err)
			}
		}
		if m, err := decodeCheckpoint(b); err == nil && len(m) > bytes.Count(b, []byte("\n")) {
			t.Errorf("checkpoint of %d bytes has %d entries", len(b), len(m))
		}
		if _, entries, err := decodeSummary(b); err == nil && len(entries)*54 > len(b) {
			t.Errorf("summary of %d bytes has %d logs", len(b), len(entries))
		}
		if found, ok := parseFolder(string(b)); ok && (found.Partition.Partition < 0 || found.Partition.Topic == "") {
			t.Errorf("folder %q is taken for %v", b, found.Partition)
		}
	})
}

func summaryOf(f *testing.F) []byte {
	f.Helper()
	d, err := OpenDir(vfs.NewMem(), "/logs", DirOptions{NodeID: 1}, 0)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := d.Create(kafka.TopicPartition{Topic: "a"}, kafka.TopicID{1}, &Config{}); err != nil {
		f.Fatal(err)
	}
	return d.encodeSummary(1)
}

func TestEndOffsetsOfEpochsAreAsKafkaAnswersThem(t *testing.T) {
	e := &Epochs{}
	for _, s := range []kafka.EpochStart{{Epoch: 2, Start: 10}, {Epoch: 4, Start: 20}, {Epoch: 4, Start: 25}, {Epoch: 3, Start: 26}, {Epoch: 7, Start: 30}} {
		e = e.assign(s.Epoch, s.Start)
	}
	if got := fmt.Sprint(e.list); got != "[{2 10} {4 20} {7 30}]" {
		t.Fatalf("epochs %s", got)
	}
	for asked, want := range map[kafka.LeaderEpoch]string{-1: "-1 -1", 1: "1 10", 2: "2 20", 3: "2 20", 4: "4 30", 6: "4 30", 7: "7 99", 8: "-1 -1"} {
		epoch, end := e.EndOffsetFor(asked, 99)
		if got := fmt.Sprint(epoch, end); got != want {
			t.Errorf("epoch %d: %s, want %s", asked, got, want)
		}
	}
	for o, want := range map[kafka.Offset]kafka.LeaderEpoch{9: -1, 10: 2, 29: 4, 30: 7} {
		if got := e.For(o); got != want {
			t.Errorf("epoch of offset %d is %d, want %d", o, got, want)
		}
	}
	if got := fmt.Sprint(e.from(22).list, e.upTo(20).list); got != "[{4 22} {7 30}] [{2 10}]" {
		t.Errorf("cut: %s", got)
	}
	if got := fmt.Sprint(e.assign(9, 30).list); got != "[{2 10} {4 20} {9 30}]" {
		t.Errorf("an epoch without records stays: %s", got)
	}
}
