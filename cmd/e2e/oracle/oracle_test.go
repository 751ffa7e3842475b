package oracle

import (
	"os"
	"path/filepath"
	"testing"

	"varve/cmd/e2e/servers"
)

// TestVarveAnswersAsKafkaDoes tells every story to a real Kafka and to Varve. With
// VARVE_WRITE_DOCS=1 it writes docs/compatibility.md.
func TestVarveAnswersAsKafkaDoes(t *testing.T) {
	kafka := servers.KafkaFor(t, servers.KafkaOptions{Properties: properties, Tiered: true})
	varve := servers.VarveFor(t, servers.VarveOptions{Properties: properties})
	report, err := Run(kafka.Addr, varve.Addr, Cases(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range report.Failures {
		t.Error(err)
	}
	for _, d := range report.Differences {
		t.Error(d)
	}
	for _, name := range report.Unasked {
		t.Errorf("no story asks %s", name)
	}
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

// properties are those of both brokers.
var properties = map[string]string{
	"node.id":                             "1",
	"auto.create.topics.enable":           "false",
	"group.initial.rebalance.delay.ms":    "0",
	"offsets.topic.num.partitions":        "4",
	"remote.log.manager.task.interval.ms": "1000",
	"log.retention.check.interval.ms":     "1000",
	"remote.fetch.max.wait.ms":            "10000",
}
