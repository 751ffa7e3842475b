package namenode

import (
	"context"
	"io/fs"
	"net"
	"strconv"
)

// A Target is a DataNode that takes a block's bytes.
type Target struct {
	Name        string // host name
	Address     string // IP:PORT of the data transfer protocol
	Host        string // NAME:PORT of the same
	Info        []byte // DatanodeInfoProto, as the NameNode sent it
	StorageID   string
	StorageType uint64
}

// A NewBlock is the place of a block that is to be written.
type NewBlock struct {
	Block   []byte // ExtendedBlockProto, as the NameNode sent it
	Token   []byte // TokenProto
	Targets []Target
}

// Create makes a file, exclusively and in a folder that is there, which holder may write
// to. It tells the file's id.
func (c *Client) Create(ctx context.Context, path, holder string, perm fs.FileMode, replication int, blockSize int64) (id int64, err error) {
	const create = 1 // CreateFlagProto
	m, err := c.do(ctx, request{"create", message(nil).str(1, path).raw(2, mode(perm)).str(3, holder).num(4, create).flag(5, false).
		num(6, uint64(replication)).num(7, uint64(blockSize)).raw(9, mode(perm)), true})
	return m.sub(1).num(13), err
}

// AddBlock asks for the first block of a file, on other DataNodes than those.
func (c *Client) AddBlock(ctx context.Context, path, holder string, id int64, not []Target) (NewBlock, error) {
	body := message(nil).str(1, path).str(2, holder)
	for _, t := range not {
		body = body.raw(4, t.Info)
	}
	m, err := c.do(ctx, request{"addBlock", body.num(5, uint64(id)), true})
	if err != nil {
		return NewBlock{}, err
	}
	return decodeNewBlock(m.sub(1)), nil
}

// decodeNewBlock reads a LocatedBlockProto.
func decodeNewBlock(m fields) NewBlock {
	b := NewBlock{Block: m.last(1).bytes, Token: m.last(5).bytes}
	kinds, ids := m.each(7), m.each(8)
	for i, v := range m.each(3) {
		id := v.message().sub(1)
		port := strconv.Itoa(id.int(4))
		t := Target{Name: id.str(2), Address: net.JoinHostPort(id.str(1), port), Host: net.JoinHostPort(id.str(2), port), Info: v.bytes, StorageType: 1}
		if i < len(kinds) {
			t.StorageType = kinds[i].num
		}
		if i < len(ids) {
			t.StorageID = string(ids[i].bytes)
		}
		b.Targets = append(b.Targets, t)
	}
	return b
}

// AbandonBlock gives a block back of which nothing was written.
func (c *Client) AbandonBlock(ctx context.Context, path, holder string, id int64, b NewBlock) error {
	_, err := c.do(ctx, request{"abandonBlock", message(nil).raw(1, b.Block).str(2, path).str(3, holder).num(4, uint64(id)), true})
	return err
}

// Complete closes a file whose last block has so many bytes; b is nil for one without
// blocks. False says that too few DataNodes have reported the block yet.
func (c *Client) Complete(ctx context.Context, path, holder string, id int64, b *NewBlock, length int64) (bool, error) {
	body := message(nil).str(1, path).str(2, holder)
	if b != nil {
		had, err := parse(b.Block)
		if err != nil {
			return false, err
		}
		body = body.raw(3, message(nil).str(1, had.str(1)).num(2, uint64(had.num(2))).num(3, uint64(had.num(3))).num(4, uint64(length)))
	}
	m, err := c.do(ctx, request{"complete", body.num(4, uint64(id)), true})
	return m.flag(1), err
}

// RenewLease keeps all files of a holder its own.
func (c *Client) RenewLease(ctx context.Context, holder string) error {
	_, err := c.do(ctx, request{"renewLease", message(nil).str(1, holder), true})
	return err
}
