package record

import "fmt"

// A Codec names how a batch's records are compressed, as bits 0-2 of its
// attributes do.
type Codec int8

// The codecs of the format, and CodecProducer, the topic's way to say "as it came".
const (
	CodecProducer Codec = -1
	CodecNone     Codec = 0
	CodecGzip     Codec = 1
	CodecSnappy   Codec = 2
	CodecLZ4      Codec = 3
	CodecZstd     Codec = 4
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String is the codec's name in compression.type.
func (c Codec) String() string {
	switch {
	case c == CodecProducer:
		return "producer"
	case c >= 0 && int(c) < len(codecNames):
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", int8(c))
}

// ParseCodec reads a value of compression.type: a codec's name, "uncompressed" or
// "producer".
func ParseCodec(s string) (Codec, error) {
	switch s {
	case "producer":
		return CodecProducer, nil
	case "uncompressed":
		return CodecNone, nil
	}
	for c, name := range codecNames {
		if s == name {
			return Codec(c), nil
		}
	}
	return 0, fmt.Errorf("compression.type %q: want one of producer, uncompressed, none, gzip, snappy, lz4, zstd", s)
}

// known tells whether the format has the codec.
func (c Codec) known() bool { return c >= CodecNone && c <= CodecZstd }

// DefaultLevel asks a Compressor for the codec's own level.
const DefaultLevel = 0
