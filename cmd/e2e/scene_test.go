package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/e2e/servers"
)

// brisk makes a broker do in seconds what it does in minutes by default.
var brisk = map[string]string{
	"offsets.topic.num.partitions":         "4",
	"group.initial.rebalance.delay.ms":     "0",
	"log.retention.check.interval.ms":      "200",
	"remote.log.manager.task.interval.ms":  "100",
	"log.segment.delete.delay.ms":          "100",
	"auto.create.topics.enable":            "false",
	"log.initial.task.delay.ms":            "100",
	"transaction.state.log.num.partitions": "4",
}

// patience bounds every wait for something that must come.
const patience = 60 * time.Second

// broker starts a brisk Varve that ends with the test.
func broker(t *testing.T) *servers.Varve {
	t.Helper()
	return servers.VarveFor(t, servers.VarveOptions{Properties: brisk})
}

// start starts a broker that has ended.
func start(t *testing.T, v *servers.Varve) {
	t.Helper()
	if err := v.Start(within(t)); err != nil {
		t.Fatal(err)
	}
}

// restart stops the broker cleanly and starts it again.
func restart(t *testing.T, v *servers.Varve) {
	t.Helper()
	if err := v.Stop(); err != nil {
		t.Fatal(err)
	}
	start(t, v)
}

// within is the test's context, bounded.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// kcat runs kcat against the broker with stdin, and returns what it printed.
func kcat(t *testing.T, v *servers.Varve, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(within(t), "kcat", append([]string{"-b", v.Addr}, args...)...)
	cmd.WaitDelay = time.Second
	return run(t, cmd, stdin)
}

// tool runs one of Kafka's tools against the broker to its end.
func tool(t *testing.T, v *servers.Varve, class string, args ...string) string {
	t.Helper()
	return feed(t, "", v, class, args...)
}

// feed is tool with something on stdin.
func feed(t *testing.T, stdin string, v *servers.Varve, class string, args ...string) string {
	t.Helper()
	cmd, err := servers.KafkaCommand(within(t), class, append([]string{"--bootstrap-server", v.Addr}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, cmd, stdin)
}

// run runs a program to its end and returns its stdout; a failure shows all it said.
func run(t *testing.T, cmd *exec.Cmd, stdin string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s\n%s", cmd.Args, err, last(stdout.String()), last(stderr.String()))
	}
	return stdout.String()
}

// last is the end of a long text.
func last(s string) string { return s[max(0, len(s)-2000):] }

// create makes a topic with settings given as key, value, key, value.
func create(t *testing.T, v *servers.Varve, topic string, partitions int32, settings ...string) {
	t.Helper()
	own := map[string]*string{}
	for i := 0; i+1 < len(settings); i += 2 {
		own[settings[i]] = &settings[i+1]
	}
	if _, err := kadm.NewClient(client(t, v.Addr)).CreateTopic(within(t), partitions, 1, own, topic); err != nil {
		t.Fatalf("creating topic %s: %v", topic, err)
	}
}

// produce sends the values to partition 0, in order, and waits until all are written.
// A key ends at the first colon, as kcat's -K: has it.
func produce(t *testing.T, cl *kgo.Client, topic string, values []string) {
	t.Helper()
	ctx := within(t)
	var records []*kgo.Record
	for _, v := range values {
		r := &kgo.Record{Topic: topic, Value: []byte(v)}
		if key, _, ok := strings.Cut(v, ":"); ok {
			r.Key = []byte(key)
		}
		records = append(records, r)
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("producing %d records to %s: %v", len(values), topic, err)
	}
}

// toPartition0 are the options of a producer whose records have one order.
func toPartition0() []kgo.Opt {
	return []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())}
}

// fromStart consumes partition 0 of a topic from where it begins.
func fromStart(topic string) kgo.Opt {
	return kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}})
}

// poll reads n records with the client and returns their values.
func poll(t *testing.T, cl *kgo.Client, n int) []string {
	t.Helper()
	ctx := within(t)
	var got []string
	for len(got) < n {
		fetches := cl.PollRecords(ctx, n-len(got))
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", len(got), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	return got
}

// numbered are n values, each with a number and some words.
func numbered(name string, from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%06d a layer of sediment", name, from+i)
	}
	return out
}

// lines is a text with a line for each value, and back.
func lines(values []string) string { return strings.Join(values, "\n") + "\n" }

func split(text string) []string {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// same fails where the values differ, with the first difference.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: value %d of %d is %q, want %q", what, i, len(got), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
}
