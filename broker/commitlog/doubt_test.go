package commitlog_test

import (
	"testing"

	"varve/broker/commitlog"
	"varve/broker/vfs"
)

// A folder is started in boots of the machine and ends in ways that leave its logs'
// ends in doubt or not (A7). No boot id at all counts as another boot each time.
func TestTheEndIsInDoubtAfterAPowerCutUntilSomebodySettlesIt(t *testing.T) {
	killed := func(testing.TB, *commitlog.Dir) {}
	settled := func(t testing.TB, d *commitlog.Dir) {
		if err := d.SettleEnds(); err != nil {
			t.Fatal(err)
		}
	}
	type run struct {
		boot  string
		doubt bool // at its start
		end   func(testing.TB, *commitlog.Dir)
	}
	for name, runs := range map[string][]run{
		"a new folder, then a kill":               {{"one", false, killed}, {"one", false, killed}},
		"a power cut":                             {{"one", false, killed}, {"two", true, killed}},
		"a clean stop, then another boot":         {{"one", false, closeClean}, {"two", false, killed}, {"two", false, killed}},
		"killed before anybody was told":          {{"one", false, killed}, {"two", true, killed}, {"two", true, killed}},
		"stopped cleanly before anybody was told": {{"one", false, killed}, {"two", true, closeClean}, {"two", true, killed}},
		"killed after it was settled":             {{"one", false, killed}, {"two", true, settled}, {"two", false, killed}},
		"no boot id":                              {{"", false, killed}, {"", true, settled}, {"", true, killed}},
	} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMem()
			for i, r := range runs {
				d, err := commitlog.OpenDir(m, "/log", commitlog.DirOptions{ClusterID: "c", NodeID: 1, BootID: r.boot}, 0)
				if err != nil {
					t.Fatal(err)
				}
				if got := d.MayHaveLostEnd(); got != r.doubt {
					t.Fatalf("start %d: may have lost its end: %v, want %v", i+1, got, r.doubt)
				}
				r.end(t, d)
				d.Abandon()
				m = m.Kill()
			}
		})
	}
}
