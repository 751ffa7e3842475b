// Package human writes numbers as people read them: sizes in units of a thousand,
// counts with their thousands apart, how long something took and how fast it was.
package human

import (
	"fmt"
	"time"
)

// Bytes is a size: 999 bytes, 1.0 kB, 1.5 MB, 2.25 GB.
func Bytes(n int64) string {
	for _, u := range units {
		if n >= u.size {
			return fmt.Sprintf("%.*f %s", u.digits, float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

var units = []struct {
	size   int64
	name   string
	digits int
}{{1e12, "TB", 2}, {1e9, "GB", 2}, {1e6, "MB", 1}, {1e3, "kB", 1}}

// Count is a number with its thousands apart: 1 234 567.
func Count(n int64) string {
	s := fmt.Sprint(n)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Rate is how long something took, and how fast that was: 1.5s, 20.0 MB/s. What took no
// time at all has no speed.
func Rate(bytes int64, took time.Duration) string {
	s := took.Round(time.Millisecond).String()
	if took <= 0 {
		return s
	}
	return fmt.Sprintf("%s, %s/s", s, Bytes(int64(float64(bytes)/took.Seconds())))
}
