package main

import (
	"strings"
	"testing"
)

func TestTableSaysWhatWasMet(t *testing.T) {
	var out strings.Builder
	tab := newTable(&out)
	tab.add("rate", "k records/s", 100, 300, timesAtLeast(3))
	tab.add("cpu", "s", 4, 1.2, timesAtMost(0.25))
	tab.add("memory", "MB", 390, 39, atMost(40))
	tab.note("p99", "ms", 6.25, 2)
	tab.add("offload", "cores", none, 0.5, atMost(1))
	tab.add("unmeasured", "s", 4, 0, timesAtMost(0.25))
	tab.print()
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[2:] {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"| rate | k records/s | 100 | 300 | 3.00 | ≥ 3 × | yes |",
		"| cpu | s | 4 | 1.2 | 0.30 | ≤ 0.25 × | NO |",
		"| memory | MB | 390 | 39 | 0.10 | ≤ 40 | yes |",
		"| p99 | ms | 6.25 | 2 | 0.32 | | |",
		"| offload | cores | – | 0.5 | | ≤ 1 | yes |",
		"| unmeasured | s | 4 | 0 | 0.00 | ≤ 0.25 × | NO |",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestScenariosAreChosenByName(t *testing.T) {
	chosen, err := choose("e2e,produce")
	if err != nil || len(chosen) != 2 || chosen[0].name != "e2e" || chosen[1].name != "produce" {
		t.Errorf("%v, %v", chosen, err)
	}
	if _, err := choose("produce,nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("error %v; want it to name what is not there", err)
	}
	if all, err := choose(""); err != nil || len(all) != len(scenarios) {
		t.Errorf("%d scenarios, %v; want all", len(all), err)
	}
}
