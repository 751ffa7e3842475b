package namenode

import "context"

// An ACLEntry is one line of an access control list. Name is "" for the owner, the
// owning group, the mask and others.
type ACLEntry struct {
	Type    ACLType
	Default bool // what files and folders made under the folder get
	Read    bool
	Write   bool
	Execute bool
	Name    string
}

// An ACLType says whom an ACLEntry is for.
type ACLType int

// The types of ACL entries, as AclEntryProto has them.
const (
	ACLUser ACLType = iota
	ACLGroup
	ACLMask
	ACLOther
)

// ModifyACL adds entries to a path's list or replaces those for the same names. A
// NameNode without ACLs refuses: see IsACLsOff.
func (c *Client) ModifyACL(ctx context.Context, path string, entries []ACLEntry) error {
	_, err := c.do(ctx, request{"modifyAclEntries", encodeACL(path, entries), true})
	return err
}

// SetACL replaces a path's list; entries must name owner, group and others.
func (c *Client) SetACL(ctx context.Context, path string, entries []ACLEntry) error {
	_, err := c.do(ctx, request{"setAcl", encodeACL(path, entries), true})
	return err
}

// ACL lists a path's entries beyond its permissions.
func (c *Client) ACL(ctx context.Context, path string) ([]ACLEntry, error) {
	m, err := c.do(ctx, request{"getAclStatus", message(nil).str(1, path), false})
	var entries []ACLEntry
	for _, v := range m.sub(1).each(4) {
		e := v.message()
		may := e.num(3)
		entries = append(entries, ACLEntry{
			Type: ACLType(e.num(1)), Default: e.num(2) == 1, Name: e.str(4),
			Read: may&4 != 0, Write: may&2 != 0, Execute: may&1 != 0,
		})
	}
	return entries, err
}

func encodeACL(path string, entries []ACLEntry) message {
	m := message(nil).str(1, path)
	for _, e := range entries {
		scope, may := uint64(0), uint64(0)
		if e.Default {
			scope = 1
		}
		for bit, set := range []bool{e.Execute, e.Write, e.Read} {
			if set {
				may |= 1 << bit
			}
		}
		entry := message(nil).num(1, uint64(e.Type)).num(2, scope).num(3, may)
		if e.Name != "" {
			entry = entry.str(4, e.Name)
		}
		m = m.raw(2, entry)
	}
	return m
}
