package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// TestController runs the stories in testdata. Each request is followed by its answer,
// then the records that it wrote; "image" shows what has become.
func TestController(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newStory()
		datadriven.RunTest(t, path, s.run)
	})
}

type story struct {
	c   *Machine
	ids byte
}

func newStory() *story {
	s := &story{}
	s.c = New(metadata.Empty(), Config{
		NewID:              func() kafka.TopicID { s.ids++; return kafka.TopicID{15: s.ids} },
		DefaultPartitions:  2,
		DefaultReplication: 1,
		MinISR: func(c map[string]string) int {
			n := 1
			fmt.Sscan(c["min.insync.replicas"], &n)
			return n
		},
		Tiered: func(c map[string]string) bool { return c["remote.storage.enable"] == "true" },
		CheckConfig: func(_ metadata.ResourceType, _ string, c map[string]string) *kafka.Error {
			if _, bad := c["nonsense"]; bad {
				return kafka.Refuse(kafka.InvalidConfig, "Unknown topic config name: nonsense")
			}
			return nil
		},
		ListDefault: func(_ metadata.ResourceType, key string) (string, bool) { return "delete", key == "cleanup.policy" },
	})
	return s
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "image":
		return showImage(s.c.Image())
	case "begin":
		return s.show(s.step(BeginTerm{Epoch: kafka.ControllerEpoch(number(t, d, "epoch", 1)), Who: "c", ClusterID: "cluster"}))
	case "register":
		r := RegisterBroker{
			ID: broker(t, d, "id"), Incarnation: [16]byte{byte(number(t, d, "incarnation", 1))}, Epoch: kafka.BrokerEpoch(number(t, d, "epoch", 0)),
			Folder: [16]byte{byte(number(t, d, "folder", 0))}, Unclean: d.HasArg("unclean"),
		}
		d.MaybeScanArgs(t, "rack", &r.Rack)
		d.MaybeScanArgs(t, "cluster", &r.ClusterID)
		return s.show(s.step(r))
	case "fence":
		return s.show(s.step(FenceBroker{broker(t, d, "id"), kafka.BrokerEpoch(number(t, d, "epoch", 0))}))
	case "create":
		return s.show(s.step(CreateTopics{Topics: newTopics(t, d), ValidateOnly: d.HasArg("validate")}))
	case "delete":
		return s.show(s.step(DeleteTopics{Topics: topicRefs(t, d)}))
	case "partitions":
		return s.show(s.step(CreatePartitions{Topics: morePartitions(t, d), ValidateOnly: d.HasArg("validate")}))
	case "configs":
		return s.show(s.step(AlterConfigs{Resources: alterations(t, d), Replace: d.HasArg("replace")}))
	case "isr":
		return s.show(s.step(alterPartition(t, d, s.c.Image())))
	case "ids":
		return s.show(s.step(AllocateProducerIDs{broker(t, d, "id"), kafka.BrokerEpoch(number(t, d, "epoch", 0))}))
	case "gone":
		return s.show(s.step(ForgetTopics{[]kafka.TopicID{{15: byte(number(t, d, "topic", 0))}}}))
	}
	t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	return ""
}

func (s *story) step(req Request) Outcome { return s.c.Step(time.Unix(0, 0), req) }

func (s *story) show(o Outcome) string {
	var b strings.Builder
	showAnswer(&b, o.Answer)
	for _, r := range o.Records {
		fmt.Fprintf(&b, "  %s\n", showRecord(r))
	}
	return b.String()
}

func showAnswer(b *strings.Builder, a Answer) {
	switch a := a.(type) {
	case TopicsCreated:
		for _, t := range a.Topics {
			if t.Err != nil {
				fmt.Fprintf(b, "%s: %v\n", short(t.Name), t.Err)
				continue
			}
			fmt.Fprintf(b, "%s: id %d, %d partitions of %d\n", t.Name, t.ID[15], t.Partitions, t.ReplicationFactor)
		}
	case TopicsDeleted:
		for _, t := range a.Topics {
			fmt.Fprintf(b, "%q id %d: %s\n", t.Name, t.ID[15], result(t.Err))
		}
	case PartitionsCreated:
		for _, t := range a.Topics {
			fmt.Fprintf(b, "%s: %s\n", t.Name, result(t.Err))
		}
	case ConfigsAltered:
		for _, r := range a.Resources {
			fmt.Fprintf(b, "%s: %s\n", r.Name, result(r.Err))
		}
	case BrokerRegistered:
		if a.Err != nil {
			fmt.Fprintf(b, "%v\n", a.Err)
			return
		}
		fmt.Fprintf(b, "broker epoch %d\n", a.Epoch)
	case BrokerFenced:
		fmt.Fprintln(b, result(a.Err))
	case PartitionsAltered:
		if a.Err != nil {
			fmt.Fprintf(b, "%v\n", a.Err)
		}
		for _, p := range a.Partitions {
			fmt.Fprintf(b, "%v isr=%v epoch=%d\n", p.Code, p.State.ISR, p.State.PartitionEpoch)
		}
	case ProducerIDsAllocated:
		if a.Err != nil {
			fmt.Fprintf(b, "%v\n", a.Err)
			return
		}
		fmt.Fprintf(b, "ids [%d,%d)\n", a.First, int64(a.First)+int64(a.Count))
	default:
		fmt.Fprintf(b, "%T\n", a)
	}
}

