package hdfs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"varve/tier"
	"varve/tier/hdfs/namenode"
)

var _ tier.Sharer = (*Store)(nil)

// errACLsOff is what a NameNode says to access lists by default.
var errACLsOff = errors.New("the NameNode keeps no access lists: set dfs.namenode.acls.enabled=true there, or take tier.acl away")

// Share lets Options.Readers read what will be made in a folder: they get its access
// list and its default one, which is what counts, as a rename adds none; and the way to
// it. What is in it already keeps its lists.
func (s *Store) Share(ctx context.Context, dir string) error {
	if len(s.o.Readers) == 0 {
		return nil
	}
	var way, own []namenode.ACLEntry
	for _, e := range s.o.Readers {
		way = append(way, namenode.ACLEntry{Type: e.Type, Name: e.Name, Execute: true})
		inherited := e
		inherited.Default = true
		own = append(own, e, inherited)
	}
	if err := s.grant(ctx, dir, own); err != nil {
		return err
	}
	for dir != "" {
		dir, _ = tier.Parent(dir)
		if err := s.grant(ctx, dir, way); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) grant(ctx context.Context, dir string, entries []namenode.ACLEntry) error {
	granted, err := s.Grant(ctx, dir, entries)
	if err == nil && !granted {
		return s.fail("setting the access list of "+dir, errACLsOff)
	}
	return err
}

// ParseACL reads entries as HDFS writes them, user:NAME:rwx or group:NAME:rwx, for named
// users and groups.
func ParseACL(entries []string) ([]namenode.ACLEntry, error) {
	kinds := map[string]namenode.ACLType{"user": namenode.ACLUser, "group": namenode.ACLGroup}
	var out []namenode.ACLEntry
	for _, text := range entries {
		f := strings.Split(text, ":")
		if len(f) != 3 || f[1] == "" || len(f[2]) != 3 {
			return nil, fmt.Errorf("access list entry %q: want user:NAME:r-x or group:NAME:r-x", text)
		}
		kind, ok := kinds[f[0]]
		if !ok {
			return nil, fmt.Errorf("access list entry %q: want user or group, not %q", text, f[0])
		}
		e := namenode.ACLEntry{Type: kind, Name: f[1]}
		for i, may := range []*bool{&e.Read, &e.Write, &e.Execute} {
			switch f[2][i] {
			case "rwx"[i]:
				*may = true
			case '-':
			default:
				return nil, fmt.Errorf("access list entry %q: want its rights as in r-x", text)
			}
		}
		out = append(out, e)
	}
	return out, nil
}
