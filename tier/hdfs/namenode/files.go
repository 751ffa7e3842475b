package namenode

import (
	"context"
	"io/fs"
	"time"

	"varve/tier"
)

// A FileStatus is what the NameNode knows of one file or folder.
type FileStatus struct {
	Name        string // last element; "" for the answer to Stat
	Dir         bool
	Length      int64
	Mode        fs.FileMode // permissions only
	Owner       string
	Group       string
	ModTime     time.Time
	ID          uint64 // inode id; a file keeps it when it is renamed
	Replication int
	BlockSize   int64
	Flags       Flags
	Policy      string   // erasure coding, "" for none
	Hosts       []string // of the first block, where locations were asked for
}

// Flags of a FileStatus.
type Flags int

// The bits of Flags, as HdfsFileStatusProto has them.
const (
	HasACL Flags = 1 << iota
	Encrypted
	ErasureCoded
	SnapshotsAllowed
)

// Stat looks at one path.
func (c *Client) Stat(ctx context.Context, path string) (FileStatus, error) {
	m, err := c.do(ctx, request{"getFileInfo", message(nil).str(1, path), false})
	if err != nil {
		return FileStatus{}, err
	}
	if !m.has(1) {
		return FileStatus{}, notFound("getFileInfo", path)
	}
	return decodeStatus(m.sub(1)), nil
}

// List lists a folder in order of names, page by page as the NameNode gives it;
// located asks for the hosts of each file's first block.
func (c *Client) List(ctx context.Context, path string, located bool) ([]FileStatus, error) {
	var list []FileStatus
	for after := ""; ; {
		m, err := c.do(ctx, request{"getListing", message(nil).str(1, path).raw(2, []byte(after)).flag(3, located), false})
		if err != nil {
			return nil, err
		}
		if !m.has(1) {
			return nil, notFound("getListing", path)
		}
		page, rest := m.sub(1).each(1), m.sub(1).num(2)
		for _, v := range page {
			list = append(list, decodeStatus(v.message()))
		}
		if rest == 0 || len(page) == 0 {
			return list, nil
		}
		after = list[len(list)-1].Name
	}
}

// decodeStatus reads an HdfsFileStatusProto.
func decodeStatus(m fields) FileStatus {
	const dir = 1
	s := FileStatus{
		Name: m.str(2), Dir: m.num(1) == dir, Length: m.num(3), Mode: fs.FileMode(m.sub(4).num(1)) & fs.ModePerm,
		Owner: m.str(5), Group: m.str(6), ModTime: time.UnixMilli(m.num(7)),
		ID: uint64(m.num(13)), Replication: m.int(10), BlockSize: m.num(11),
		Flags: Flags(m.num(18)), Policy: decodePolicy(m.sub(17)),
	}
	if blocks := m.sub(12).each(2); len(blocks) > 0 {
		for _, d := range blocks[0].message().each(3) {
			s.Hosts = append(s.Hosts, d.message().sub(1).str(2))
		}
	}
	return s
}

// notFound is the error for what the NameNode says by saying nothing.
func notFound(method, path string) error {
	return &Error{Method: method, Kind: tier.ErrNotFound, Err: &RemoteError{Class: "java.io.FileNotFoundException", Message: "File does not exist: " + path}}
}