func result(err *kafka.Error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

func short(s string) string {
	if len(s) > 20 {
		return s[:8] + "…"
	}
	return s
}

func showRecord(r metadata.Record) string {
	switch r := r.(type) {
	case metadata.NewTopic:
		return fmt.Sprintf("topic %s id %d", r.Name, r.ID[15])
	case metadata.Partitions:
		return fmt.Sprintf("partitions of %d:%s", r.Topic[15], showSlots(r.Sets, r.Slots))
	case metadata.PartitionChange:
		return fmt.Sprintf("change of %d:%s", r.Topic[15], showSlots(r.Sets, r.Slots))
	case metadata.Config:
		s := fmt.Sprintf("config %s", r.Name)
		for _, c := range r.Settings {
			if c.Value == nil {
				s += " -" + c.Key
			} else {
				s += " " + c.Key + "=" + *c.Value
			}
		}
		return s
	case metadata.BrokerRegistration:
		return fmt.Sprintf("register %d at %d unclean=%v", r.ID, r.Epoch, r.Unclean)
	case metadata.RemoveTopic:
		return fmt.Sprintf("remove %d tiered=%v", r.ID[15], r.Tiered)
	default:
		return fmt.Sprintf("%T%+v", r, r)
	}
}

func showSlots(sets []metadata.ReplicaSet, slots []metadata.Slot) string {
	var b strings.Builder
	for _, s := range slots {
		fmt.Fprintf(&b, " %d", s.Partition)
		if s.Set != metadata.NoSet {
			fmt.Fprintf(&b, "%v", sets[s.Set].Replicas)
		}
		fmt.Fprintf(&b, "{isr %b elr %b leader %d e%d p%d", s.ISR, s.ELR, s.Leader, s.LeaderEpoch, s.PartitionEpoch)
		if s.Recovering {
			b.WriteString(" recovering")
		}
		b.WriteString("}")
	}
	return b.String()
}

func showImage(m *metadata.Image) string {
	var b strings.Builder
	for _, x := range m.Brokers() {
		fmt.Fprintf(&b, "broker %d epoch %d fenced=%v\n", x.ID, x.Epoch, x.Fenced())
	}
	for name, t := range m.Topics() {
		for p, s := range t.Partitions() {
			fmt.Fprintf(&b, "%s-%d replicas %v isr %v elr %v leader %d e%d p%d", name, p, s.Replicas, s.ISR, s.ELR, s.Leader, s.LeaderEpoch, s.PartitionEpoch)
			if s.Recovering {
				b.WriteString(" recovering")
			}
			b.WriteString("\n")
		}
		if len(t.Configs()) > 0 {
			fmt.Fprintf(&b, "%s %v\n", name, t.Configs())
		}
	}
	for _, d := range m.Deleted() {
		fmt.Fprintf(&b, "deleted %s id %d, %d partitions in the tier\n", d.Name, d.ID[15], d.Partitions)
	}
	return b.String()
}

// newTopics reads one topic a line: name partitions factor [p=b,b…] [key=value…].
func newTopics(t *testing.T, d *datadriven.TestData) (out []NewTopic) {
	for _, line := range lines(d) {
		f := strings.Fields(line)
		topic := NewTopic{Partitions: -1, ReplicationFactor: -1, Name: strings.Trim(f[0], `"`)}
		if topic.Name == "long" {
			topic.Name = strings.Repeat("x", 250)
		}
		fmt.Sscan(f[1], &topic.Partitions)
		fmt.Sscan(f[2], &topic.ReplicationFactor)
		for _, w := range f[3:] {
			k, v, ok := strings.Cut(w, "=")
			var p int32
			if _, err := fmt.Sscan(k, &p); err == nil {
				topic.Assignments = append(topic.Assignments, Assignment{p, brokers(v)})
			} else if ok {
				topic.Configs = append(topic.Configs, NamedValue{k, &v})
			} else {
				topic.Configs = append(topic.Configs, NamedValue{k, nil})
			}
		}
		out = append(out, topic)
	}
	return out
}

func lines(d *datadriven.TestData) []string {
	if d.Input == "" {
		return nil
	}
	return strings.Split(d.Input, "\n")
}

func brokers(s string) (out []kafka.BrokerID) {
	for _, w := range strings.Split(s, ",") {
		var id kafka.BrokerID
		if _, err := fmt.Sscan(w, &id); err == nil {
			out = append(out, id)
		}
	}
	return out
}

// topicRefs reads names, ids as #n, and name#n for both, - for neither.
func topicRefs(t *testing.T, d *datadriven.TestData) (out []TopicRef) {
	for _, line := range lines(d) {
		var ref TopicRef
		name, id, ok := strings.Cut(line, "#")
		if ok {
			fmt.Sscan(id, &ref.ID[15])
		}
		if name != "" && name != "-" {
			ref.Name = &name
		}
		out = append(out, ref)
	}
	return out
}

// morePartitions reads: name count [b,b…]…
func morePartitions(t *testing.T, d *datadriven.TestData) (out []MorePartitions) {
	for _, line := range lines(d) {
		f := strings.Fields(line)
		m := MorePartitions{Name: f[0]}
		fmt.Sscan(f[1], &m.Count)
		for _, w := range f[2:] {
			m.Assignments = append(m.Assignments, brokers(w))
		}
		out = append(out, m)
	}
	return out
}

// alterations reads: topic key=value | -key | key+=value | key-=value …
func alterations(t *testing.T, d *datadriven.TestData) (out []AlterResource) {
	for _, line := range lines(d) {
		f := strings.Fields(line)
		r := AlterResource{Type: metadata.TopicResource, Name: f[0]}
		for _, w := range f[1:] {
			k, v, ok := strings.Cut(w, "=")
			op := ConfigOp{Name: k, Value: &v}
			switch {
			case strings.HasPrefix(w, "-"):
				op = ConfigOp{Name: w[1:], Kind: OpDelete}
			case !ok:
				op.Value = nil
			case strings.HasSuffix(k, "+"):
				op.Name, op.Kind = k[:len(k)-1], OpAppend
			case strings.HasSuffix(k, "-"):
				op.Name, op.Kind = k[:len(k)-1], OpSubtract
			}
			r.Ops = append(r.Ops, op)
		}
		out = append(out, r)
	}
	return out
}

// alterPartition reads a leader's wish for partition 0 of a topic; epochs not given are
// the image's.
func alterPartition(t *testing.T, d *datadriven.TestData, img *metadata.Image) AlterPartition {
	var name, members string
	d.ScanArgs(t, "topic", &name)
	d.ScanArgs(t, "members", &members)
	topic, _ := img.Topic(name)
	state, _ := topic.Partition(0)
	b, _ := img.Broker(broker(t, d, "by"))
	want := WantedISR{
		Topic: topic.ID, LeaderEpoch: kafka.LeaderEpoch(number(t, d, "leader-epoch", int64(state.LeaderEpoch))),
		PartitionEpoch: kafka.PartitionEpoch(number(t, d, "partition-epoch", int64(state.PartitionEpoch))), Recovering: d.HasArg("recovering"),
	}
	for _, w := range strings.Split(members, "/") {
		m := ISRMember{Epoch: -1}
		fmt.Sscanf(strings.ReplaceAll(w, "@", " "), "%d %d", &m.Broker, &m.Epoch)
		want.Members = append(want.Members, m)
	}
	return AlterPartition{b.ID, kafka.BrokerEpoch(number(t, d, "broker-epoch", int64(b.Epoch))), []WantedISR{want}}
}

func number(t *testing.T, d *datadriven.TestData, key string, fallback int64) int64 {
	n := fallback
	d.MaybeScanArgs(t, key, &n)
	return n
}

func broker(t *testing.T, d *datadriven.TestData, key string) kafka.BrokerID {
	return kafka.BrokerID(number(t, d, key, 1))
}

// TestPlacementSpreadsLeadersAndRacks over any number of brokers and racks.
func TestPlacementSpreadsLeadersAndRacks(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for racks := 1; racks <= n; racks++ {
			var records []metadata.Record
			for i := range n {
				records = append(records, metadata.BrokerRegistration{ID: kafka.BrokerID(i), Epoch: 1, Rack: fmt.Sprint("r", i%racks)})
			}
			img := metadata.Empty().Apply(1, records)
			for factor := 1; factor <= n; factor++ {
				assigned, err := place(img, "t", 0, 3*n, factor)
				if err != nil {
					t.Fatal(err)
				}
				checkSpread(t, assigned, n, racks, factor)
			}
		}
	}
}

func checkSpread(t *testing.T, assigned [][]kafka.BrokerID, n, racks, factor int) {
	t.Helper()
	led := map[kafka.BrokerID]int{}
	for p, list := range assigned {
		led[list[0]]++
		seen, used := map[kafka.BrokerID]bool{}, map[int]bool{}
		for _, b := range list {
			seen[b], used[int(b)%racks] = true, true
		}
		if len(seen) != factor || len(used) != min(racks, factor) {
			t.Fatalf("%d brokers in %d racks: partition %d is on %v: want %d brokers in %d racks", n, racks, p, list, factor, min(racks, factor))
		}
	}
	for b, k := range led {
		if k != 3 {
			t.Fatalf("%d brokers: broker %d leads %d of %d partitions, want 3", n, b, k, len(assigned))
		}
	}
}
