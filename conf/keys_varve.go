package conf

// varveKeys are Varve's own.
var varveKeys = []Key{
	{Name: "varve.cluster", Type: String, Default: "varve", Check: nonEmpty(), Doc: "Name of the cluster: its folder under the tier's root, its root in ZooKeeper."},
	{Name: "http.listener", Type: String, Default: ":9808", Doc: "host:port of the web UI, /metrics, /jmx, /conf, /logLevel, /stacks and /healthz; empty is none, port 0 a free one."},
	{Name: "tier.url", Type: String, Null: true, Doc: "Root of the tier: hdfs://nameservice/path, hdfs://host:port/path or file:///path. Unset, it is tier in the data folder; empty, nothing is tiered."},
	{Name: "tier.upload.interval.ms", Type: Long, Default: "3600000", Check: atLeast(-1), Unit: Milliseconds, Doc: "Age of a partition's oldest untiered record at which its segment is closed and copied though it is not full; -1 waits until it is."},
	{Name: "tier.local.grace.ms", Type: Long, Default: "-1", Check: atLeast(-1), Unit: Milliseconds, Doc: "Time that a local segment stays after the tier has it; -1 is the store's own: 60000 on HDFS, 0 on file://."},
	{Name: "tier.acl", Type: List, Default: "", Doc: "Who may read the tier's files besides its owner and group, on HDFS: entries such as user:etl:r-x and group:analysts:r-x. They become the access list, and the default one, of each topic's folder when it is made."},
	{Name: "tier.outage.policy", Type: String, Default: "retain", Check: oneOf("retain", "expire", "block"), Doc: "While the tier is away: retain keeps local segments beyond their retention, expire lets retention delete them, block refuses produce to a partition of which 10 GiB wait for the tier."},
	{Name: "tier.cache.dir", Type: String, Null: true, Doc: "Folder of chunks and indexes read from the tier; unset is __tier_cache in the first of log.dirs that serves."},
	{Name: "tier.cache.bytes", Type: Long, Default: "10737418240", Check: atLeast(0), Unit: Bytes, Doc: "Disk for the tier's cache."},
	{Name: "tier.copy.max.bytes.per.second", Type: Long, Null: true, Check: atLeast(1), Unit: BytesPerSecond, Synonyms: []Synonym{{"remote.log.manager.copy.max.bytes.per.second", 1}}, Doc: "Bytes copied to the tier a second; unset is Kafka's remote.log.manager.copy.max.bytes.per.second."},
	{Name: "log.write.ahead.bytes", Type: Int, Default: "65536", Check: atLeast(0), Unit: Bytes, Doc: "Bytes by which a log that is written is extended ahead, which halves the cost of small writes; 0 is off."},
}
