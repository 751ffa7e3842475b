package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const (
	// defaultMaxDecompressed bounds what one batch may unfold to.
	defaultMaxDecompressed = 128 << 20
	// keepBuffer is the largest buffer kept between batches.
	keepBuffer = 1 << 20
	// snappyRatio is more than a snappy element can unfold to: 64 bytes from 2.
	snappyRatio = 32
)

// ErrTooBig says that a batch unfolds to more than its reader allows.
var ErrTooBig = errors.New("record: batch unfolds to more than is allowed")

// A Decompressor unfolds the records of compressed batches and keeps what it needs
// for the next. It serves one caller at a time; what it returned last is
// overwritten by the next use. The zero value is ready.
type Decompressor struct {
	// Max bounds the bytes that one batch may unfold to, against bombs. 0 is 128 MiB.
	Max int

	buf  []byte
	src  bytes.Reader
	gzip *gzip.Reader
	lz4  *lz4.Reader
	zstd *zstd.Decoder
}

// unfold returns the uncompressed form of src.
func (d *Decompressor) unfold(codec Codec, src []byte) ([]byte, error) {
	if codec == CodecNone {
		return src, nil
	}
	if cap(d.buf) > keepBuffer {
		d.buf = nil
	}
	out, err := d.unfoldTo(d.buf[:0], codec, src)
	if out != nil {
		d.buf = out
	}
	if err != nil {
		return nil, fmt.Errorf("unfolding %d bytes of %v: %w", len(src), codec, err)
	}
	return out, nil
}

func (d *Decompressor) unfoldTo(dst []byte, codec Codec, src []byte) ([]byte, error) {
	switch codec {
	case CodecGzip:
		return d.unfoldGzip(dst, src)
	case CodecSnappy:
		return unfoldSnappy(dst, src, d.max())
	case CodecLZ4:
		return d.unfoldLZ4(dst, src)
	case CodecZstd:
		return d.unfoldZstd(dst, src)
	}
	return dst, fmt.Errorf("no such codec")
}

func (d *Decompressor) max() int {
	if d.Max > 0 {
		return d.Max
	}
	return defaultMaxDecompressed
}

func (d *Decompressor) unfoldGzip(dst, src []byte) ([]byte, error) {
	d.src.Reset(src)
	if d.gzip == nil {
		d.gzip = new(gzip.Reader)
	}
	if err := d.gzip.Reset(&d.src); err != nil {
		return dst, err
	}
	return readAll(dst, d.gzip, d.max())
}

func (d *Decompressor) unfoldLZ4(dst, src []byte) ([]byte, error) {
	d.src.Reset(src)
	if d.lz4 == nil {
		d.lz4 = lz4.NewReader(&d.src)
	} else {
		d.lz4.Reset(&d.src)
	}
	return readAll(dst, d.lz4, d.max())
}

// unfoldZstd decodes in one piece: a frame's declared window is then never
// allocated beside the output.
func (d *Decompressor) unfoldZstd(dst, src []byte) ([]byte, error) {
	if d.zstd == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(d.max())), zstd.WithDecoderMaxWindow(1<<28))
		if err != nil {
			return dst, err
		}
		d.zstd = z
	}
	out, err := d.zstd.DecodeAll(src, dst)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		err = ErrTooBig
	}
	return out, err
}

// readAll appends what r gives to dst, at most limit bytes.
func readAll(dst []byte, r io.Reader, limit int) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, make([]byte, max(4096, len(dst)))...)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):min(cap(dst), limit+1)])
		dst = dst[:len(dst)+n]
		if len(dst) > limit {
			return dst, ErrTooBig
		}
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// xerial is what Java's snappy puts before its blocks: a magic, then the version
// and the least version that reads it, i32 each. Blocks follow: length i32, bytes.
var xerial = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeaderSize = 16

// unfoldSnappy reads Java's framing and the bare block that librdkafka writes.
func unfoldSnappy(dst, src []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(src, xerial) {
		return appendSnappyBlock(dst, src, limit)
	}
	if len(src) < xerialHeaderSize {
		return dst, io.ErrUnexpectedEOF
	}
	for src = src[xerialHeaderSize:]; len(src) > 0; {
		if len(src) < 4 {
			return dst, io.ErrUnexpectedEOF
		}
		n := int64(binary.BigEndian.Uint32(src))
		if n > int64(len(src)-4) {
			return dst, io.ErrUnexpectedEOF
		}
		var err error
		if dst, err = appendSnappyBlock(dst, src[4:4+n], limit); err != nil {
			return dst, err
		}
		src = src[4+n:]
	}
	return dst, nil
}

func appendSnappyBlock(dst, block []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	if err != nil {
		return dst, err
	}
	if n > limit-len(dst) {
		return dst, ErrTooBig
	}
	if n > len(block)*snappyRatio {
		return dst, s2.ErrCorrupt
	}
	start := len(dst)
	if cap(dst)-start < n {
		dst = append(make([]byte, 0, max(start+n, 2*start)), dst...)
	}
	if _, err := s2.Decode(dst[start:start+n], block); err != nil {
		return dst, err
	}
	return dst[:start+n], nil
}
