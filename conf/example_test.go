package conf_test

import (
	"fmt"

	"varve/conf"
)

func Example() {
	file := []byte("num.partitions=3\nlog.retention.hours=24\nnum.partions=5\n")
	c, err := conf.Load(
		conf.FromProperties("server.properties", file),
		conf.FromEnviron([]string{"VARVE_MIN_INSYNC_REPLICAS=2"}),
		conf.FromDefines([]string{"num.partitions=6"}),
	)
	if err != nil {
		fmt.Println(err) // all faults, a line each
		return
	}
	for _, f := range c.Faults {
		fmt.Println(f)
	}
	for _, name := range []string{"num.partitions", "min.insync.replicas", "log.retention.ms", "log.segment.bytes"} {
		fmt.Println(name, conf.Format(c.Value(name)), "from", c.Origin(name))
	}
	orders := c.Topic(map[string]string{"segment.bytes": "16777216"})
	fmt.Println("orders", orders.SegmentBytes, orders.RetentionMs)
	// Output:
	// server.properties:3: num.partions is not a known key and is ignored; did you mean num.partitions?
	// num.partitions 6 from -D
	// min.insync.replicas 2 from environment VARVE_MIN_INSYNC_REPLICAS
	// log.retention.ms 86400000 from server.properties:2
	// log.segment.bytes 1073741824 from default
	// orders 16777216 86400000
}
