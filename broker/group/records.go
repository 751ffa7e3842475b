package group

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// The versions of the records. A key's first number says which kind it is: 0 and 1
// an offset, 2 a group; higher ones belong to other kinds of group.
const (
	offsetKeyVersion   = 1
	groupKeyVersion    = 2
	offsetVersion      = 4
	offsetWithExpiry   = 1 // the only version with an expiry of its own
	groupVersion       = 3
	lastClassicVersion = groupKeyVersion
)

func offsetKey(group string, at place) []byte {
	k := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: group, Topic: at.topic, Partition: at.partition}
	return k.AppendTo(nil)
}

func groupKey(name string) []byte {
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: name}
	return k.AppendTo(nil)
}

func offsetRecord(group string, at place, o offset) Record {
	v := kmsg.NewOffsetCommitValue()
	v.Version = offsetVersion
	v.Offset, v.LeaderEpoch, v.Metadata = o.at, int32(o.epoch), o.metadata
	v.CommitTimestamp, v.TopicID = o.when, o.topicID
	if o.expires >= 0 {
		v.Version, v.ExpireTimestamp = offsetWithExpiry, o.expires
	}
	return Record{offsetKey(group, at), v.AppendTo(nil)}
}

// groupRecord is the group as the log keeps it: its members with what they said for
// the chosen protocol and what they have been assigned.
func groupRecord(g *group) Record {
	v := kmsg.NewGroupMetadataValue()
	v.Version = groupVersion
	v.ProtocolType, v.Generation = g.protocolType, g.generation
	v.CurrentStateTimestamp = g.since
	if g.protocol != "" {
		v.Protocol = &g.protocol
	}
	if g.leader != "" {
		v.Leader = &g.leader
	}
	for _, id := range g.order {
		p := g.members[id]
		one := kmsg.NewGroupMetadataValueMember()
		one.MemberID, one.InstanceID = p.id, p.instanceID()
		one.ClientID, one.ClientHost = p.clientID, p.host
		one.RebalanceTimeoutMillis = int32(p.rebalanceTimeout.Milliseconds())
		one.SessionTimeoutMillis = int32(p.sessionTimeout.Milliseconds())
		one.Subscription = p.metadata(g.protocol)
		one.Assignment = p.assignment
		v.Members = append(v.Members, one)
	}
	return Record{groupKey(g.name), v.AppendTo(nil)}
}

// writeFresh puts a group into the log that is not there yet.
func (m *Machine) writeFresh(g *group) {
	if !g.fresh {
		return
	}
	g.fresh = false
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.CurrentStateTimestamp = groupVersion, g.since
	m.write(Record{groupKey(g.name), v.AppendTo(nil)})
}

// Load takes one record of the shard's partition, in the log's order; a nil value is
// a tombstone. An error names what cannot be read; the shard must not serve then.
func (m *Machine) Load(key, value []byte) error {
	if len(key) < 2 {
		return fmt.Errorf("group record: key of %d bytes", len(key))
	}
	switch version := int16(binary.BigEndian.Uint16(key)); {
	case version < 0:
		return fmt.Errorf("group record: key of version %d", version)
	case version <= offsetKeyVersion:
		return m.loadOffset(key, value)
	case version <= lastClassicVersion:
		return m.loadGroup(key, value)
	}
	return nil
}

func (m *Machine) loadOffset(key, value []byte) error {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(key); err != nil {
		return fmt.Errorf("group record: key of an offset: %w", err)
	}
	at := place{k.Topic, k.Partition}
	g := m.groups[k.Group]
	if value == nil {
		if g != nil {
			delete(g.offsets, at)
		}
		return nil
	}
	v := kmsg.NewOffsetCommitValue()
	v.ExpireTimestamp = -1
	if err := readVersioned(value, offsetVersion, v.ReadFrom); err != nil {
		return fmt.Errorf("group %q: offset of %s-%d: %w", k.Group, k.Topic, k.Partition, err)
	}
	if g == nil {
		g = newGroup(k.Group)
		m.groups[k.Group] = g
	}
	o := offset{at: v.Offset, epoch: kafka.NoEpoch, metadata: v.Metadata, when: v.CommitTimestamp, expires: -1, topicID: v.TopicID}
	if v.Version >= 3 {
		o.epoch = kafka.LeaderEpoch(v.LeaderEpoch)
	}
	if v.Version == offsetWithExpiry {
		o.expires = v.ExpireTimestamp
	}
	g.offsets[at] = o
	return nil
}

// readVersioned refuses a version above what is known: it may say what would be lost.
func readVersioned(b []byte, newest int16, read func([]byte) error) error {
	if len(b) < 2 {
		return fmt.Errorf("value of %d bytes", len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v < 0 || v > newest {
		return fmt.Errorf("value of version %d, this broker knows up to %d", v, newest)
	}
	return read(b)
}

func (m *Machine) loadGroup(key, value []byte) error {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return fmt.Errorf("group record: key of a group: %w", err)
	}
	g := newGroup(k.Group)
	if old := m.groups[k.Group]; old != nil {
		g.offsets = old.offsets
	}
	m.groups[k.Group] = g
	if value == nil {
		if len(g.offsets) == 0 {
			delete(m.groups, k.Group)
		}
		return nil
	}
	v := kmsg.NewGroupMetadataValue()
	if err := readVersioned(value, groupVersion+1, v.ReadFrom); err != nil {
		return fmt.Errorf("group %q: %w", k.Group, err)
	}
	g.protocolType, g.generation, g.since = v.ProtocolType, v.Generation, v.CurrentStateTimestamp
	if v.Version < 2 {
		g.since = -1
	}
	if v.Protocol != nil {
		g.protocol = *v.Protocol
	}
	for _, p := range v.Members {
		g.add(loadedMember(g, p))
	}
	if v.Leader != nil {
		g.leader = *v.Leader
	}
	if len(g.members) > 0 {
		g.state = stable
	}
	return nil
}

func loadedMember(g *group, v kmsg.GroupMetadataValueMember) *member {
	p := &member{
		id:               v.MemberID,
		clientID:         v.ClientID,
		host:             v.ClientHost,
		sessionTimeout:   millis(v.SessionTimeoutMillis),
		rebalanceTimeout: millis(v.RebalanceTimeoutMillis),
		assignment:       bytes.Clone(v.Assignment),
	}
	if v.RebalanceTimeoutMillis < 0 {
		p.rebalanceTimeout = p.sessionTimeout
	}
	if v.InstanceID != nil {
		p.instance = *v.InstanceID
	}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = g.protocol, bytes.Clone(v.Subscription)
	p.protocols = []kmsg.JoinGroupRequestProtocol{protocol}
	return p
}

// Loaded begins service at now: sessions begin anew (C1), a group that has grown too
// large rebalances. It returns what that puts into the log.
func (m *Machine) Loaded(now time.Time) []Record {
	m.begin(now)
	for _, g := range m.groups {
		for _, id := range g.order {
			m.touch(g, g.members[id])
		}
		if len(g.members) > m.config.MaxSize {
			m.prepare(g)
		}
	}
	m.schedule(timer{at: now.Add(m.config.RetentionInterval), kind: retentionTimer})
	return m.records
}
