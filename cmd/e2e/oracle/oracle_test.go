package oracle

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"varve/cmd/e2e/servers"
)

// TestVarveAnswersAsKafkaDoes tells every story to a real Kafka and to Varve. With
// VARVE_WRITE_DOCS=1 it writes docs/compatibility.md.
func TestVarveAnswersAsKafkaDoes(t *testing.T) {
	kafka := servers.KafkaFor(t, servers.KafkaOptions{Properties: asked})
	varve := servers.VarveFor(t, servers.VarveOptions{Properties: asked})
	report := run(t, kafka, varve, Cases())
	for _, name := range report.Unasked {
		t.Errorf("no story asks %s", name)
	}
	tiered := runTiered(t)
	report.Add(tiered)
	for _, rule := range report.Unused() {
		t.Errorf("a rule allows what is no difference: %s", rule)
	}
	if os.Getenv("VARVE_WRITE_DOCS") != "" {
		text := report.Compatibility(servers.KafkaVersion)
		if err := os.WriteFile(filepath.Join("..", "..", "..", "docs", "compatibility.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// asked are the properties of both brokers: what Kafka's harness has of its own is
// Varve's too.
var asked = map[string]string{
	"node.id": "1", "auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4",
}

// runTiered tells the stories of the tier to brokers that look for work every second.
func runTiered(t *testing.T) *Report {
	properties := maps.Clone(asked)
	properties["remote.log.manager.task.interval.ms"] = "1000"
	properties["log.retention.check.interval.ms"] = "1000"
	kafka := servers.KafkaFor(t, servers.KafkaOptions{Properties: properties, Tiered: true})
	varve := servers.VarveFor(t, servers.VarveOptions{Properties: properties})
	return run(t, kafka, varve, TierCases())
}

func run(t *testing.T, kafka *servers.Kafka, varve *servers.Varve, cases []Case) *Report {
	t.Helper()
	report, err := Run(kafka.Addr, varve.Addr, cases, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range report.Failures {
		t.Error(err)
	}
	for _, d := range report.Differences {
		t.Error(d)
	}
	return report
}
