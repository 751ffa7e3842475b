// Package datanode writes a block to a pipeline of DataNodes by Hadoop's data transfer
// protocol, version 28: plain connections, as clusters without Kerberos have them.
//
//	request   version:2 | op 0x50 | varint length, OpWriteBlockProto
//	answer    varint length, BlockOpResponseProto
//	packet    length:4 (sums, data and these 4) | header length:2 | PacketHeaderProto | sums | data
//	ack       varint length, PipelineAckProto
//
// A packet is whole chunks of 512 bytes with a CRC32C each; only the last one with data
// may end in a part of a chunk, and one without data ends the block. Data goes to the
// socket from where the caller has it. Nothing is kept for another try: a pipeline that
// breaks ends the block, and its writer begins another file. So no window is needed
// either: what is on its way is what the sockets hold.
package datanode

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"varve/tier/hdfs/namenode"
)

const (
	version      = 28
	opWriteBlock = 0x50
	chunkBytes   = 512
	packetBytes  = 64 << 10
	prefixBytes  = 4 + 2 + headerBytes
	headerBytes  = 9 + 9 + 2 + 5
	crc32c       = 2 // ChecksumTypeProto
	setupCreate  = 6 // BlockConstructionStage
	heartbeat    = -1
)

// A SetupError says that a pipeline could not be made, and at which DataNode.
type SetupError struct {
	Bad int // in the block's targets
	Err error
}

func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// request asks the first DataNode to make the pipeline.
func request(b namenode.NewBlock, holder string) []byte {
	raw := func(m []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), v)
	}
	num := func(m []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), v)
	}
	base := raw(raw(nil, 1, b.Block), 2, b.Token)
	op := raw(nil, 1, raw(raw(nil, 1, base), 2, []byte(holder)))
	first, rest := b.Targets[0], b.Targets[1:]
	for _, t := range rest {
		op = raw(op, 2, t.Info)
	}
	op = num(num(op, 4, setupCreate), 5, uint64(len(b.Targets)))
	op = num(num(num(op, 6, 0), 7, 0), 8, 0)
	op = raw(op, 9, num(num(nil, 1, crc32c), 2, chunkBytes))
	op = raw(op, 10, nil)
	op = num(op, 11, first.StorageType)
	for _, t := range rest {
		op = num(op, 12, t.StorageType)
	}
	op = raw(op, 16, []byte(first.StorageID))
	for _, t := range rest {
		op = raw(op, 17, []byte(t.StorageID))
	}
	return protowire.AppendBytes([]byte{0, version, opWriteBlock}, op)
}

// appendPrefix appends what stands before a packet's sums.
func appendPrefix(dst []byte, offset, seqno int64, last bool, sums, data int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(4+sums+data))
	dst = binary.BigEndian.AppendUint16(dst, headerBytes)
	dst = append(dst, 1<<3|1)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(offset))
	dst = append(dst, 2<<3|1)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(seqno))
	dst = append(dst, 3<<3, 0)
	if last {
		dst[len(dst)-1] = 1
	}
	dst = append(dst, 4<<3|5)
	return binary.LittleEndian.AppendUint32(dst, uint32(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendSums appends the CRC of each chunk.
func appendSums(dst, data []byte) []byte {
	for len(data) > 0 {
		chunk := data[:min(chunkBytes, len(data))]
		dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(chunk, castagnoli))
		data = data[len(chunk):]
	}
	return dst
}

// messageMax bounds what a DataNode may say at once.
const messageMax = 1 << 20

// readMessage reads one message behind its length, into buf where it fits.
func readMessage(r *bufio.Reader, buf []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, noEOF(err)
	}
	if n > messageMax {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	if uint64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err = io.ReadFull(r, buf)
	return buf, noEOF(err)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// eachField calls f with the fields of a message that are numbers or have a length.
func eachField(m []byte, f func(n protowire.Number, num uint64, bytes []byte)) error {
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			return fmt.Errorf("reading a message: %w", protowire.ParseError(n))
		}
		m = m[n:]
		var num uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			num, n = protowire.ConsumeVarint(m)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(m)
		default:
			n = protowire.ConsumeFieldValue(number, kind, m)
		}
		if n < 0 {
			return fmt.Errorf("reading field %d: %w", number, protowire.ParseError(n))
		}
		m = m[n:]
		f(number, num, b)
	}
	return nil
}

// An ack is the pipeline's answer to a packet.
type ack struct {
	seqno  int64
	status uint64 // the first that is no success
	bad    int    // whose it is
}

// parseAck reads a PipelineAckProto.
func parseAck(m []byte) (ack, error) {
	var a ack
	node := 0
	reply := func(status uint64) {
		if status != 0 && a.status == 0 {
			a.status, a.bad = status, node
		}
		node++
	}
	err := eachField(m, func(n protowire.Number, num uint64, b []byte) {
		switch {
		case n == 1:
			a.seqno = protowire.DecodeZigZag(num)
		case n == 2 && b == nil:
			reply(num)
		case n == 2: // packed
			for len(b) > 0 {
				v, size := protowire.ConsumeVarint(b)
				if size < 0 {
					reply(1)
					return
				}
				reply(v)
				b = b[size:]
			}
		}
	})
	return a, err
}

// statuses are the names of Status in datatransfer.proto.
var statuses = []string{"SUCCESS", "ERROR", "ERROR_CHECKSUM", "ERROR_INVALID", "ERROR_EXISTS", "ERROR_ACCESS_TOKEN", "CHECKSUM_OK",
	"ERROR_UNSUPPORTED", "OOB_RESTART", "OOB_RESERVED1", "OOB_RESERVED2", "OOB_RESERVED3", "IN_PROGRESS", "ERROR_BLOCK_PINNED"}

func statusName(s uint64) string {
	if s < uint64(len(statuses)) {
		return statuses[s]
	}
	return fmt.Sprintf("status %d", s)
}
