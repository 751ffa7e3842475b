package oracle

import (
	"os"
	"slices"
	"testing"

	"varve/cmd/e2e/servers"
)

// TestKafkaAgreesWithItself tells the stories to two real Kafkas: what differs
// there is chance, and must be neutral. VARVE_ORACLE_SELF=1 asks for it.
func TestKafkaAgreesWithItself(t *testing.T) {
	if os.Getenv("VARVE_ORACLE_SELF") == "" {
		t.Skip("set VARVE_ORACLE_SELF=1: it checks the oracle, not Varve")
	}
	// Two Kafkas serve more than Varve does: the sweeps over all keys are not for them.
	cases := slices.DeleteFunc(Cases(), func(c Case) bool { return c.Name == sweepVersions || c.Name == sweepBodies })
	o := servers.KafkaOptions{Properties: properties, Tiered: true}
	report, err := Run(servers.KafkaFor(t, o).Addr, servers.KafkaFor(t, o).Addr, cases, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range report.Failures {
		t.Error(err)
	}
	for _, d := range report.Differences {
		t.Error(d)
	}
}
