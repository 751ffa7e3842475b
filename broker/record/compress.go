package record

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// xerialBlock is how much Java's snappy puts into a block.
const xerialBlock = 32 << 10

// A Compressor folds records and keeps its tables for the next batch. It serves
// one caller at a time. The zero value is ready.
type Compressor struct {
	level int // of the tables below

	gzip *gzip.Writer
	lz4  *lz4.Writer
	zstd *zstd.Encoder
}

// fold appends src, compressed, to dst. The level is the codec's own scale, as in
// compression.gzip.level (1-9), compression.lz4.level (1-17) and
// compression.zstd.level (1-22); DefaultLevel is the codec's default.
func (c *Compressor) fold(dst []byte, codec Codec, level int, src []byte) []byte {
	if level != c.level {
		*c = Compressor{level: level}
	}
	switch codec {
	case CodecNone:
		return append(dst, src...)
	case CodecGzip:
		return c.foldGzip(dst, src)
	case CodecSnappy:
		return foldSnappy(dst, src)
	case CodecLZ4:
		return c.foldLZ4(dst, src)
	case CodecZstd:
		return c.foldZstd(dst, src)
	}
	panic(fmt.Sprintf("record: cannot fold with %v", codec))
}

// a sliceWriter appends what is written.
type sliceWriter []byte

func (w *sliceWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

func (c *Compressor) foldGzip(dst, src []byte) []byte {
	w := sliceWriter(dst)
	if c.gzip == nil {
		level := c.level
		if level < gzip.BestSpeed || level > gzip.BestCompression {
			level = gzip.DefaultCompression
		}
		c.gzip, _ = gzip.NewWriterLevel(&w, level)
	} else {
		c.gzip.Reset(&w)
	}
	c.gzip.Write(src) // a sliceWriter never fails
	c.gzip.Close()
	return w
}

func (c *Compressor) foldLZ4(dst, src []byte) []byte {
	w := sliceWriter(dst)
	if c.lz4 == nil {
		c.lz4 = lz4.NewWriter(&w)
		// As Kafka's own frames: independent blocks of 64 KiB, no checksum of the contents.
		err := c.lz4.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false),
			lz4.ConcurrencyOption(1), lz4.CompressionLevelOption(lz4Level(c.level)))
		if err != nil {
			panic(fmt.Sprintf("record: options of lz4: %v", err))
		}
	} else {
		c.lz4.Reset(&w)
	}
	c.lz4.Write(src)
	c.lz4.Close()
	return w
}

// lz4Level maps Java's scale to the library's: 1-9 are its high compressors, from
// 10 on there is no stronger one. 9 is Java's default, for which it takes its fast compressor.
func lz4Level(level int) lz4.CompressionLevel {
	if level == 9 {
		return lz4.Fast
	}
	levels := [...]lz4.CompressionLevel{lz4.Fast, lz4.Level1, lz4.Level2, lz4.Level3, lz4.Level4,
		lz4.Level5, lz4.Level6, lz4.Level7, lz4.Level8, lz4.Level9}
	return levels[min(max(level, 0), len(levels)-1)]
}

func (c *Compressor) foldZstd(dst, src []byte) []byte {
	if c.zstd == nil {
		level := zstd.SpeedDefault
		if c.level > 0 {
			level = zstd.EncoderLevelFromZstd(c.level)
		}
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
		if err != nil {
			panic(fmt.Sprintf("record: options of zstd: %v", err))
		}
		c.zstd = z
	}
	return c.zstd.EncodeAll(src, dst)
}

// foldSnappy writes Java's framing, which every client reads.
func foldSnappy(dst, src []byte) []byte {
	dst = append(dst, xerial...)
	dst = binary.BigEndian.AppendUint32(dst, 1) // version
	dst = binary.BigEndian.AppendUint32(dst, 1) // least version that reads it
	for len(src) > 0 {
		n := min(len(src), xerialBlock)
		at := len(dst)
		dst = append(dst, make([]byte, 4+s2.MaxEncodedLen(n))...)
		block := s2.EncodeSnappy(dst[at+4:], src[:n])
		binary.BigEndian.PutUint32(dst[at:], uint32(len(block)))
		dst = dst[:at+4+len(block)]
		src = src[n:]
	}
	return dst
}
