package scan

import (
	"context"
	"fmt"
	"io"
	"math"

	"varve/broker/record"
	"varve/tier"
	"varve/tier/container"
)

// Dump prints what is in a container: its footer, its parts, and a line per batch.
func Dump(ctx context.Context, out io.Writer, store tier.Store, name string) error {
	tail, err := readTail(ctx, store, name)
	if err != nil {
		return err
	}
	epochs, err := container.DecodeEpochs(tail.Part(container.Epochs))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	aborted, err := container.DecodeAborted(tail.Part(container.Aborted))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(out, "%s\n%s-%d id %s segment %s\noffsets %d to %d, %d records in %d batches, max timestamp %d\nwritten by broker %d in leader epoch %d\n",
		name, tail.Topic, tail.Partition, tail.TopicID, tail.ID, tail.Base, tail.End, tail.Records, tail.Batches, tail.MaxTimestamp, tail.Broker, tail.LeaderEpoch)
	for p, e := range tail.Parts {
		fmt.Fprintf(out, "  %-12s at %d, %d bytes, CRC32C %08x\n", container.Part(p), e.Pos, e.Size, e.CRC)
	}
	for _, e := range epochs {
		fmt.Fprintf(out, "  leader epoch %d from offset %d\n", e.Epoch, e.Start)
	}
	for _, t := range aborted {
		fmt.Fprintf(out, "  aborted: producer %d, offsets %d to %d\n", t.Producer, t.First, t.Last)
	}
	file, err := store.Open(ctx, name)
	if err != nil {
		return err
	}
	r := &Reader{split: Split{File: name, End: tail.Parts[container.Log].Size, To: math.MaxInt64}, file: file}
	for b, ok := r.batch(); ok; b, ok = r.batch() {
		printBatch(out, b)
	}
	return r.Close()
}

func printBatch(out io.Writer, b record.Batch) {
	fmt.Fprintf(out, "baseOffset: %d lastOffset: %d count: %d leaderEpoch: %d producerId: %d producerEpoch: %d baseSequence: %d isTransactional: %t isControl: %t maxTimestamp: %d compression: %s size: %d crc: %d\n",
		b.BaseOffset(), b.LastOffset(), b.Count(), b.LeaderEpoch(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(),
		b.Transactional(), b.Control(), b.MaxTimestamp(), b.Codec(), b.Size(), b.CRC())
}
