package namenode

import (
	"context"
	"fmt"
	"io/fs"
	"math"
)

// Mkdirs makes a folder with exactly these permissions; there already is no error.
// With parents false its parent must be there.
func (c *Client) Mkdirs(ctx context.Context, path string, perm fs.FileMode, parents bool) error {
	_, err := c.do(ctx, request{"mkdirs", message(nil).str(1, path).raw(2, mode(perm)).flag(3, parents), true})
	return err
}

// Rename moves src to dst and never overwrites.
func (c *Client) Rename(ctx context.Context, src, dst string) error {
	_, err := c.do(ctx, request{"rename2", message(nil).str(1, src).str(2, dst).flag(3, false), true})
	return err
}

// Delete removes a file or folder; it tells whether it was there.
func (c *Client) Delete(ctx context.Context, path string, recursive bool) (bool, error) {
	m, err := c.do(ctx, request{"delete", message(nil).str(1, path).flag(2, recursive), true})
	return m.flag(1), err
}

// SetPermission sets the permissions of a file or folder.
func (c *Client) SetPermission(ctx context.Context, path string, perm fs.FileMode) error {
	_, err := c.do(ctx, request{"setPermission", message(nil).str(1, path).raw(2, mode(perm)), true})
	return err
}

// SetReplication sets how many replicas a file is to have; it tells whether path is
// a file.
func (c *Client) SetReplication(ctx context.Context, path string, n int) (bool, error) {
	m, err := c.do(ctx, request{"setReplication", message(nil).str(1, path).num(2, uint64(n)), true})
	return m.flag(1), err
}

// RecoverLease ends another writer's hold on a file; it tells whether the file is
// closed now.
func (c *Client) RecoverLease(ctx context.Context, path, holder string) (bool, error) {
	m, err := c.do(ctx, request{"recoverLease", message(nil).str(1, path).str(2, holder), true})
	return m.flag(1), err
}

func mode(perm fs.FileMode) message { return message(nil).num(1, uint64(perm.Perm())) }

// A Block is one block of a file and the DataNodes that have it.
type Block struct {
	ID, Generation uint64
	Offset, Length int64
	Hosts          []string // host names, nearest first
	Corrupt        bool
}

// Blocks are a file's length, blocks and whether it is still being written.
type Blocks struct {
	Length int64
	Open   bool
	Blocks []Block
}

// BlockLocations lists all blocks of a file.
func (c *Client) BlockLocations(ctx context.Context, path string) (Blocks, error) {
	m, err := c.do(ctx, request{"getBlockLocations", message(nil).str(1, path).num(2, 0).num(3, math.MaxInt64), false})
	if err != nil {
		return Blocks{}, err
	}
	if !m.has(1) {
		return Blocks{}, notFound("getBlockLocations", path)
	}
	return decodeBlocks(m.sub(1)), nil
}

// decodeBlocks reads a LocatedBlocksProto.
func decodeBlocks(m fields) Blocks {
	b := Blocks{Length: m.num(1), Open: m.flag(3)}
	for _, v := range m.each(2) {
		located := v.message()
		extended := located.sub(1)
		block := Block{
			ID: uint64(extended.num(2)), Generation: uint64(extended.num(3)), Length: extended.num(4),
			Offset: located.num(2), Corrupt: located.flag(4),
		}
		for _, d := range located.each(3) {
			block.Hosts = append(block.Hosts, d.message().sub(1).str(2))
		}
		b.Blocks = append(b.Blocks, block)
	}
	return b
}

// A Summary is what lies under a path, in bytes and numbers. Quotas are -1 where
// there are none.
type Summary struct {
	Length, Files, Folders, Space int64
	FileQuota, SpaceQuota         int64
}

// ContentSummary counts what lies under a path. It walks the tree: rarely.
func (c *Client) ContentSummary(ctx context.Context, path string) (Summary, error) {
	m, err := c.do(ctx, request{"getContentSummary", message(nil).str(1, path), false})
	s := m.sub(1)
	return Summary{
		Length: s.num(1), Files: s.num(2), Folders: s.num(3), FileQuota: s.num(4),
		Space: s.num(5), SpaceQuota: s.num(6),
	}, err
}

// EncryptionZone is the root of the zone that path is in, "" for none.
func (c *Client) EncryptionZone(ctx context.Context, path string) (string, error) {
	m, err := c.do(ctx, request{"getEZForPath", message(nil).str(1, path), false})
	return m.sub(1).str(2), err
}

// ErasureCodingPolicy is the name of the policy that new files under path get, ""
// for plain replication. A NameNode that knows no erasure coding has none.
func (c *Client) ErasureCodingPolicy(ctx context.Context, path string) (string, error) {
	m, err := c.do(ctx, request{"getErasureCodingPolicy", message(nil).str(1, path), false})
	if IsNoSuchMethod(err) {
		return "", nil
	}
	return decodePolicy(m.sub(1)), err
}

// policies are those that a NameNode names by number only. 0 stands for none.
var policies = []string{"", "RS-6-3-1024k", "RS-3-2-1024k", "RS-LEGACY-6-3-1024k", "XOR-2-1-1024k", "RS-10-4-1024k"}

// decodePolicy reads the name of an ErasureCodingPolicyProto.
func decodePolicy(m fields) string {
	if name := m.str(1); name != "" && m.num(4) != 0 {
		return name
	}
	if id := m.int(4); id > 0 && id < len(policies) {
		return policies[id]
	} else if id != 0 {
		return fmt.Sprintf("policy %d", id)
	}
	return ""
}

// SafeMode tells whether the NameNode refuses changes.
func (c *Client) SafeMode(ctx context.Context) (bool, error) {
	const get = 3
	m, err := c.do(ctx, request{"setSafeMode", message(nil).num(1, get).flag(2, true), false})
	return m.flag(1), err
}

// FsStats are the space of the whole HDFS in bytes, and its blocks in trouble.
type FsStats struct {
	Capacity, Used, Remaining         int64
	UnderReplicated, Corrupt, Missing int64
}

// FsStats asks for them.
func (c *Client) FsStats(ctx context.Context) (FsStats, error) {
	m, err := c.do(ctx, request{"getFsStats", nil, false})
	return FsStats{
		Capacity: m.num(1), Used: m.num(2), Remaining: m.num(3),
		UnderReplicated: m.num(4), Corrupt: m.num(5), Missing: m.num(6),
	}, err
}

// Defaults are what the server gives files of which the client says nothing.
type Defaults struct {
	BlockSize   int64
	Checksum    int // bytes per checksum
	Replication int
	Encrypted   bool // DataNodes want encrypted connections
}

// ServerDefaults asks for them.
func (c *Client) ServerDefaults(ctx context.Context) (Defaults, error) {
	m, err := c.do(ctx, request{"getServerDefaults", nil, false})
	d := m.sub(1)
	return Defaults{BlockSize: d.num(1), Checksum: d.int(2), Replication: d.int(4), Encrypted: d.flag(6)}, err
}
