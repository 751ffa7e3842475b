package main

import "testing"

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"help", []string{"-help"}, 0},
		{"version", []string{"-version"}, 0},
		{"a command that is not there", []string{"quikstart"}, 2},
		{"a flag that is not there", []string{"standalone", "-bogus"}, 2},
		{"a file that is not there", []string{"quickstart", t.TempDir() + "/none"}, 1},
		{"a configuration that is not there", []string{"standalone", "-conf", t.TempDir() + "/none"}, 1},
	} {
		if got := run(append([]string{"varve"}, c.args...)); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, got, c.want)
		}
	}
}
