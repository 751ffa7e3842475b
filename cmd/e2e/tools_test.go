package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/e2e/servers"
)

func TestKafkasToolsManageTheBroker(t *testing.T) {
	servers.NeedKafkaTools(t)
	v := broker(t)
	t.Run("kafka-topics creates, describes, alters, lists and deletes", func(t *testing.T) { toolTopics(t, v) })
	t.Run("kafka-get-offsets finds every special offset", func(t *testing.T) { toolOffsets(t, v) })
	t.Run("kafka-configs sets, shows and clears a topic's settings", func(t *testing.T) { toolConfigs(t, v) })
	t.Run("kafka-consumer-groups lists, describes and resets", func(t *testing.T) { toolGroups(t, v) })
	t.Run("the perf tests count what they send and receive", func(t *testing.T) { toolPerf(t, v) })
	t.Run("kafka-broker-api-versions finds every version usable", func(t *testing.T) { toolVersions(t, v) })
}

// shows fails unless the text has every pattern.
func shows(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(text) {
			t.Errorf("no %q in\n%s", p, text)
		}
	}
}

func toolTopics(t *testing.T, v *servers.Varve) {
	topics := func(args ...string) string { return tool(t, v, servers.KafkaTopics, args...) }
	shows(t, topics("--create", "--topic", "made", "--partitions", "2", "--config", "retention.ms=100000"), `^Created topic made\.`)
	shows(t, topics("--describe", "--topic", "made"),
		`Topic: made\tTopicId: \S{22}\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: .*retention\.ms=100000`,
		`Topic: made\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\t`)
	topics("--alter", "--topic", "made", "--partitions", "5")
	shows(t, topics("--describe", "--topic", "made"), `PartitionCount: 5\t`, `Partition: 4\tLeader: 1\t`)
	if got := split(topics("--list")); !slices.Contains(got, "made") {
		t.Errorf("topics %q, want made among them", got)
	}
	topics("--delete", "--topic", "made")
	if got := split(topics("--list")); slices.Contains(got, "made") {
		t.Errorf("topics %q after made was deleted", got)
	}
}

func toolOffsets(t *testing.T, v *servers.Varve) {
	create(t, v, "places", 1, "retention.ms", "-1") // its records are old
	cl := client(t, v.Addr, toPartition0()...)
	for i, ts := range []int64{1000, 5000, 3000} {
		r := &kgo.Record{Topic: "places", Value: fmt.Append(nil, i), Timestamp: time.UnixMilli(1_700_000_000_000 + ts)}
		if err := cl.ProduceSync(within(t), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ time, want string }{
		{"-1", "places:0:3"},            // latest
		{"-2", "places:0:0"},            // earliest
		{"-3", "places:0:1"},            // of the highest timestamp
		{"-4", "places:0:0"},            // earliest local
		{"-5", ""},                      // latest tiered: the topic is not
		{"1700000002000", "places:0:1"}, // the first at or after
		{"1700000009000", ""},           // none so late
	} {
		if got := strings.TrimSpace(tool(t, v, servers.KafkaGetOffsets, "--topic", "places", "--time", c.time)); got != c.want {
			t.Errorf("--time %s: %q, want %q", c.time, got, c.want)
		}
	}
}

func toolConfigs(t *testing.T, v *servers.Varve) {
	create(t, v, "set", 1)
	configs := func(args ...string) string {
		return tool(t, v, servers.KafkaConfigs, append([]string{"--entity-type", "topics", "--entity-name", "set"}, args...)...)
	}
	configs("--alter", "--add-config", "retention.ms=120000,cleanup.policy=[compact,delete]")
	shows(t, configs("--describe"), `retention\.ms=120000 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=120000`, `cleanup\.policy=compact,delete `)
	configs("--alter", "--delete-config", "retention.ms")
	if got := configs("--describe"); strings.Contains(got, "retention.ms=") || !strings.Contains(got, "cleanup.policy=") {
		t.Errorf("after retention.ms was cleared:\n%s", got)
	}
	shows(t, configs("--describe", "--all"), `retention\.ms=604800000 `, `segment\.bytes=1073741824 `, `remote\.storage\.enable=false `)
}

func toolGroups(t *testing.T, v *servers.Varve) {
	create(t, v, "grouped", 1)
	groups := func(args ...string) string { return tool(t, v, servers.KafkaConsumerGroups, args...) }
	produce(t, client(t, v.Addr, toPartition0()...), "grouped", numbered("grouped", 0, 100))
	member := client(t, v.Addr, kgo.ConsumerGroup("tools"), kgo.ConsumeTopics("grouped"), kgo.DisableAutoCommit(), kgo.ClientID("someone"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	poll(t, member, 60)
	if err := member.CommitUncommittedOffsets(within(t)); err != nil {
		t.Fatal(err)
	}
	if got := split(groups("--list")); !slices.Contains(got, "tools") {
		t.Errorf("groups %q, want tools among them", got)
	}
	shows(t, groups("--describe", "--group", "tools"), `tools\s+grouped\s+0\s+60\s+100\s+40\s+someone-\S+\s+/127\.0\.0\.1\s+someone`)
	shows(t, groups("--describe", "--group", "tools", "--members"), `tools\s+someone-\S+\s+/127\.0\.0\.1\s+someone\s+1`)
	shows(t, groups("--describe", "--group", "tools", "--state"), `\sStable\s+1`)
	member.Close()
	shows(t, groups("--reset-offsets", "--group", "tools", "--topic", "grouped", "--shift-by", "-10", "--execute"), `tools\s+grouped\s+0\s+50`)
	shows(t, groups("--reset-offsets", "--group", "tools", "--all-topics", "--to-earliest", "--execute"), `tools\s+grouped\s+0\s+0`)
	shows(t, groups("--describe", "--group", "tools"), `tools\s+grouped\s+0\s+0\s+100\s+100\s+-`)
}

func toolPerf(t *testing.T, v *servers.Varve) {
	create(t, v, "perf", 3)
	said := tool(t, v, servers.KafkaProducerPerfTest, "--topic", "perf", "--num-records", "20000", "--record-size", "100", "--throughput", "-1")
	shows(t, said, `(?m)^20000 records sent, `)
	said = tool(t, v, servers.KafkaConsumerPerfTest, "--topic", "perf", "--num-records", "20000")
	rows := split(said)
	if fields := strings.Split(rows[len(rows)-1], ", "); len(fields) < 5 || fields[4] != "20000" {
		t.Errorf("the consumer's last line %q, want 20000 messages consumed", rows[len(rows)-1])
	}
}

func toolVersions(t *testing.T, v *servers.Varve) {
	said := tool(t, v, servers.KafkaBrokerAPIVersions)
	shows(t, said, `(?m)^`+regexp.QuoteMeta(v.Addr)+` \(id: 1 `, `Produce\(0\): 0 to 13 \[usable: 13\]`, `Fetch\(1\): 4 to 18 \[usable: 18\]`, `ListOffsets\(2\): 1 to 11 `)
	if strings.Contains(said, "UNKNOWN(") {
		t.Errorf("an api is there that Kafka does not know:\n%s", said)
	}
}
