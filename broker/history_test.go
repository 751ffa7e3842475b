package broker

import (
	"strings"
	"testing"

	"varve/broker/vfs"
	"varve/conf"
	"varve/ha/runner"
)

func TestSeenIsTheNewestEditOfTheLogDirs(t *testing.T) {
	m := vfs.NewMem()
	c, err := conf.Load(conf.FromDefines([]string{"log.dirs=/a,/b,/new"}))
	if err != nil {
		t.Fatal(err)
	}
	newest := runner.Position{N: 7, Hash: [32]byte{0xab, 31: 0xcd}}
	write := func(name string, b []byte) {
		t.Helper()
		if err := vfs.WriteFile(m, name, b, true); err != nil {
			t.Fatal(err)
		}
	}
	m.MkdirAll("/a", 0o755)
	m.MkdirAll("/b", 0o755)
	write("/a/"+historyFile, formatPosition(newest))
	write("/b/"+historyFile, formatPosition(runner.Position{N: 5}))
	if got, err := Seen(m, c); err != nil || got != newest {
		t.Fatalf("seen %v, %v, want %v", got, err, newest)
	}
	for _, damaged := range []string{"", "version=0\nedit=7\n", "version=0\nedit=7\nhash=ab\n", "version=1\nedit=7\nhash=" + strings.Repeat("0", 64) + "\n"} {
		write("/b/"+historyFile, []byte(damaged))
		if _, err := Seen(m, c); err == nil || !strings.Contains(err.Error(), "/b/"+historyFile) {
			t.Errorf("%q gives %v, want an error that names the file", damaged, err)
		}
	}
}
