package archive

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"varve/broker/kafka"
	"varve/broker/vfs"
	"varve/tier/cache"
	"varve/tier/local"
)

// BenchmarkRead asks what a read of the tier costs, cold (from the store) and again
// (from the chunk cache), in requests of 1 MiB; sending is not in it.
func BenchmarkRead(b *testing.B) {
	store, err := local.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	log := newFakeLog()
	log.fill(2000, 5400, 1000) // 32 MiB in batches of 16 KiB
	epoch := kafka.LeaderEpoch(0)
	for _, mode := range []string{"cold", "again"} {
		b.Run(mode, func(b *testing.B) {
			chunks, err := cache.Open(cache.Config{FS: vfs.OS{}, Dir: b.TempDir() + "/cache"})
			if err != nil {
				b.Fatal(err)
			}
			defer chunks.Close()
			a := New(Options{Store: store, Cache: chunks, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			defer a.Close()
			epoch++
			p := a.Lead(testTP, testID, epoch, log)
			for {
				if s, err := p.State(); err == nil && s.NextOffset() == log.Segments()[0].Next {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if mode == "again" {
				drain(b, p, log.Offsets().End)
			}
			b.SetBytes(int64(len(log.all)))
			b.ReportAllocs()
			for b.Loop() {
				if mode == "cold" {
					b.StopTimer()
					chunks.Empty()
					b.StartTimer()
				}
				drain(b, p, log.Offsets().End)
			}
		})
	}
}

// drain reads the tier to its end.
func drain(b *testing.B, p *Partition, end kafka.Offset) {
	woken := make(chan struct{}, 1)
	wake := func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
	for o := kafka.Offset(0); o < end; {
		f, err := p.Read(o, 1<<20, true, wake)
		if err != nil {
			b.Fatal(err)
		}
		if f.Pending {
			<-woken
			continue
		}
		o = f.Upper
		f.Run.Release()
	}
}
