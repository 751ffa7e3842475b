package record

import (
	"bytes"
	"testing"
)

func seeds(f *testing.F) {
	for _, b := range javaBatches(f) {
		f.Add([]byte(b))
	}
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		f.Add([]byte(build(codec, some[0], some[1], some[3])))
	}
}

func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		b, rest, err := Parse(data)
		if err != nil {
			return
		}
		if len(b) < HeaderSize || len(b)+len(rest) != len(data) || SizeOf(data) != int64(len(b)) {
			t.Fatalf("batch of %d and rest of %d from %d bytes", len(b), len(rest), len(data))
		}
		_ = b.String()
	})
}

// The walk and the iterator must agree about what is well formed and dense.
func FuzzRecords(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		b, _, err := Parse(data)
		if err != nil || b.Count() < 0 {
			return
		}
		d := Decompressor{Max: 1 << 20}
		dense, nullKey, n := true, false, int32(0)
		it := b.Records(&d)
		for r := (Record{}); it.Next(&r); n++ {
			dense = dense && int32(r.Offset-b.BaseOffset()) == n
			nullKey = nullKey || r.Key == nil
		}
		payload, err := d.unfold(b.Codec(), b.payload())
		if err != nil {
			if it.Err() == nil {
				t.Fatalf("iterator unfolds what cannot be unfolded: %v", err)
			}
			return
		}
		if len(payload) > d.Max {
			t.Fatalf("unfolded to %d bytes under a bound of %d", len(payload), d.Max)
		}
		got := walk(payload, b.Count(), b.BaseTimestamp())
		if got.whole != (it.Err() == nil) {
			t.Fatalf("walk finds whole %t, iterator %v", got.whole, it.Err())
		}
		if got.whole && (got.dense != dense || got.nullKey != nullKey) {
			t.Fatalf("walk: dense %t null key %t; iterator: %t %t", got.dense, got.nullKey, dense, nullKey)
		}
	})
}

// What Validate lets pass is a whole batch with a checksum, within its bounds.
func FuzzValidate(f *testing.F) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		f.Add([]byte(build(codec, some[0], some[1], some[3])), int8(CodecProducer), uint8(0), false)
		f.Add([]byte(build(codec, some[0])), int8(CodecZstd), uint8(3), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, target int8, flags uint8, fix bool) {
		p := DefaultPolicy(bench)
		p.ProduceVersion = 13
		p.KeyRequired, p.LogAppendTime = flags&1 != 0, flags&2 != 0
		if flags&4 != 0 {
			p.BeforeMax = 1 << 41
		}
		p.TargetCodec = Codec(min(max(target, int8(CodecProducer)), int8(CodecZstd)))
		if b, _, err := Parse(data); err == nil && fix {
			b = bytes.Clone(b)
			b.Stamp(0, 0)
			b.SetMaxTimestamp(b.MaxTimestamp()^1, b.LogAppendTime()) // the checksum anew
			data = b
		}
		v := Validator{Decompressor: Decompressor{Max: 1 << 20}}
		b, r := v.Validate(bytes.Clone(data), p, now)
		if r != nil {
			return
		}
		if again, rest, err := Parse(b); err != nil || len(rest) != 0 || !again.ValidCRC() || again.Count() <= 0 {
			t.Fatalf("let pass: %v, rest %d, %v", b, len(rest), err)
		}
	})
}
