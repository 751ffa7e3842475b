package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestStories runs the scripts in testdata. A command is a request or the passing of
// time; it prints the records (+), then the replies (<), each with the id of its
// request. Time is in ms and moves with t=.
//
//	join id= [client=] [member=] [instance=] [type=] protocols=(name:topic+topic,…)
//	sync id= member= gen= [assign=(member:what,…)]
//	heartbeat | leave | commit | fetch | offset-delete | describe | list | delete
//	tick t=     everything due until then
//	restart     another machine loads what was written
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		st := &story{m: New(Config{})}
		st.m.Loaded(st.at(0))
		datadriven.RunTest(t, path, st.run)
	})
}

type story struct {
	m   *Machine
	ms  int64
	log []Record
	ids int
}

func (st *story) at(ms int64) time.Time { return time.UnixMilli(1_000_000 + ms) }

// arg is the value of an argument, or what stands in for it.
func arg[T any](t *testing.T, d *datadriven.TestData, name string, v T) T {
	d.MaybeScanArgs(t, name, &v)
	return v
}

func optional(t *testing.T, d *datadriven.TestData, name string) *string {
	if !d.HasArg(name) {
		return nil
	}
	v := arg(t, d, name, "")
	return &v
}

// pairs reads an argument of the form (a:b,c:d).
func pairs(d *datadriven.TestData, name string) [][2]string {
	var out [][2]string
	for _, a := range d.CmdArgs {
		if a.Key == name {
			for _, v := range a.Vals {
				k, w, _ := strings.Cut(v, ":")
				out = append(out, [2]string{k, w})
			}
		}
	}
	return out
}

func (st *story) run(t *testing.T, d *datadriven.TestData) string {
	st.ms = arg(t, d, "t", st.ms)
	switch d.Cmd {
	case "config":
		c := Config{MaxSize: arg(t, d, "max-size", 0)}
		c.InitialDelay = time.Duration(arg(t, d, "delay", 0)) * time.Millisecond
		st.m = New(c)
		st.m.Loaded(st.at(st.ms))
		return ""
	case "tick":
		return st.tick()
	case "restart":
		return st.restart(t)
	case "unload":
		return st.show(nil, st.m.Unload())
	}
	st.ids++
	r := Request{ID: RequestID(arg(t, d, "id", 0)), ClientID: arg(t, d, "client", "c"), ClientHost: "/127.0.0.1",
		NewID: fmt.Sprint(st.ids), Body: st.body(t, d)}
	return st.show(st.m.Step(st.at(st.ms), r))
}

func (st *story) tick() string {
	var out strings.Builder
	for {
		next, ok := st.m.Next()
		if !ok || next.After(st.at(st.ms)) {
			return out.String()
		}
		records, replies := st.m.Tick(next)
		if s := st.show(records, replies); s != "" {
			fmt.Fprintf(&out, "at %d\n%s", next.Sub(st.at(0)).Milliseconds(), s)
		}
	}
}

func (st *story) restart(t *testing.T) string {
	st.m = New(st.m.config)
	for _, r := range st.log {
		if err := st.m.Load(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
	return st.show(st.m.Loaded(st.at(st.ms)), nil) + st.groups()
}

func (st *story) groups() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(st.m.groups)) {
		g := st.m.groups[name]
		fmt.Fprintf(&out, "%s %v generation %d leader %q members %v offsets %d\n", name, g.state, g.generation, g.leader, g.order, len(g.offsets))
	}
	return out.String()
}

