package controller

import (
	"cmp"
	"slices"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// assignNew finds the brokers of a new topic's partitions: as the request says, or by
// its counts.
func (c *Machine) assignNew(img *metadata.Image, t NewTopic) ([][]kafka.BrokerID, *kafka.Error) {
	if len(t.Assignments) > 0 {
		return manual(img, t)
	}
	if t.ReplicationFactor < -1 || t.ReplicationFactor == 0 {
		return nil, kafka.Refuse(kafka.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	}
	if t.Partitions < -1 || t.Partitions == 0 {
		return nil, kafka.Refuse(kafka.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	partitions, factor := t.Partitions, t.ReplicationFactor
	if partitions == -1 {
		partitions = c.cfg.DefaultPartitions
	}
	if factor == -1 {
		factor = c.cfg.DefaultReplication
	}
	return place(img, t.Name, 0, int(partitions), int(factor))
}

func manual(img *metadata.Image, t NewTopic) ([][]kafka.BrokerID, *kafka.Error) {
	switch {
	case t.ReplicationFactor != -1:
		return nil, kafka.Refuse(kafka.InvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
	case t.Partitions != -1:
		return nil, kafka.Refuse(kafka.InvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	byPartition := map[int32][]kafka.BrokerID{}
	factor := 0
	for _, a := range t.Assignments {
		if _, twice := byPartition[a.Partition]; twice {
			return nil, kafka.Refuse(kafka.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.Partition)
		}
		if err := checkAssignment(img, a.Brokers, factor); err != nil {
			return nil, err
		}
		if err := checkSomeLive(img, a.Partition, a.Brokers); err != nil {
			return nil, err
		}
		factor = len(a.Brokers)
		byPartition[a.Partition] = a.Brokers
	}
	out := make([][]kafka.BrokerID, len(byPartition))
	for p := range out {
		brokers, ok := byPartition[int32(p)]
		if !ok {
			return nil, kafka.Refuse(kafka.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
		out[p] = slices.Clone(brokers)
	}
	return out, nil
}

// checkAssignment refuses brokers that are not there, that stand twice, or that are
// not factor many (0: any number).
func checkAssignment(img *metadata.Image, brokers []kafka.BrokerID, factor int) *kafka.Error {
	if len(brokers) == 0 {
		return kafka.Refuse(kafka.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	if err := checkFactor(len(brokers)); err != nil {
		return err
	}
	sorted := slices.Sorted(slices.Values(brokers))
	for i, b := range sorted {
		if _, ok := img.Broker(b); !ok {
			return kafka.Refuse(kafka.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but no such broker is registered.", b)
		}
		if i > 0 && sorted[i-1] == b {
			return kafka.Refuse(kafka.InvalidReplicaAssignment, "The manual partition assignment includes the broker %d more than once.", b)
		}
	}
	if factor > 0 && len(brokers) != factor {
		return kafka.Refuse(kafka.InvalidReplicaAssignment, "The manual partition assignment includes a partition with %d replica(s), "+
			"but this is not consistent with previous partitions, which have %d replica(s).", len(brokers), factor)
	}
	return nil
}

func checkSomeLive(img *metadata.Image, partition int32, brokers []kafka.BrokerID) *kafka.Error {
	if slices.ContainsFunc(brokers, img.Live) {
		return nil
	}
	return kafka.Refuse(kafka.InvalidReplicaAssignment, "All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", partition)
}

// checkFactor keeps ISRs in their bitmap; Kafka has no such bound.
func checkFactor(n int) *kafka.Error {
	if n <= metadata.MaxReplicas {
		return nil
	}
	return kafka.Refuse(kafka.InvalidReplicationFactor, "Replication factor %d is above %d, the most that is supported.", n, metadata.MaxReplicas)
}

// place spreads partitions from number first on over the live brokers: leaders go
// round, followers follow at a distance that grows with each round, and no rack has
// two replicas of a partition while another has none.
func place(img *metadata.Image, topic string, first, partitions, factor int) ([][]kafka.BrokerID, *kafka.Error) {
	if err := checkFactor(factor); err != nil {
		return nil, err
	}
	ring, racks := ring(img)
	registered := len(img.Brokers())
	switch {
	case len(ring) == 0:
		return nil, kafka.Refuse(kafka.InvalidReplicationFactor, "Unable to replicate the partition %d time(s): All brokers are currently fenced, or have all their log directories cordoned.", factor)
	case factor > len(ring):
		return nil, kafka.Refuse(kafka.InvalidReplicationFactor, "Unable to replicate the partition %d time(s): The target replication factor of %d cannot be reached "+
			"because only %d broker(s) are registered or some brokers have all their log directories cordoned.", factor, factor, registered)
	}
	start := start(topic, len(ring))
	out := make([][]kafka.BrokerID, partitions)
	for i := range out {
		out[i] = replicas(ring, racks, start+first+i, (start+first+i)/len(ring), factor)
	}
	return out, nil
}

// replicas walks the ring from the leader on and passes by racks that have a replica
// while some rack has none.
func replicas(ring []*metadata.Broker, racks, leader, round, factor int) []kafka.BrokerID {
	n := len(ring)
	out := make([]kafka.BrokerID, 0, factor)
	used, usedRacks := make([]bool, n), map[string]bool{}
	take := func(i int) {
		used[i], usedRacks[ring[i].Rack] = true, true
		out = append(out, ring[i].ID)
	}
	take(leader % n)
	for k := 0; len(out) < factor; k++ {
		i := leader % n
		if n > 1 {
			i = (leader + 1 + (round+k)%(n-1)) % n
		}
		fresh := !usedRacks[ring[i].Rack]
		if !used[i] && (fresh || len(usedRacks) >= racks || k >= n) {
			take(i)
		}
	}
	return out
}

// ring is the live brokers, one of each rack in turn, and the number of racks.
func ring(img *metadata.Image) ([]*metadata.Broker, int) {
	byRack := map[string][]*metadata.Broker{}
	var names []string
	for _, b := range img.Brokers() {
		if b.Fenced() {
			continue
		}
		if byRack[b.Rack] == nil {
			names = append(names, b.Rack)
		}
		byRack[b.Rack] = append(byRack[b.Rack], b)
	}
	slices.SortFunc(names, cmp.Compare[string])
	var out []*metadata.Broker
	for more := true; more; {
		more = false
		for _, name := range names {
			if list := byRack[name]; len(list) > 0 {
				out, byRack[name], more = append(out, list[0]), list[1:], true
			}
		}
	}
	return out, len(names)
}

// start is where a topic begins on the ring: by its name, so that small topics do not
// all lie on the first broker.
func start(topic string, n int) int {
	h := uint32(2166136261)
	for _, c := range []byte(topic) {
		h = (h ^ uint32(c)) * 16777619
	}
	return int(h>>8) % n
}
