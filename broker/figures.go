package broker

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"varve/broker/commitlog"
	"varve/broker/wire"
	"varve/tier/archive"
)

// TopicFigures are what there is of one topic on this broker.
type TopicFigures struct {
	Name       string
	Partitions int
	Records    int64 // offsets between log start and log end, over all partitions
	LocalBytes int64
	Tiered     bool
	InTier     int64 // of these, those that the tier holds
}

// Topics are the figures of every topic, by name.
func (b *Broker) Topics() []TopicFigures {
	byName := map[string]*TopicFigures{}
	for _, p := range b.host.Partitions() {
		name := p.Name().Topic
		f := byName[name]
		if f == nil {
			f = &TopicFigures{Name: name, Tiered: p.Settings().Tiered}
			byName[name] = f
		}
		v := p.Log().View()
		f.Partitions++
		f.Records += int64(p.Log().End() - v.LogStart)
		f.LocalBytes += v.Size()
		f.InTier += int64(max(0, p.Tiered()-v.LogStart))
	}
	out := make([]TopicFigures, 0, len(byName))
	for _, f := range byName {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b TopicFigures) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Tier are the tier's figures; ok is false without one.
func (b *Broker) Tier() (s archive.Stats, ok bool) {
	if b.archive == nil {
		return s, false
	}
	return b.archive.Stats(), true
}

// Figures are the broker's figures by bean, under Kafka's names where they are Kafka's.
func (b *Broker) Figures() map[string]map[string]any {
	topics := b.Topics()
	partitions, bytes := 0, int64(0)
	for _, t := range topics {
		partitions, bytes = partitions+t.Partitions, bytes+t.LocalBytes
	}
	out := map[string]map[string]any{
		"kafka.server:type=ReplicaManager": {"PartitionCount": partitions, "LeaderCount": partitions},
		"kafka.log:type=LogManager":        {"LocalBytes": bytes, "OfflineLogDirectoryCount": b.offlineDirs()},
		"kafka.server:type=socket-server":  {"connection-count": b.server.Stats().Connections},
		"kafka.server:type=FetchSessions":  {"NumIncrementalFetchSessions": b.api.Sessions()},
	}
	for key, n := range b.api.Served() {
		out["kafka.network:type=RequestMetrics,request="+wire.Name(key)] = map[string]any{"Count": n}
	}
	if s, ok := b.Tier(); ok {
		out["varve.tier:type=Archive"] = map[string]any{"CopiedBytes": s.Copied, "Containers": s.Containers, "Errors": s.Errors, "LastError": s.LastError,
			"RemoteCopyLagBytes": s.LagBytes, "RemoteCopyLagSegments": s.LagSegments, "OldestLagSeconds": int64(s.OldestLag.Seconds()),
			"DroppedLocalBytes": s.Dropped, "RemovedContainers": s.Removed, "SweptFiles": s.Swept, "Fenced": s.Fenced,
			"CacheHits": s.Cache.Hits, "CacheMisses": s.Cache.Misses, "CacheFillBytes": s.Cache.FillBytes}
	}
	return out
}

func (b *Broker) offlineDirs() (n int) {
	for _, d := range b.host.Dirs() {
		if d.Failed() != nil {
			n++
		}
	}
	return n
}

// lastStop is how a log dir was left, for people.
func lastStop(d *commitlog.Dir) string {
	switch {
	case d.Meta().ClusterID == "":
		return "none, it is new"
	case d.CleanStart():
		return "clean"
	}
	return "not clean, its logs are checked"
}

var (
	descConnections = prometheus.NewDesc("varve_connections", "Open client connections.", nil, nil)
	descPartitions  = prometheus.NewDesc("varve_partitions", "Partitions on this broker.", nil, nil)
	descLocalBytes  = prometheus.NewDesc("varve_log_local_bytes", "Bytes of log segments on local disk.", []string{"topic"}, nil)
	descRequests    = prometheus.NewDesc("varve_requests_total", "Requests served, by API.", []string{"api"}, nil)
	descOffline     = prometheus.NewDesc("varve_log_dirs_offline", "Log dirs out of service.", nil, nil)
	descTierCopied  = prometheus.NewDesc("varve_tier_copied_bytes_total", "Bytes of containers committed to the tier.", nil, nil)
	descTierErrors  = prometheus.NewDesc("varve_tier_errors_total", "Steps of the tier's work that failed.", nil, nil)
	descTierReads   = prometheus.NewDesc("varve_tier_read_errors_total", "Reads of the tier for consumers that failed.", nil, nil)
	descTierLag     = prometheus.NewDesc("varve_tier_lag_bytes", "Bytes of closed segments that are not in the tier yet.", nil, nil)
	descTierOldest  = prometheus.NewDesc("varve_tier_lag_seconds", "How long the oldest of them has waited.", nil, nil)
	descCacheHits   = prometheus.NewDesc("varve_tier_cache_hits_total", "Reads of the tier that found all their bytes in the cache.", nil, nil)
	descCacheMisses = prometheus.NewDesc("varve_tier_cache_misses_total", "Reads of the tier that had to wait for the store.", nil, nil)
)

// Describe tells Prometheus that figures come as they are.
func (b *Broker) Describe(ch chan<- *prometheus.Desc) { ch <- descConnections }

// Collect gives Prometheus the broker's figures.
func (b *Broker) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(descConnections, float64(b.server.Stats().Connections))
	gauge(descOffline, float64(b.offlineDirs()))
	partitions := 0
	for _, t := range b.Topics() {
		partitions += t.Partitions
		gauge(descLocalBytes, float64(t.LocalBytes), t.Name)
	}
	gauge(descPartitions, float64(partitions))
	served := b.api.Served()
	for _, key := range slices.Sorted(maps.Keys(served)) {
		counter(descRequests, float64(served[key]), wire.Name(key))
	}
	if s, ok := b.Tier(); ok {
		counter(descTierCopied, float64(s.Copied))
		counter(descTierErrors, float64(s.Errors))
		counter(descTierReads, float64(s.ReadErrors))
		gauge(descTierLag, float64(s.LagBytes))
		gauge(descTierOldest, s.OldestLag.Seconds())
		counter(descCacheHits, float64(s.Cache.Hits))
		counter(descCacheMisses, float64(s.Cache.Misses))
	}
}
