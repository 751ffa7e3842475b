package group_test

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/group"
)

// A consumer that assigns its partitions itself commits an offset: the driver appends
// the record, waits until it is revealed, and only then sends the reply.
func Example() {
	m := group.New(group.Config{})
	m.Loaded(time.UnixMilli(0))

	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation = 8, "readers", -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "orders"
	partition := kmsg.NewOffsetCommitRequestTopicPartition()
	partition.Offset = 42
	topic.Partitions = append(topic.Partitions, partition)
	commit.Topics = append(commit.Topics, topic)

	records, replies := m.Step(time.UnixMilli(1000), group.Request{ID: 1, Body: commit})
	fmt.Println(len(records), "record in partition", group.PartitionFor("readers", 50))
	fmt.Println(len(replies), "reply, to request", replies[0].ID)
	// Output:
	// 1 record in partition 28
	// 1 reply, to request 1
}
