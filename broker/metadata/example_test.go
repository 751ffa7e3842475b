package metadata_test

import (
	"fmt"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// An image never changes: each edit makes the next, and what differs is cheap to find.
func Example() {
	id := kafka.TopicID{1}
	before := metadata.Empty().Apply(1, []metadata.Record{
		metadata.BrokerRegistration{ID: 1, Epoch: 1},
		metadata.NewTopic{ID: id, Name: "orders"},
		metadata.Partitions{
			Topic: id,
			Sets:  []metadata.ReplicaSet{{Replicas: []kafka.BrokerID{1}}},
			Slots: []metadata.Slot{{Partition: 0, Set: 0, ISR: 1, Leader: 0, LastLeader: -1}},
		},
	})
	after := before.Apply(2, []metadata.Record{metadata.BrokerRegistration{ID: 1, Epoch: 2}}) // it starts again

	for old, new := range metadata.Changed(before, after) {
		was, _ := old.Partition(0)
		is, _ := new.Partition(0)
		fmt.Printf("%s: leader %d, epoch %d then %d\n", new.Name, is.Leader, was.LeaderEpoch, is.LeaderEpoch)
	}
	// Output: orders: leader 1, epoch 0 then 1
}
