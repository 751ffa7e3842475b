package hdfs

import (
	"slices"
	"testing"

	"varve/tier/hdfs/namenode"
)

func TestACLEntriesAreReadAsHDFSWritesThem(t *testing.T) {
	got, err := ParseACL([]string{"user:etl:r-x", "group:data:rwx"})
	want := []namenode.ACLEntry{
		{Type: namenode.ACLUser, Name: "etl", Read: true, Execute: true},
		{Type: namenode.ACLGroup, Name: "data", Read: true, Write: true, Execute: true},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("ParseACL = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "user:etl", "user::r-x", "other:x:r-x", "user:etl:xwr", "default:user:etl:r-x"} {
		if got, err := ParseACL([]string{bad}); err == nil {
			t.Errorf("ParseACL(%q) = %+v, want an error", bad, got)
		}
	}
}
