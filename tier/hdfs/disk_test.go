package hdfs_test

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func reserved(t *testing.T, dir string, but int64) string {
	t.Helper()
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	return strconv.FormatInt(int64(disk.Blocks)*int64(disk.Bsize)-but, 10)
}