func (st *story) body(t *testing.T, d *datadriven.TestData) kmsg.Request {
	group := arg(t, d, "group", "g")
	member := arg(t, d, "member", "")
	gen := int32(arg(t, d, "gen", -1))
	instance := optional(t, d, "instance")
	version := func(v int) int16 { return int16(arg(t, d, "v", v)) }
	switch d.Cmd {
	case "join":
		q := kmsg.NewPtrJoinGroupRequest()
		q.Version, q.Group, q.MemberID, q.InstanceID = version(9), group, member, instance
		q.SessionTimeoutMillis = int32(arg(t, d, "session", 10000))
		q.RebalanceTimeoutMillis = int32(arg(t, d, "rebalance", 60000))
		q.ProtocolType = arg(t, d, "type", "consumer")
		for _, p := range pairs(d, "protocols") {
			one := kmsg.NewJoinGroupRequestProtocol()
			said := kmsg.NewConsumerMemberMetadata()
			said.Topics = strings.Split(p[1], "+")
			one.Name, one.Metadata = p[0], said.AppendTo(nil)
			q.Protocols = append(q.Protocols, one)
		}
		return q
	case "sync":
		q := kmsg.NewPtrSyncGroupRequest()
		q.Version, q.Group, q.MemberID, q.InstanceID, q.Generation = version(5), group, member, instance, gen
		protocolType, protocol := arg(t, d, "type", "consumer"), arg(t, d, "protocol", "range")
		q.ProtocolType, q.Protocol = &protocolType, &protocol
		for _, p := range pairs(d, "assign") {
			one := kmsg.NewSyncGroupRequestGroupAssignment()
			one.MemberID, one.MemberAssignment = p[0], []byte(p[1])
			q.GroupAssignment = append(q.GroupAssignment, one)
		}
		return q
	case "heartbeat":
		q := kmsg.NewPtrHeartbeatRequest()
		q.Version, q.Group, q.MemberID, q.InstanceID, q.Generation = 4, group, member, instance, gen
		return q
	case "leave":
		q := kmsg.NewPtrLeaveGroupRequest()
		q.Version, q.Group, q.MemberID = version(5), group, member
		if q.Version >= 3 {
			one := kmsg.NewLeaveGroupRequestMember()
			one.MemberID, one.InstanceID = member, instance
			q.Members = append(q.Members, one)
		}
		return q
	case "commit":
		q := kmsg.NewPtrOffsetCommitRequest()
		q.Version, q.Group, q.MemberID, q.InstanceID, q.Generation = version(9), group, member, instance, gen
		q.RetentionTimeMillis = int64(arg(t, d, "retention", -1))
		for _, p := range pairs(d, "offsets") {
			topic := kmsg.NewOffsetCommitRequestTopic()
			topic.Topic = p[0]
			one := kmsg.NewOffsetCommitRequestTopicPartition()
			fmt.Sscanf(p[1], "%d=%d", &one.Partition, &one.Offset)
			metadata := strings.Repeat("m", arg(t, d, "metadata", 1))
			one.Metadata = &metadata
			topic.Partitions = append(topic.Partitions, one)
			q.Topics = append(q.Topics, topic)
		}
		return q
	case "fetch":
		return fetchBody(d, group, version(9))
	case "offset-delete":
		q := kmsg.NewPtrOffsetDeleteRequest()
		q.Group = group
		for _, p := range pairs(d, "topics") {
			topic := kmsg.NewOffsetDeleteRequestTopic()
			topic.Topic = p[0]
			one := kmsg.NewOffsetDeleteRequestTopicPartition()
			fmt.Sscan(p[1], &one.Partition)
			topic.Partitions = append(topic.Partitions, one)
			q.Topics = append(q.Topics, topic)
		}
		return q
	case "describe":
		q := kmsg.NewPtrDescribeGroupsRequest()
		q.Version, q.Groups = version(6), []string{group}
		return q
	case "list":
		q := kmsg.NewPtrListGroupsRequest()
		q.Version = 5
		if s := arg(t, d, "state", ""); s != "" {
			q.StatesFilter = []string{s}
		}
		if s := arg(t, d, "type", ""); s != "" {
			q.TypesFilter = []string{s}
		}
		return q
	case "delete":
		q := kmsg.NewPtrDeleteGroupsRequest()
		q.Version, q.Groups = 2, []string{group}
		return q
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return nil
}

func fetchBody(d *datadriven.TestData, group string, version int16) kmsg.Request {
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version, q.Group = version, group
	one := kmsg.NewOffsetFetchRequestGroup()
	one.Group = group
	for _, p := range pairs(d, "topics") {
		var partition int32
		fmt.Sscan(p[1], &partition)
		topic := kmsg.NewOffsetFetchRequestGroupTopic()
		topic.Topic, topic.Partitions = p[0], []int32{partition}
		one.Topics = append(one.Topics, topic)
		old := kmsg.NewOffsetFetchRequestTopic()
		old.Topic, old.Partitions = p[0], []int32{partition}
		q.Topics = append(q.Topics, old)
	}
	if version >= 8 {
		q.Groups = append(q.Groups, one)
	}
	return q
}
