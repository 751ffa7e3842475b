package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// PackAbove is the size in bytes above which what a journal holds is compressed.
const PackAbove = 4 << 10

// maxUnpacked bounds what a packed payload or snapshot may become, in bytes.
const maxUnpacked = 1 << 30

// Codecs of packed bytes: the first byte says which.
const (
	packedPlain byte = 0
	packedZstd  byte = 1
)

// Pack makes of encoded records (an edit's or a snapshot's) what a journal holds:
// a codec byte, then the bytes, zstd above PackAbove.
func Pack(records []byte) []byte {
	if len(records) <= PackAbove {
		return append([]byte{packedPlain}, records...)
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("journal: zstd refuses our options: " + err.Error())
	}
	defer enc.Close()
	return enc.EncodeAll(records, []byte{packedZstd})
}

// Unpack gives back what Pack took.
func Unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, fmt.Errorf("%w: an empty payload", ErrDamaged)
	}
	switch packed[0] {
	case packedPlain:
		return packed[1:], nil
	case packedZstd:
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic("journal: zstd refuses our options: " + err.Error())
		}
		defer dec.Close()
		out, err := dec.DecodeAll(packed[1:], nil)
		if err != nil {
			return nil, fmt.Errorf("%w: unpacking: %v", ErrDamaged, err)
		}
		return out, nil
	default:
		return nil, fmt.Errorf("unpacking: codec %d is not known here; a later version of varve wrote it", packed[0])
	}
}

// HeaderSize is the size of an edit's header in bytes.
const HeaderSize = 68

// AppendHeader appends the header of an edit whose predecessor's header hashes to
// previous:
//
//	n u64 | writer u64 | count u64 | epoch u32 | length u32 | CRC32C of the payload u32 | previous [32]
//
// big-endian. Both homes keep it in this form, so a hash means the same in each.
func AppendHeader(dst []byte, e Edit, payloadCRC uint32, previous [32]byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.N))
	dst = binary.BigEndian.AppendUint64(dst, e.ID.Writer)
	dst = binary.BigEndian.AppendUint64(dst, e.ID.Count)
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Epoch))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.Payload)))
	dst = binary.BigEndian.AppendUint32(dst, payloadCRC)
	return append(dst, previous[:]...)
}

// HashHeader is Edit.Hash of the edit with this header (A11).
func HashHeader(header []byte) [32]byte { return sha256.Sum256(header) }
