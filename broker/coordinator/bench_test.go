package coordinator_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/coordinator"
	"varve/broker/kafka"
	"varve/broker/vfs"
)

// BenchmarkCommit asks what a commit of one offset costs beside its append.
func BenchmarkCommit(b *testing.B) {
	br := start(b, vfs.NewMem(), 1, 1, 1)
	q := commitOf("g", 7)
	b.ReportAllocs()
	for b.Loop() {
		br.c.Ask(0, coordinator.Client{ID: "c"}, q, func(kmsg.Response) {})
	}
}

// BenchmarkLoad asks how long a shard is away after an election, for each record.
func BenchmarkLoad(b *testing.B) {
	br := start(b, vfs.NewMem(), 1, 1, 1)
	const records = 20_000
	for i := range records {
		br.c.Ask(0, coordinator.Client{}, commitOf(fmt.Sprint("group", i%100), int64(i)), func(kmsg.Response) {})
	}
	epoch := kafka.LeaderEpoch(1)
	b.ReportAllocs()
	for b.Loop() {
		epoch++
		br.lead(epoch, 1)
		br.ready("group1")
	}
	br.wantCommitted("group99", records-1)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
}
