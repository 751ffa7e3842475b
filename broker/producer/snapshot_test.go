package producer

import (
	"encoding/hex"
	"testing"

	"varve/broker/kafka"
)

// javaSnapshot is what Kafka 4.3.1's ProducerStateManager writes of the state below.
const javaSnapshot = "00016404192f0000000300000000000000010000000000130000000000000013000000090000018bcfe5680affffffffffff" +
	"ffffffffffff00000000000000020003000000000000000000000014000000000000018bcfe56814ffffffff000000000000" +
	"001400000000000000070001ffffffffffffffffffffffff000000000000018bcfe5681e00000002ffffffffffffffff"

func TestSnapshotIsJavasBytes(t *testing.T) {
	const now = 1_700_000_000_000
	s := New(Params{})
	s.Append(Entry{PID: 1, FirstSeq: 0, LastSeq: 9, Timestamp: now}, 0, 9)
	s.Append(Entry{PID: 1, FirstSeq: 10, LastSeq: 19, Timestamp: now + 10}, 10, 19)
	s.Append(Entry{PID: 2, Epoch: 3, Timestamp: now + 20, Transactional: true}, 20, 20)
	s.Marker(Marker{PID: 7, Epoch: 1, Commit: true, Offset: 21, CoordinatorEpoch: 2, Timestamp: now + 30})
	got := hex.EncodeToString(s.MarshalSnapshot(nil))
	if got != javaSnapshot {
		t.Errorf("wrote\n%s\nJava writes\n%s", got, javaSnapshot)
	}
	want, _ := hex.DecodeString(javaSnapshot)
	read := New(Params{})
	if err := read.UnmarshalSnapshot(want); err != nil {
		t.Fatal(err)
	}
	if again := hex.EncodeToString(read.MarshalSnapshot(nil)); again != javaSnapshot {
		t.Errorf("read and written again:\n%s", again)
	}
	if stable := read.FirstUnstable(22); stable != kafka.Offset(20) {
		t.Errorf("last stable offset %d, want 20", stable)
	}
}
