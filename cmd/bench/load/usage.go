package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of CPU times in /proc, which is 100 on every
// platform that Go runs on.
const ticksPerSecond = 100

// usage is what processes have used: CPU since their start, memory now.
type usage struct {
	cpu time.Duration // user and system
	rss int64         // bytes
}

// usageOf sums over processes.
func usageOf(pids []int) (usage, error) {
	var sum usage
	for _, pid := range pids {
		u, err := readUsage(pid)
		if err != nil {
			return sum, fmt.Errorf("reading what process %d uses (needs Linux's /proc): %w", pid, err)
		}
		sum.cpu += u.cpu
		sum.rss += u.rss
	}
	return sum, nil
}

func readUsage(pid int) (usage, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return usage{}, err
	}
	return parseStat(string(b))
}

// parseStat reads the line of /proc/PID/stat: fields 14 and 15 are the ticks of
// user and system time, 24 the pages in memory. The name in field 2 may hold
// anything, spaces and brackets too.
func parseStat(line string) (usage, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const state = 3 // the field that stands first there
	if len(fields) <= 24-state {
		return usage{}, fmt.Errorf("%q has too few fields", line)
	}
	var n [3]int64
	for i, field := range []int{14, 15, 24} {
		v, err := strconv.ParseInt(fields[field-state], 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("field %d of %q: %w", field, line, err)
		}
		n[i] = v
	}
	return usage{
		cpu: time.Duration(n[0]+n[1]) * time.Second / ticksPerSecond,
		rss: n[2] * int64(os.Getpagesize()),
	}, nil
}

// CPUOf and RSSOf are for what is measured without load.
func CPUOf(pid int) (time.Duration, error) {
	u, err := usageOf([]int{pid})
	return u.cpu, err
}

// RSSOf returns the bytes of memory that a process holds.
func RSSOf(pid int) (int64, error) {
	u, err := usageOf([]int{pid})
	return u.rss, err
}
