package record

import (
	"encoding/binary"
	"math"
)

// facts is what one walk over a batch's records finds.
type facts struct {
	whole     bool  // every record is well formed and nothing is left over
	dense     bool  // offset deltas are 0, 1, 2, …
	nullKey   bool  // some record has none
	low, high int64 // timestamps in ms, NoTimestamp left out; low > high if there is none
}

// timed tells whether any record has a timestamp.
func (f *facts) timed() bool { return f.low <= f.high }

// A step is what the walk needs of one record.
type step struct {
	delta   int64 // of the timestamp
	offset  int32 // delta
	nullKey bool
	end     int // where the next record begins; 0: this one is not well formed
}

// walk looks at every field of count records without making any. It is the
// produce path's only loop over records: what it finds amiss is looked at again,
// slowly, by the iterator. It runs at the speed of hopping from length to length,
// about 7 ns a record, whatever else it looks at.
func walk(p []byte, count int32, base int64) facts {
	f := facts{dense: true, low: math.MaxInt64, high: math.MinInt64}
	i := 0
	for n := range count {
		s := stepShort(p, i)
		if s.end == 0 {
			if s = stepAny(p, i); s.end == 0 {
				return f
			}
		}
		i = s.end
		if ts := base + s.delta; ts != NoTimestamp {
			f.low, f.high = min(f.low, ts), max(f.high, ts)
		}
		if s.offset != n {
			f.dense = false
		}
		if s.nullKey {
			f.nullKey = true
		}
	}
	f.whole = i == len(p)
	return f
}

// stepShort steps over the record that nearly all are: every number in one or two
// bytes, the key's length in one, no headers. The head of such a record fits in
// eight bytes, read at once. It gives up, with an end of 0, where it is not sure.
func stepShort(p []byte, i int) (s step) {
	if len(p)-i < 8 {
		return s
	}
	x := binary.LittleEndian.Uint64(p[i:])
	length, at := x&0xff, i+1
	x >>= 8
	if length >= 0x80 {
		length = length&0x7f | x&0xff<<7
		x >>= 8
		at++
	}
	end := at + int(length>>1)
	delta := x >> 8 & 0xff // behind the attributes
	x >>= 16
	at += 2
	if delta >= 0x80 {
		delta = delta&0x7f | x&0xff<<7
		x >>= 8
		at++
	}
	offset := x & 0xff
	x >>= 8
	at++
	if offset >= 0x80 {
		offset = offset&0x7f | x&0xff<<7
		x >>= 8
		at++
	}
	key := x & 0xff
	// A third byte shows in bit 14; a negative number is odd.
	if (length|delta|offset)&(1<<14) != 0 || (length|offset)&1 != 0 || key >= 0x80 {
		return s
	}
	at++
	if key&1 == 0 {
		at += int(key >> 1)
	}
	if end > len(p) || at+2 > end {
		return s
	}
	value := int(p[at])
	at++
	if value >= 0x80 {
		value = value&0x7f | int(p[at])<<7
		at++
	}
	if value&(1<<14|1) != 0 || at+value>>1 != end-1 || p[end-1] != 0 {
		return s
	}
	return step{int64(delta>>1) ^ -int64(delta&1), int32(offset >> 1), key&1 != 0, end}
}

// stepAny steps over any well-formed record.
func stepAny(p []byte, i int) (s step) {
	body, rest, err := cutRecord(p[i:])
	if err != nil {
		return s
	}
	c := cursor{rest: body}
	c.byte() // attributes
	s.delta = c.varlong()
	s.offset = c.varint()
	s.nullKey = c.bytes() == nil
	c.bytes()
	n := c.varint()
	if n < 0 || int(n) > len(c.rest) {
		return s
	}
	for ; n > 0 && !c.bad; n-- {
		if c.bytes() == nil {
			return s
		}
		c.bytes()
	}
	if !c.bad && len(c.rest) == 0 {
		s.end = len(p) - len(rest)
	}
	return s
}
