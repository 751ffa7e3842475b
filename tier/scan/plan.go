// Package scan reads a topic from the tier without a broker: every committed record
// once, in offset order within a partition, as a batch job wants it.
//
//	Open ──► Plan, which pins the manifests ──► splits, read anywhere, in any order ──► Release
//
// A plan comes from the manifest, never from a listing: no orphan, no overlap, no
// partial file. Splits are stretches of about 64 MiB of a container's log that begin at
// a batch; together they tile [log start, Next) of each partition, and Next is the
// offset at which a consumer goes on at a broker without a gap or a double.
//
// Records of aborted transactions are left out by the container's aborted part alone
// (T6), control batches are skipped, and each batch is held to its CRC.
package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"varve/broker/kafka"
	"varve/tier"
	"varve/tier/chain"
	"varve/tier/container"
	"varve/tier/manifest"
)

// A Topic is one creation of a topic in a tier.
type Topic struct {
	Store tier.Store
	Name  string
	ID    kafka.TopicID
}

// Open finds a topic by name. Where it was made several times (deleted and made again,
// and the old one is still being removed) the caller must say which: OpenID.
func Open(ctx context.Context, store tier.Store, name string) (*Topic, error) {
	ids, err := creations(ctx, store, name)
	if err != nil {
		return nil, err
	}
	if len(ids) > 1 {
		return nil, fmt.Errorf("topic %s is in %s %d times: say which of %v", name, store.URL(), len(ids), ids)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("topic %s is not in %s: %w", name, store.URL(), tier.ErrNotFound)
	}
	return OpenID(store, name, ids[0]), nil
}

// OpenID names a creation of a topic.
func OpenID(store tier.Store, name string, id kafka.TopicID) *Topic { return &Topic{store, name, id} }

