package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// The keys that other rooms name.
const (
	Produce                 int16 = 0
	Fetch                   int16 = 1
	ListOffsets             int16 = 2
	Metadata                int16 = 3
	OffsetCommit            int16 = 8
	OffsetFetch             int16 = 9
	FindCoordinator         int16 = 10
	JoinGroup               int16 = 11
	Heartbeat               int16 = 12
	LeaveGroup              int16 = 13
	SyncGroup               int16 = 14
	DescribeGroups          int16 = 15
	ListGroups              int16 = 16
	ApiVersions             int16 = 18
	CreateTopics            int16 = 19
	DeleteTopics            int16 = 20
	InitProducerID          int16 = 22
	OffsetForLeaderEpoch    int16 = 23
	DescribeConfigs         int16 = 32
	CreatePartitions        int16 = 37
	DeleteGroups            int16 = 42
	IncrementalAlterConfigs int16 = 44
	OffsetDelete            int16 = 47
	DescribeCluster         int16 = 60
)

// An API is one row of what is served.
type API struct {
	Key      int16
	Name     string
	Min, Max int16 // versions served
	Shown    int16 // lowest version advertised: Min, but for Produce
	Flexible int16 // first version with compact lengths and tags; none where above Max
}

// never is the Flexible of an API that has no flexible version.
const never int16 = 1<<15 - 1

// APIs are the requests served, by key. Ranges are Kafka 4.3's, without what is
// unstable there. librdkafka up to 2.8 compresses only where Produce version 0 is
// advertised, so it is, and refused (KAFKA-18659).
var APIs = []API{
	{Produce, "Produce", 3, 13, 0, 9},
	{Fetch, "Fetch", 4, 18, 4, 12},
	{ListOffsets, "ListOffsets", 1, 11, 1, 6},
	{Metadata, "Metadata", 0, 13, 0, 9},
	{OffsetCommit, "OffsetCommit", 2, 10, 2, 8},
	{OffsetFetch, "OffsetFetch", 1, 10, 1, 6},
	{FindCoordinator, "FindCoordinator", 0, 6, 0, 3},
	{JoinGroup, "JoinGroup", 0, 9, 0, 6},
	{Heartbeat, "Heartbeat", 0, 4, 0, 4},
	{LeaveGroup, "LeaveGroup", 0, 5, 0, 4},
	{SyncGroup, "SyncGroup", 0, 5, 0, 4},
	{DescribeGroups, "DescribeGroups", 0, 6, 0, 5},
	{ListGroups, "ListGroups", 0, 5, 0, 3},
	{ApiVersions, "ApiVersions", 0, 4, 0, 3},
	{CreateTopics, "CreateTopics", 2, 7, 2, 5},
	{DeleteTopics, "DeleteTopics", 1, 6, 1, 4},
	{InitProducerID, "InitProducerId", 0, 5, 0, 2},
	{OffsetForLeaderEpoch, "OffsetForLeaderEpoch", 2, 4, 2, 4},
	{DescribeConfigs, "DescribeConfigs", 1, 4, 1, 4},
	{CreatePartitions, "CreatePartitions", 0, 3, 0, 2},
	{DeleteGroups, "DeleteGroups", 0, 2, 0, 2},
	{IncrementalAlterConfigs, "IncrementalAlterConfigs", 0, 1, 0, 1},
	{OffsetDelete, "OffsetDelete", 0, 0, 0, never},
	{DescribeCluster, "DescribeCluster", 0, 2, 0, 0},
}

// byKey finds a row of APIs; -1 where there is none.
var byKey = func() (at [128]int8) {
	for i := range at {
		at[i] = -1
	}
	for i, a := range APIs {
		at[a.Key] = int8(i)
	}
	return at
}()

// Lookup is the row of a key.
func Lookup(key int16) (API, bool) {
	if key < 0 || int(key) >= len(byKey) || byKey[key] < 0 {
		return API{}, false
	}
	return APIs[byKey[key]], true
}

// Supported tells whether requests of this key and version are served.
func Supported(key, version int16) bool {
	a, ok := Lookup(key)
	return ok && a.Min <= version && version <= a.Max
}

// Name is the protocol's name of a key, served or not.
func Name(key int16) string {
	if a, ok := Lookup(key); ok {
		return a.Name
	}
	return kmsg.NameForKey(key)
}

// flexible tells whether a version has compact lengths and tags, also of keys
// that are not served.
func flexible(key, version int16) bool {
	if a, ok := Lookup(key); ok {
		return version >= a.Flexible
	}
	r := kmsg.RequestForKey(key)
	if r == nil {
		return false
	}
	r.SetVersion(version)
	return r.IsFlexible()
}
