package commitlog_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/vfs"
)

// What does an append cost above its pwrite, and do zeros ahead pay?
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 128 << 10} {
		for _, ahead := range []int{0, 64 << 10, 256 << 10} {
			b.Run(fmt.Sprintf("%dKiB/ahead=%dKiB", size>>10, ahead>>10), func(b *testing.B) {
				d, l := open(b, vfs.OS{}, b.TempDir(), &commitlog.Config{SegmentBytes: 256 << 20, WriteAhead: ahead, RetentionBytes: 1}, nil)
				defer d.Abandon()
				x := batch(size/100, 78, 1000)
				b.SetBytes(int64(len(x)))
				b.ReportAllocs()
				for b.Loop() {
					a, err := l.Append(x, 1000)
					if err != nil {
						b.Fatal(err)
					}
					if a.Rolled { // keep the page cache small
						if _, _, err := l.DropLocal(a.Base); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
		b.Run(fmt.Sprintf("%dKiB/bare pwrite", size>>10), func(b *testing.B) {
			f, err := vfs.OS{}.OpenFile(b.TempDir()+"/x", 0o102, 0o644)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			x := batch(size/100, 78, 1000)
			b.SetBytes(int64(len(x)))
			b.ReportAllocs()
			var pos int64
			for b.Loop() {
				if _, err := f.WriteAt(x, pos); err != nil {
					b.Fatal(err)
				}
				if pos += int64(len(x)); pos > 256<<20 {
					pos = 0
					f.Truncate(0)
				}
			}
		})
	}
}

// What does it cost to find a run, at the tail and in a sealed segment?
func BenchmarkRead(b *testing.B) {
	d, l := open(b, vfs.OS{}, b.TempDir(), &commitlog.Config{SegmentBytes: 16 << 20}, nil)
	defer d.Abandon()
	for l.End() < 400_000 {
		appendTo(b, l, batch(160, 78, 1000))
	}
	end := l.End()
	for name, from := range map[string]kafka.Offset{"tail": end - 200, "active": end - 20_000, "sealed": 50_123} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run, _, err := l.Read(from, 1<<20, end, true)
				if err != nil || run.N == 0 {
					b.Fatal(run.N, err)
				}
				run.Release()
			}
		})
	}
}

// How long until 10 000 partitions are open, and what does each weigh at rest?
func BenchmarkOpen10000(b *testing.B) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	cfg := &commitlog.Config{}
	dir := b.TempDir()
	d, err := commitlog.OpenDir(vfs.OS{}, dir, commitlog.DirOptions{ClusterID: "c", NodeID: 1, BootID: "b"}, 0)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		l, err := d.Create(kafka.TopicPartition{Topic: fmt.Sprintf("some.topic.%03d", i/20), Partition: int32(i % 20)}, ordersID, cfg)
		if err != nil {
			b.Fatal(err)
		}
		appendTo(b, l, batch(10, 100, 1000))
	}
	openAll := func() []*commitlog.Log {
		d, err = commitlog.OpenDir(vfs.OS{}, dir, commitlog.DirOptions{ClusterID: "c", NodeID: 1, BootID: "b"}, 0)
		if err != nil {
			b.Fatal(err)
		}
		found := d.Partitions()
		logs := make([]*commitlog.Log, len(found))
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for i := w; i < len(found); i += 2 {
					l, err := d.Open(found[i].Partition, found[i].ID, cfg)
					if err != nil || l.End() != 10 {
						b.Error(err, l.End())
						return
					}
					logs[i] = l
				}
			})
		}
		wg.Wait()
		return logs
	}
	for _, how := range []string{"summary", "clean, listed", "unclean"} {
		closeClean(b, d)
		b.Run(how, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				switch how {
				case "unclean":
					openAll()
					d.Abandon()
				case "clean, listed":
					removeSummary(b, dir)
				}
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				b.StartTimer()
				logs := openAll()
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/float64(n), "B/partition")
				runtime.KeepAlive(logs)
				closeClean(b, d)
				b.StartTimer()
			}
		})
		openAll()
	}
	d.Abandon()
}

func removeSummary(b *testing.B, dir string) {
	entries, err := vfs.OS{}.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		if len(e.Name()) > 20 && e.Name()[:20] == ".varve_cleanshutdown" {
			vfs.OS{}.Remove(dir + "/" + e.Name())
		}
	}
}
