package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"varve/broker/kafka"
)

// The folders of one partition, under topics/<topic>/<topic id>/<partition>.
const (
	SegmentsDir = "segments"
	ChainDir    = "manifest"
	ProgressDir = "_inprogress"
	PinsDir     = "pins"
)

// TopicDir is the folder of all partitions of one creation of a topic.
func TopicDir(topic string, id kafka.TopicID) string {
	return "topics/" + topic + "/" + id.String()
}

// PartitionDir is the folder of one partition.
func PartitionDir(tp kafka.TopicPartition, id kafka.TopicID) string {
	return TopicDir(tp.Topic, id) + "/" + strconv.Itoa(int(tp.Partition))
}

// VersionName is the name of version n in manifest/: 20 digits and .json.
func VersionName(n int64) string { return fmt.Sprintf("%020d.json", n) }

// ParseVersionName reads a name that VersionName wrote.
func ParseVersionName(name string) (int64, error) {
	f := fields(name, ".json", 1)
	n, ok := f.padded(0)
	if !ok || n < 1 {
		return 0, fmt.Errorf("%q is no name of a manifest version", name)
	}
	return n, nil
}

// A SegmentName is what a container's name in segments/ says:
// <base 20>-<end 20>-<epoch>-<uuid>.seg, end inclusive.
type SegmentName struct {
	Base, End   kafka.Offset
	LeaderEpoch kafka.LeaderEpoch
	ID          string
}

func (n SegmentName) String() string {
	return fmt.Sprintf("%020d-%020d-%d-%s.seg", n.Base, n.End, n.LeaderEpoch, n.ID)
}

// Name is the segment's file under segments/.
func (s Segment) Name() string {
	return SegmentName{Base: s.Base, End: s.End, LeaderEpoch: s.LeaderEpoch, ID: s.ID}.String()
}

// ParseSegmentName reads a name that SegmentName.String wrote.
func ParseSegmentName(name string) (SegmentName, error) {
	f := fields(name, ".seg", 4)
	base, ok1 := f.padded(0)
	end, ok2 := f.padded(1)
	epoch, ok3 := f.plain(2)
	id, ok4 := f.id(3)
	if !ok1 || !ok2 || !ok3 || !ok4 || end < base || epoch > maxEpoch {
		return SegmentName{}, fmt.Errorf("%q is no name of a container", name)
	}
	return SegmentName{kafka.Offset(base), kafka.Offset(end), kafka.LeaderEpoch(epoch), id}, nil
}

// A ProgressName is what the name of a file in _inprogress/ says:
// <number 20>-<epoch>-<broker>-<uuid> with .seg (number = base offset) or .json
// (number = version). The epoch alone tells whether it may be swept (T4).
type ProgressName struct {
	Number      int64
	LeaderEpoch kafka.LeaderEpoch
	Broker      kafka.BrokerID
	ID          string
	Manifest    bool
}

func (n ProgressName) String() string {
	ext := ".seg"
	if n.Manifest {
		ext = ".json"
	}
	return fmt.Sprintf("%020d-%d-%d-%s%s", n.Number, n.LeaderEpoch, n.Broker, n.ID, ext)
}

// ParseProgressName reads a name that ProgressName.String wrote.
func ParseProgressName(name string) (ProgressName, error) {
	ext, manifest := ".seg", strings.HasSuffix(name, ".json")
	if manifest {
		ext = ".json"
	}
	f := fields(name, ext, 4)
	number, ok1 := f.padded(0)
	epoch, ok2 := f.plain(1)
	broker, ok3 := f.plain(2)
	id, ok4 := f.id(3)
	if !ok1 || !ok2 || !ok3 || !ok4 || epoch > maxEpoch || broker > maxEpoch {
		return ProgressName{}, fmt.Errorf("%q is no name of a file in progress", name)
	}
	return ProgressName{number, kafka.LeaderEpoch(epoch), kafka.BrokerID(broker), id, manifest}, nil
}

// A Pin is a reader's hold on the containers that were live at a version, told by
// the name of an empty file in pins/: <version 20>-<ttl seconds>-<uuid>.pin. It is
// renewed under a new name, so an expirer that has seen one name for longer than its
// TTL, on its own monotonic clock, knows it for dead (T9).
type Pin struct {
	Version    int64
	TTLSeconds int64
	ID         string
}

func (p Pin) String() string { return fmt.Sprintf("%020d-%d-%s.pin", p.Version, p.TTLSeconds, p.ID) }

// ParsePin reads a name that Pin.String wrote.
func ParsePin(name string) (Pin, error) {
	f := fields(name, ".pin", 3)
	version, ok1 := f.padded(0)
	ttl, ok2 := f.plain(1)
	id, ok3 := f.id(2)
	if !ok1 || !ok2 || !ok3 || version < 1 || ttl < 1 {
		return Pin{}, fmt.Errorf("%q is no name of a pin", name)
	}
	return Pin{version, ttl, id}, nil
}

// Holds tells whether the pin keeps a deleting segment's file: it was still live at
// the pinned version.
func (p Pin) Holds(s *Segment) bool { return s.DeletedAt > p.Version }

// parts are the fields of a name between its dashes; the last may have dashes itself.
type parts []string

// fields splits a name of n fields; nil, which no accessor accepts, if it is another.
func fields(name, ext string, n int) parts {
	stem, ok := strings.CutSuffix(name, ext)
	f := strings.SplitN(stem, "-", n)
	if !ok || len(f) != n {
		return make(parts, n)
	}
	return f
}

// padded reads a number of exactly 20 digits, plain one without leading zeros: every
// name has one spelling.
func (p parts) padded(i int) (int64, bool) {
	n, ok := digits(p[i])
	return n, ok && len(p[i]) == 20
}

func (p parts) plain(i int) (int64, bool) {
	n, ok := digits(p[i])
	return n, ok && (p[i] == "0" || p[i][0] != '0')
}

func (p parts) id(i int) (string, bool) { return p[i], validID(p[i]) }

func digits(s string) (int64, bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// validID tells whether s is a uuid in its usual lower-case spelling.
func validID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// FormatID spells 16 random bytes as a uuid (version 4).
func FormatID(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
