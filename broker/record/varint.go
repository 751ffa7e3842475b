package record

import "math"

// varint reads a zigzag varint of at most five bytes. n is 0 where b ends first or
// the number has more than 32 bits.
func varint(b []byte) (v int32, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int32(b[0]>>1) ^ -int32(b[0]&1), 1
	}
	u, n := uvarint(b, 5)
	if u > math.MaxUint32 {
		return 0, 0
	}
	return int32(uint32(u)>>1) ^ -int32(u&1), n
}

// varlong reads a zigzag varint of at most ten bytes; n is 0 where b has none.
func varlong(b []byte) (v int64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int64(b[0]>>1) ^ -int64(b[0]&1), 1
	}
	u, n := uvarint(b, 10)
	return int64(u>>1) ^ -int64(u&1), n
}

func uvarint(b []byte, most int) (v uint64, n int) {
	for i := 0; i < len(b) && i < most; i++ {
		c := b[i]
		if i == 9 && c > 1 {
			return 0, 0
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

func appendVarint(dst []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for u >= 0x80 {
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}

// sizeVarint is how many bytes appendVarint writes.
func sizeVarint(v int64) int {
	n := 1
	for u := uint64(v)<<1 ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
