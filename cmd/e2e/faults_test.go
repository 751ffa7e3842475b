package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/e2e/servers"
)

// restless makes segments close, settle and go at once.
var restless = map[string]string{
	"remote.log.manager.task.interval.ms": "200",
	"log.retention.check.interval.ms":     "500",
	"tier.local.grace.ms":                 "0",
	"log.segment.delete.delay.ms":         "100",
	"offsets.topic.num.partitions":        "2",
}

// tieredTopic is of small segments that leave the local disk as soon as they may.
func tieredTopic(t *testing.T, adm *kadm.Client, name string, partitions int32) {
	t.Helper()
	configs := map[string]*string{"segment.bytes": kadm.StringPtr("1048576"), "remote.storage.enable": kadm.StringPtr("true"), "local.retention.bytes": kadm.StringPtr("1")}
	eventually(t, 20*time.Second, "making topic "+name, func(ctx context.Context) error {
		_, err := adm.CreateTopic(ctx, partitions, 1, configs, name)
		return err
	})
}

// admin is a client that asks a broker's metadata, and tries for long.
func admin(t *testing.T, v *servers.Varve) *kadm.Client {
	t.Helper()
	return kadm.NewClient(client(t, v.Addr))
}

// endsOf are the high watermarks of a topic.
func endsOf(t *testing.T, adm *kadm.Client, topic string) map[int32]int64 {
	t.Helper()
	out := map[int32]int64{}
	eventually(t, 30*time.Second, "listing the ends of "+topic, func(ctx context.Context) error {
		listed, err := adm.ListEndOffsets(ctx, topic)
		if err == nil {
			err = listed.Error()
		}
		listed.Each(func(o kadm.ListedOffset) { out[o.Partition] = o.Offset })
		return err
	})
	return out
}

// A broker that is killed, paused and stopped under load keeps every promise: nothing
// acknowledged is lost, nothing is there twice, nothing shown vanishes.
func TestKilledInALoopItKeepsItsPromises(t *testing.T) {
	v := servers.VarveFor(t, servers.VarveOptions{Properties: restless})
	adm := admin(t, v)
	h := newHistory("torment")
	tieredTopic(t, adm, h.topic, 3)

	producer := client(t, v.Addr, kgo.StopProducerOnDataLossDetected(), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(time.Millisecond), kgo.MaxBufferedRecords(4000))
	from := map[int32]kgo.Offset{}
	for p := range int32(3) {
		from[p] = kgo.NewOffset().At(0)
	}
	consumer := client(t, v.Addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{h.topic: from}), kgo.ConsumeResetOffset(kgo.NoResetOffset()))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	produced, consumed, churned := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() { produced <- h.produce(ctx, producer, 1000, time.Millisecond) }()
	go func() { h.consume(ctx, consumer); close(consumed) }()
	go func() { churn(ctx, adm); close(churned) }()

	for round := range 10 {
		before := h.acknowledgedSoFar()
		eventually(t, 30*time.Second, "records after a restart", func(context.Context) error {
			if n := h.acknowledgedSoFar() - before; n < 1000 {
				return fmt.Errorf("%d records acknowledged", n)
			}
			return nil
		})
		wait(t, time.Duration(rand.IntN(300))*time.Millisecond)
		torment(t, v, round)
	}
	stop()
	if err := <-produced; err != nil {
		t.Fatalf("waiting for the last records: %v", err)
	}
	<-consumed
	<-churned
	ends := endsOf(t, adm, h.topic)
	if tiered := containers(t, v.TierDir, h.topic); len(tiered) < 5 {
		t.Fatalf("the tier holds %d containers: the kills did not meet it", len(tiered))
	}
	h.check(t, v.Addr, ends)
	t.Logf("%d records acknowledged, ends %v", h.acknowledgedSoFar(), ends)
}

// torment ends or pauses the broker, one way each round, and lets it come back.
func torment(t *testing.T, v *servers.Varve, round int) {
	t.Helper()
	switch round % 10 {
	case 4: // longer than the clients wait for an answer
		v.Pause()
		wait(t, 4*time.Second)
		v.Resume()
		return
	case 7:
		if err := v.Stop(); err != nil {
			t.Fatal(err)
		}
	case 9: // killed while it starts
		v.Kill()
		starting := make(chan error, 1)
		go func() { starting <- v.Start(t.Context()) }()
		wait(t, time.Duration(rand.IntN(40))*time.Millisecond)
		v.Kill()
		<-starting
	default:
		v.Kill()
	}
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// churn makes and deletes topics, so that kills meet the metadata log at work.
func churn(ctx context.Context, adm *kadm.Client) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("passing-%d", n%5)
		adm.CreateTopic(ctx, 2, 1, map[string]*string{"remote.storage.enable": kadm.StringPtr("true")}, name)
		adm.DeleteTopics(ctx, name)
	}
}

// containers are the paths of a topic's containers in a tier on a folder.
func containers(t *testing.T, tier, topic string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(tier, "*", "topics", topic, "*", "*", "segments", "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
