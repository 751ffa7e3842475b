package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/broker/record"
	"varve/cmd/human"
	"varve/cmd/standalone"
	"varve/tier/scan"
)

// create makes the topic: small segments, tiered, with no local copy of what the tier
// has.
func (s *story) create(ctx context.Context) error {
	cl, err := s.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	s.topic = "quickstart"
	if !s.temporary { // the folder may hold an earlier run's
		s.topic = fmt.Sprintf("quickstart-%d", time.Now().UnixMilli())
	}
	value := func(v string) *string { return &v }
	_, err = kadm.NewClient(cl).CreateTopic(ctx, 1, 1, map[string]*string{
		"remote.storage.enable": value("true"), "segment.bytes": value("1048576"), "retention.ms": value("-1"),
		"local.retention.ms": value("1"), "max.message.bytes": value("2000000"),
	}, s.topic)
	if err != nil {
		return err
	}
	s.say("1. created topic %s: 1 MiB segments, tiered, nothing kept locally that the tier has", s.topic)
	return nil
}

func (s *story) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.process.Bootstrap()), kgo.ClientID("varve-quickstart")}, opts...)...)
}

// produce sends the file, a record for each line, and waits for every acknowledgement.
func (s *story) produce(ctx context.Context) error {
	cl, err := s.client(kgo.DefaultProduceTopic(s.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(1<<20),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	began, bar := time.Now(), newBar(s.out, "   produced", s.input.size)
	failed := make(chan error, 1)
	for {
		line, err := s.input.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", s.input.name, err)
		}
		s.sent.add(line)
		cl.Produce(ctx, &kgo.Record{Value: append([]byte(nil), line...)}, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
		bar.at(s.sent.bytes)
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	bar.done()
	select {
	case err := <-failed:
		return err
	default:
	}
	if s.sent.lines == 0 {
		return fmt.Errorf("%s is empty: there is nothing to take through", s.input.name)
	}
	s.say("2. produced %s lines, %s, of %s: %s", human.Count(s.sent.lines), human.Bytes(s.sent.bytes), s.input.name, human.Rate(s.sent.bytes, time.Since(began)))
	return nil
}

// offload waits until all is in the tier and nothing is local.
func (s *story) offload(ctx context.Context) error {
	cl, err := s.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, offloadTime, errors.New("the tier did not take the segments in time: look at the broker's log"))
	defer cancel()
	began, bar := time.Now(), newBar(s.out, "   in the tier", s.sent.lines)
	adm := kadm.NewClient(cl)
	for {
		tiered, local, err := s.progress(ctx, adm)
		if err != nil {
			return err
		}
		bar.at(tiered)
		if tiered >= s.sent.lines && local >= s.sent.lines {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
	bar.done()
	s.say("3. moved %s to the tier and let the local copies go: %s", human.Bytes(s.sent.bytes), human.Rate(s.sent.bytes, time.Since(began)))
	return nil
}

const offloadTime = 10 * time.Minute

// progress is up to where the tier has the topic, and from where on it is local.
func (s *story) progress(ctx context.Context, adm *kadm.Client) (tiered, local int64, err error) {
	latest, err := adm.ListLatestRemoteOffsets(ctx, s.topic)
	if err == nil {
		err = latest.Error()
	}
	if err != nil {
		return 0, 0, err
	}
	first, err := adm.ListLocalLogStartOffsets(ctx, s.topic)
	if err == nil {
		err = first.Error()
	}
	if err != nil {
		return 0, 0, err
	}
	t, _ := latest.Lookup(s.topic, 0)
	l, _ := first.Lookup(s.topic, 0)
	return t.Offset + 1, l.Offset, nil
}

// consume reads everything back through the broker.
func (s *story) consume(ctx context.Context) error {
	cl, err := s.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: {0: kgo.NewOffset().AtStart()}}), kgo.FetchMaxPartitionBytes(8<<20))
	if err != nil {
		return err
	}
	defer cl.Close()
	began, bar := time.Now(), newBar(s.out, "   consumed", s.sent.bytes)
	var got tally
	for got.lines < s.sent.lines {
		if err := s.poll(ctx, cl, &got); err != nil {
			return err
		}
		bar.at(got.bytes)
	}
	bar.done()
	if err := s.sent.compare(&got); err != nil {
		return err
	}
	s.say("4. consumed %s lines through the broker, from the tier: %s; equal", human.Count(got.lines), human.Rate(got.bytes, time.Since(began)))
	return nil
}

// poll takes the next records. The client repeats what a broker refuses for as long as
// it lives, damage in the tier too: whoever waits in vain is told to read the log.
func (s *story) poll(ctx context.Context, cl *kgo.Client, into *tally) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("nothing came for %v after %d of %d records: the broker's log says why", s.patience, into.lines, s.sent.lines))
	defer cancel()
	fetches := cl.PollFetches(ctx)
	if fetches.Err() != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fetches.EachRecord(func(r *kgo.Record) { into.add(r.Value) })
	return fetches.Err()
}

// scan reads everything once more, with nothing but the tier.
func (s *story) scan(ctx context.Context) error {
	began := time.Now()
	store, err := standalone.OpenStore(s.process.Conf())
	if err != nil {
		return err
	}
	defer store.Close()
	topic, err := scan.Open(ctx, store, s.topic)
	if err != nil {
		return err
	}
	plan, err := topic.Plan(ctx, scan.Options{})
	if err != nil {
		return err
	}
	defer plan.Release(context.WithoutCancel(ctx))
	var got tally
	containers := map[string]bool{}
	for _, part := range plan.Partitions {
		for _, split := range part.Splits {
			containers[split.File] = true
			if err := read(ctx, plan, split, &got); err != nil {
				return err
			}
		}
	}
	if err := s.sent.compare(&got); err != nil {
		return err
	}
	s.say("5. read %s lines straight from %d containers in the tier, without the broker: %s; equal", human.Count(got.lines), len(containers), human.Rate(got.bytes, time.Since(began)))
	return nil
}

func read(ctx context.Context, plan *scan.Plan, split scan.Split, into *tally) error {
	r, err := plan.Read(ctx, split)
	if err != nil {
		return err
	}
	var rec record.Record
	for r.Next(&rec) {
		into.add(rec.Value)
	}
	return r.Close()
}