// creations are the topic's ids that have not ended by a deletion.
func creations(ctx context.Context, store tier.Store, name string) ([]kafka.TopicID, error) {
	files, err := store.List(ctx, "topics/"+name)
	if errors.Is(err, tier.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []kafka.TopicID
	for _, f := range files {
		id, err := kafka.ParseTopicID(f.Name)
		if err != nil {
			continue
		}
		t := OpenID(store, name, id)
		partitions, err := t.Partitions(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range partitions {
			s, err := t.folder(p).Load(ctx)
			if err != nil {
				return nil, err
			}
			if s.Number > 0 && !s.Deleted {
				ids = append(ids, id)
				break
			}
		}
	}
	return ids, nil
}

// Partitions are the partitions that have a folder, in order.
func (t *Topic) Partitions(ctx context.Context) ([]int32, error) {
	files, err := t.Store.List(ctx, manifest.TopicDir(t.Name, t.ID))
	if err != nil {
		return nil, err
	}
	var out []int32
	for _, f := range files {
		if n, err := strconv.ParseInt(f.Name, 10, 32); err == nil && f.Dir {
			out = append(out, int32(n))
		}
	}
	slices.Sort(out)
	return out, nil
}

func (t *Topic) folder(partition int32) chain.Folder {
	return chain.At(t.Store, kafka.TopicPartition{Topic: t.Name, Partition: partition}, t.ID)
}

// Options of a plan. The zero value takes all partitions, pinned for an hour.
type Options struct {
	Partitions []int32       // nil = all
	TTL        time.Duration // of the pins; 0 = 1 h; < 0 = no pins, for a tier that is only read
}

// A Plan is what there is to read, held by pins until Release or the end of their TTL.
type Plan struct {
	Topic      *Topic
	Partitions []Partition
}

// A Partition is one partition's part of a plan.
type Partition struct {
	Number  int32
	Version int64        // of the manifest
	Start   kafka.Offset // log start
	Next    kafka.Offset // where a consumer goes on
	Splits  []Split
	pin     manifest.Pin
}

// A Split is a stretch of one container: the batches from Pos up to End, of whose
// records those with offsets in [From, To) are the split's.
type Split struct {
	Partition int32
	File      string // name on the store
	Segment   manifest.Segment
	Pos, End  int64 // bytes of the log
	From, To  kafka.Offset
}

// Plan pins the newest manifests and cuts what they hold into splits.
func (t *Topic) Plan(ctx context.Context, opt Options) (*Plan, error) {
	if opt.TTL == 0 {
		opt.TTL = time.Hour
	}
	numbers := opt.Partitions
	if numbers == nil {
		var err error
		if numbers, err = t.Partitions(ctx); err != nil {
			return nil, err
		}
	}
	plan := &Plan{Topic: t}
	for _, n := range numbers {
		p, err := t.plan(ctx, n, opt.TTL)
		if p.pin.ID != "" || err == nil {
			plan.Partitions = append(plan.Partitions, p)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("planning %s-%d: %w", t.Name, n, err), plan.Release(ctx))
		}
	}
	return plan, nil
}

func (t *Topic) plan(ctx context.Context, n int32, ttl time.Duration) (p Partition, err error) {
	p.Number = n
	f := t.folder(n)
	var s manifest.State
	if ttl < 0 {
		s, err = f.Load(ctx)
	} else {
		s, p.pin, err = f.Pin(ctx, ttl)
	}
	if err != nil {
		return p, err
	}
	p.Version, p.Start, p.Next = s.Number, s.LogStart, s.NextOffset()
	for o := s.LogStart; o < p.Next; {
		seg, ok := s.Find(o)
		if !ok {
			if o, ok = afterGap(&s, o); !ok {
				return p, fmt.Errorf("version %d covers offset %d by nothing", s.Number, o)
			}
			continue
		}
		splits, err := cut(ctx, f, seg, o)
		if err != nil {
			return p, err
		}
		p.Splits = append(p.Splits, splits...)
		o = seg.Next()
	}
	for i := range p.Splits {
		p.Splits[i].Partition = n
	}
	return p, nil
}

func afterGap(s *manifest.State, o kafka.Offset) (kafka.Offset, bool) {
	for _, g := range s.Gaps {
		if g.Start <= o && o < g.End {
			return g.End, true
		}
	}
	return o, false
}

// cut makes the splits of one container from offset from on.
func cut(ctx context.Context, f chain.Folder, seg manifest.Segment, from kafka.Offset) ([]Split, error) {
	name := f.Segment(seg)
	tail, err := readTail(ctx, f.Store, name)
	if err != nil {
		return nil, err
	}
	var out []Split
	for i, c := range tail.Splits {
		s := Split{File: name, Segment: seg, Pos: c.Pos, End: tail.Parts[container.Log].Size, From: max(c.Offset, seg.Base), To: seg.Next()}
		if i == 0 {
			s.From = seg.Base
		}
		if i+1 < len(tail.Splits) {
			s.End, s.To = tail.Splits[i+1].Pos, tail.Splits[i+1].Offset
		}
		if s.To > from {
			s.From = max(s.From, from)
			out = append(out, s)
		}
	}
	return out, nil
}

// readTail reads what stands behind a container's log.
func readTail(ctx context.Context, store tier.Store, name string) (*container.Tail, error) {
	r, err := store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for n := min(r.Size(), 64<<10); ; {
		b := make([]byte, n)
		if m, err := r.ReadAt(b, r.Size()-n); int64(m) < n {
			return nil, fmt.Errorf("reading the end of %s: %w", name, cmp.Or(err, errShort))
		}
		tail, err := container.DecodeTail(b, r.Size())
		var more *container.MoreError
		if errors.As(err, &more) && more.Need > n {
			n = more.Need
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return tail, nil
	}
}

var errShort = errors.New("fewer bytes than asked for")

// Renew holds the plan for another TTL.
func (p *Plan) Renew(ctx context.Context) error {
	for i := range p.Partitions {
		part := &p.Partitions[i]
		if part.pin.ID == "" {
			continue
		}
		pin, err := p.Topic.folder(part.Number).Renew(ctx, part.pin)
		part.pin = pin
		if err != nil {
			return err
		}
	}
	return nil
}

// Release lets the pins go.
func (p *Plan) Release(ctx context.Context) error {
	var all error
	for _, part := range p.Partitions {
		if part.pin.ID != "" {
			all = errors.Join(all, p.Topic.folder(part.Number).Unpin(ctx, part.pin))
		}
	}
	return all
}
