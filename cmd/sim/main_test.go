package main

import (
	"strings"
	"testing"
)

// TestARuleSwitchedOffPrintsAHistory and exits with 1; all rules on exits with 0.
func TestARuleSwitchedOffPrintsAHistory(t *testing.T) {
	var out, bad strings.Builder
	if code := run([]string{"-seeds", "20", "-off", "A5"}, &out, &bad); code != 1 || !strings.Contains(out.String(), "SingleLeaderPerEpoch") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
	out.Reset()
	if code := run([]string{"-seeds", "20"}, &out, &bad); code != 0 || !strings.Contains(out.String(), "0 violations") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
	if code := run([]string{"-off", "A99"}, &out, &bad); code != 2 || !strings.Contains(bad.String(), "A99") {
		t.Errorf("an unknown rule: exit code %d, %q", code, bad.String())
	}
}
