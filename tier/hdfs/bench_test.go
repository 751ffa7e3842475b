package hdfs_test

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"varve/cmd/e2e/servers"
	"varve/tier"
	"varve/tier/hdfs"
)

// Questions: how fast does a container go to a real HDFS and come back, and what
// does a GB cost this process? VARVE_BENCH_MB sets the size (1000).

func benchSize(b *testing.B) int64 {
	b.Helper()
	if text := os.Getenv("VARVE_BENCH_MB"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		return n * 1e6
	}
	return 1e9
}

// cpu is the time that this process has used.
func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func benchStore(b *testing.B) *hdfs.Store {
	b.Helper()
	return open(b, servers.HDFSFor(b, servers.HDFSOptions{}).URL, hdfs.Options{})
}

func write(b *testing.B, s tier.Store, name string, size int64, buf []byte) {
	b.Helper()
	w, err := s.Create(b.Context(), name, tier.CreateOptions{Size: size})
	if err != nil {
		b.Fatal(err)
	}
	for rest := size; rest > 0; rest -= int64(len(buf)) {
		if _, err := w.Write(buf[:min(rest, int64(len(buf)))]); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

func report(b *testing.B, size int64, used time.Duration) {
	b.Helper()
	gb := float64(size) * float64(b.N) / 1e9
	b.ReportMetric(used.Seconds()/gb, "cpu-s/GB")
	b.SetBytes(size)
}

func BenchmarkPut(b *testing.B) {
	s, size := benchStore(b), benchSize(b)
	buf := make([]byte, 4<<20)
	for i := range buf {
		buf[i] = byte(i * 31)
	}
	write(b, s, "warm", 64<<20, buf)
	b.ReportAllocs()
	begin := cpu()
	b.ResetTimer()
	for b.Loop() {
		write(b, s, "f", size, buf)
		b.StopTimer()
		if err := s.Delete(b.Context(), "f"); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	report(b, size, cpu()-begin)
}

func BenchmarkRead(b *testing.B) {
	s, size := benchStore(b), benchSize(b)
	buf := make([]byte, 1<<20)
	write(b, s, "f", size, make([]byte, 4<<20))
	b.ReportAllocs()
	begin := cpu()
	b.ResetTimer()
	for b.Loop() {
		r, err := s.Open(b.Context(), "f")
		if err != nil {
			b.Fatal(err)
		}
		for off := int64(0); off < size; off += int64(len(buf)) {
			if _, err := r.ReadAt(buf, off); err != nil && err != io.EOF {
				b.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	report(b, size, cpu()-begin)
}

// BenchmarkRename is the manifest's commit: one call.
func BenchmarkRename(b *testing.B) {
	s := benchStore(b)
	if err := s.Mkdir(b.Context(), "0"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if err := s.Rename(b.Context(), strconv.Itoa(i), strconv.Itoa(i+1)); err != nil {
			b.Fatal(err)
		}
	}
}
