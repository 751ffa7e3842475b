package conf

import "slices"

// Topic computes a topic's effective configs from its own, which
// ValidateTopic let pass; what does not parse counts as not set. Most topics
// set little or nothing, so the broker's defaults are computed once.
func (c *Config) Topic(own map[string]string) TopicConfig {
	t := c.topicDefaults()
	if len(own) > 0 {
		for _, f := range topicFields {
			text, set := own[f.name]
			if !set {
				continue
			}
			if v, err := exact(f.name).Parse(text); err == nil {
				f.set(&t, v)
			}
		}
	}
	if t.LocalRetentionMs == inherit {
		t.LocalRetentionMs = t.RetentionMs
	}
	if t.LocalRetentionBytes == inherit {
		t.LocalRetentionBytes = t.RetentionBytes
	}
	return t
}

// brokerTopic computes what holds for a topic without configs of its own,
// inherit still in place.
func (c *Config) brokerTopic() TopicConfig {
	var t TopicConfig
	for _, f := range topicFields {
		f.set(&t, topicValues{broker: c}.value(f.name))
	}
	return t
}

// topicFields says which field a topic config is; internal.segment.bytes comes
// after the one that it replaces.
var topicFields = []struct {
	name string
	set  func(*TopicConfig, any)
}{
	{"cleanup.policy", func(t *TopicConfig, v any) {
		t.Delete, t.Compact = slices.Contains(v.([]string), "delete"), slices.Contains(v.([]string), "compact")
	}},
	{"compression.type", func(t *TopicConfig, v any) { t.CompressionType = v.(string) }},
	{"compression.gzip.level", func(t *TopicConfig, v any) { t.GzipLevel = int(v.(int64)) }},
	{"compression.lz4.level", func(t *TopicConfig, v any) { t.LZ4Level = int(v.(int64)) }},
	{"compression.zstd.level", func(t *TopicConfig, v any) { t.ZstdLevel = int(v.(int64)) }},
	{"segment.bytes", func(t *TopicConfig, v any) { t.SegmentBytes = v.(int64) }},
	{"segment.ms", func(t *TopicConfig, v any) { t.SegmentMs = v.(int64) }},
	{"segment.jitter.ms", func(t *TopicConfig, v any) { t.SegmentJitterMs = v.(int64) }},
	{"segment.index.bytes", func(t *TopicConfig, v any) { t.SegmentIndexBytes = v.(int64) }},
	{"index.interval.bytes", func(t *TopicConfig, v any) { t.IndexIntervalBytes = v.(int64) }},
	{"preallocate", func(t *TopicConfig, v any) { t.Preallocate = v.(bool) }},
	{"file.delete.delay.ms", func(t *TopicConfig, v any) { t.FileDeleteDelayMs = v.(int64) }},
	{"flush.messages", func(t *TopicConfig, v any) { t.FlushMessages = v.(int64) }},
	{"flush.ms", func(t *TopicConfig, v any) { t.FlushMs = v.(int64) }},
	{"retention.ms", func(t *TopicConfig, v any) { t.RetentionMs = v.(int64) }},
	{"retention.bytes", func(t *TopicConfig, v any) { t.RetentionBytes = v.(int64) }},
	{"local.retention.ms", func(t *TopicConfig, v any) { t.LocalRetentionMs = v.(int64) }},
	{"local.retention.bytes", func(t *TopicConfig, v any) { t.LocalRetentionBytes = v.(int64) }},
	{"delete.retention.ms", func(t *TopicConfig, v any) { t.DeleteRetentionMs = v.(int64) }},
	{"min.compaction.lag.ms", func(t *TopicConfig, v any) { t.MinCompactionLagMs = v.(int64) }},
	{"max.compaction.lag.ms", func(t *TopicConfig, v any) { t.MaxCompactionLagMs = v.(int64) }},
	{"min.cleanable.dirty.ratio", func(t *TopicConfig, v any) { t.MinCleanableDirtyRatio = v.(float64) }},
	{"max.message.bytes", func(t *TopicConfig, v any) { t.MaxMessageBytes = v.(int64) }},
	{"message.timestamp.type", func(t *TopicConfig, v any) { t.LogAppendTime = v == "LogAppendTime" }},
	{"message.timestamp.before.max.ms", func(t *TopicConfig, v any) { t.TimestampBeforeMaxMs = v.(int64) }},
	{"message.timestamp.after.max.ms", func(t *TopicConfig, v any) { t.TimestampAfterMaxMs = v.(int64) }},
	{"min.insync.replicas", func(t *TopicConfig, v any) { t.MinInsyncReplicas = int(v.(int64)) }},
	{"unclean.leader.election.enable", func(t *TopicConfig, v any) { t.UncleanLeaderElectionEnable = v.(bool) }},
	{"remote.storage.enable", func(t *TopicConfig, v any) { t.RemoteStorageEnable = v.(bool) }},
	{"remote.log.copy.disable", func(t *TopicConfig, v any) { t.RemoteCopyDisable = v.(bool) }},
	{"remote.log.delete.on.disable", func(t *TopicConfig, v any) { t.RemoteDeleteOnDisable = v.(bool) }},
	{"internal.segment.bytes", func(t *TopicConfig, v any) {
		if v != nil {
			t.SegmentBytes = v.(int64)
		}
	}},
}
