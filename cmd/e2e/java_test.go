package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"varve/cmd/e2e/servers"
)

func TestKafkasJavaClientsUseTheBroker(t *testing.T) {
	servers.NeedKafkaTools(t)
	v := broker(t)
	t.Run("what the console producer sent the console consumer reads by partition and offset", func(t *testing.T) { consolePartition(t, v) })
	t.Run("a console consumer's group goes on where it committed", func(t *testing.T) { consoleGroup(t, v) })
	t.Run("the verifiable consumer receives what the verifiable producer was acknowledged", func(t *testing.T) { verifiable(t, v) })
}

func consolePartition(t *testing.T, v *servers.Varve) {
	create(t, v, "console", 1)
	want := numbered("console", 0, 100)
	feed(t, lines(want), v, servers.KafkaConsoleProducer, "--topic", "console", "--compression-codec", "zstd")
	got := tool(t, v, servers.KafkaConsoleConsumer, "--topic", "console", "--partition", "0", "--offset", "40", "--max-messages", "60")
	same(t, "from offset 40", split(got), want[40:])
}

func consoleGroup(t *testing.T, v *servers.Varve) {
	create(t, v, "console-group", 3)
	take := func(n int) []string {
		got := split(tool(t, v, servers.KafkaConsoleConsumer, "--topic", "console-group", "--group", "console",
			"--max-messages", strconv.Itoa(n), "--command-property", "auto.offset.reset=earliest"))
		slices.Sort(got) // partitions have no order among them
		return got
	}
	cl := client(t, v.Addr)
	first, second := numbered("first", 0, 60), numbered("second", 0, 30)
	produce(t, cl, "console-group", first)
	same(t, "the first run", take(len(first)), first)
	produce(t, cl, "console-group", second)
	same(t, "the second run", take(len(second)), second)
}

// verifiable runs the clients of Kafka's own system tests, which say in lines of JSON
// what was acknowledged and what was received.
func verifiable(t *testing.T, v *servers.Varve) {
	create(t, v, "verifiable", 3)
	const n = "5000"
	acked := 0
	for _, e := range events(t, tool(t, v, servers.KafkaVerifiableProducer, "--topic", "verifiable", "--max-messages", n)) {
		if e.Name == "producer_send_success" {
			acked++
		}
	}
	consumed := 0
	said := tool(t, v, servers.KafkaVerifiableConsumer, "--topic", "verifiable", "--group-id", "verifiable", "--reset-policy", "earliest", "--max-messages", n)
	for _, e := range events(t, said) {
		if e.Name == "records_consumed" {
			consumed += e.Count
		}
		if e.Name == "offsets_committed" && !e.Success {
			t.Errorf("a commit failed: %s", said)
		}
	}
	if acked != 5000 || consumed != 5000 {
		t.Errorf("%d records acknowledged and %d consumed, want 5000 and 5000", acked, consumed)
	}
}

// An event is a line of a verifiable client.
type event struct {
	Name    string
	Count   int
	Success bool
}

func events(t *testing.T, text string) []event {
	t.Helper()
	var out []event
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}
