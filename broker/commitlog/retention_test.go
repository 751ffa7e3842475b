package commitlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"varve/broker/kafka"
)

// The scripts list segments as base-next size maxTimestamp, the last being active.
func TestRetention(t *testing.T) {
	datadriven.RunTest(t, "testdata/retention.txt", func(t *testing.T, td *datadriven.TestData) string {
		b := Bounds{HighestTiered: kafka.NoOffset, Config: &Config{RetentionMs: -1}}
		for _, a := range td.CmdArgs {
			var v int64
			fmt.Sscan(strings.Join(a.Vals, ""), &v)
			switch a.Key {
			case "now":
				b.Now = v
			case "high":
				b.High = kafka.Offset(v)
			case "start":
				b.LogStart = kafka.Offset(v)
			case "tiered":
				b.HighestTiered = kafka.Offset(v)
			case "remote":
				b.Config.Remote = true
			case "compact":
				b.Config.Compact = true
			case "ms":
				b.Config.RetentionMs = v
			case "bytes":
				b.Config.RetentionBytes = v
			case "local.ms":
				b.Config.LocalRetentionMs = v
			case "local.bytes":
				b.Config.LocalRetentionBytes = v
			default:
				td.Fatalf(t, "unknown argument %s", a.Key)
			}
		}
		var segs []SegmentInfo
		for line := range strings.Lines(td.Input) {
			s := SegmentInfo{Sealed: true}
			if _, err := fmt.Sscanf(line, "%d-%d %d %d", &s.Base, &s.Next, &s.Size, &s.MaxTimestamp); err != nil {
				td.Fatalf(t, "%q: %v", line, err)
			}
			segs = append(segs, s)
		}
		segs[len(segs)-1].Sealed = false
		v := Retain(segs, b)
		out := fmt.Sprintf("until %d: %d segments, %d bytes", v.Until, v.Segments, v.Bytes)
		if v.LogStart {
			out += ", log start moves"
		}
		if v.Roll {
			out += ", roll"
		}
		if v.Reason != "" {
			out += "\n" + v.Reason
		}
		return out + "\n"
	})
}
