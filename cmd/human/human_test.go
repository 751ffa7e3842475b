package human

import (
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1000: "1.0 kB", 1_500_000: "1.5 MB", 2_250_000_000: "2.25 GB",
		3_100_000_000_000: "3.10 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestThousandsAreApart(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 1234567: "1 234 567", -100: "-100", -1000: "-1 000"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestRates(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		took  time.Duration
		want  string
	}{{30_000_000, 1500 * time.Millisecond, "1.5s, 20.0 MB/s"}, {10, 0, "0s"}} {
		if got := Rate(c.bytes, c.took); got != c.want {
			t.Errorf("%d in %v: %q, want %q", c.bytes, c.took, got, c.want)
		}
	}
}
