package scan

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"varve/broker/record"
)

// A Sum counts values and adds up their hashes: two readings of the same records, in
// whatever order, by whatever way, have equal sums. The zero value is empty.
type Sum struct {
	Records int64
	Bytes   int64 // of values
	hash    [4]uint64
}

// Add takes one value in.
func (s *Sum) Add(value []byte) {
	h := sha256.Sum256(value)
	s.Records++
	s.Bytes += int64(len(value))
	for i := range s.hash {
		s.hash[i] += binary.BigEndian.Uint64(h[8*i:])
	}
}

// Checksum is the sum of the SHA-256 hashes, in four lanes of 64 bits, as hex.
func (s Sum) Checksum() string {
	var b [32]byte
	for i, h := range s.hash {
		binary.BigEndian.PutUint64(b[8*i:], h)
	}
	return hex.EncodeToString(b[:])
}

// Sum reads the whole plan, one split after the other.
func (p *Plan) Sum(ctx context.Context) (Sum, error) {
	var sum Sum
	for _, part := range p.Partitions {
		for _, s := range part.Splits {
			if err := p.sum(ctx, s, &sum); err != nil {
				return sum, err
			}
		}
	}
	return sum, nil
}

func (p *Plan) sum(ctx context.Context, s Split, sum *Sum) error {
	r, err := p.Read(ctx, s)
	if err != nil {
		return err
	}
	var rec record.Record
	for ctx.Err() == nil && r.Next(&rec) {
		sum.Add(rec.Value)
	}
	if err := r.Close(); err != nil {
		return err
	}
	return ctx.Err()
}
