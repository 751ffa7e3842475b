package journal

import (
	"bytes"
	"testing"
)

// TestUnpackGivesBackWhatPackTook on both sides of the bound above which it compresses.
func TestUnpackGivesBackWhatPackTook(t *testing.T) {
	for _, n := range []int{0, 1, PackAbove, PackAbove + 1, 1 << 20} {
		b := bytes.Repeat([]byte("record "), n/7+1)[:n]
		p := Pack(b)
		if n > PackAbove && len(p) > n/2 {
			t.Errorf("%d bytes are packed to %d", n, len(p))
		}
		got, err := Unpack(p)
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes come back as %d, %v", n, len(got), err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(Pack([]byte("plain")))
	f.Add(Pack(bytes.Repeat([]byte("x"), PackAbove+1)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := Unpack(b); err == nil && len(b) == 0 {
			t.Fatalf("nothing unpacks to %d bytes", len(out))
		}
	})
}
