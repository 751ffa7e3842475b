package broker

import (
	"math"
	"sync"
	"time"

	"varve/broker/commitlog"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/conf"
	"varve/tier/archive"

	"golang.org/x/sys/unix"
)

// settings turns topics' configs into what partitions want to know. Topics without
// configs of their own share one result.
type settings struct {
	conf   *conf.Config
	tiered bool // there is a tier

	once  sync.Once
	plain *partition.Settings
}

func newSettings(c *conf.Config, tiered bool) *settings { return &settings{conf: c, tiered: tiered} }

func (s *settings) of(_ string, own map[string]string) *partition.Settings {
	if len(own) == 0 {
		s.once.Do(func() { s.plain = s.compute(nil) })
		return s.plain
	}
	return s.compute(own)
}

func (s *settings) compute(own map[string]string) *partition.Settings {
	c, t := s.conf, s.conf.Topic(own)
	codec, err := record.ParseCodec(t.CompressionType)
	if err != nil {
		codec = record.CodecProducer // it was validated when it was set
	}
	// A log keeps to its tier also while the broker runs without one (tier.url unset by
	// mistake): else its start would rise to what is on this disk, and the tier would
	// follow and delete the rest.
	return &partition.Settings{
		Policy: record.Policy{MaxBytes: int(t.MaxMessageBytes), SegmentBytes: int(t.SegmentBytes), LogAppendTime: t.LogAppendTime,
			BeforeMax: t.TimestampBeforeMaxMs, AfterMax: t.TimestampAfterMaxMs, KeyRequired: t.Compact, TargetCodec: codec, Level: level(t, codec)},
		MinISR: t.MinInsyncReplicas,
		Tiered: s.tiered && t.RemoteStorageEnable,
		Log: commitlog.Config{
			SegmentBytes: t.SegmentBytes, SegmentMs: t.SegmentMs, SegmentJitterMs: t.SegmentJitterMs, IndexBytes: int(t.SegmentIndexBytes),
			IndexInterval: int(t.IndexIntervalBytes), RetentionMs: t.RetentionMs, RetentionBytes: t.RetentionBytes,
			LocalRetentionMs: t.LocalRetentionMs, LocalRetentionBytes: t.LocalRetentionBytes, Remote: t.RemoteStorageEnable,
			Compact: t.Compact && !t.Delete, FlushMessages: unlessMax(t.FlushMessages), FlushMs: unlessMax(t.FlushMs),
			WriteAhead: c.Int("log.write.ahead.bytes"), FileDeleteDelayMs: t.FileDeleteDelayMs, ProducerExpireMs: c.Long("producer.id.expiration.ms"),
		},
		Tier: archive.Config{RetentionMs: t.RetentionMs, RetentionBytes: t.RetentionBytes, LocalRetentionMs: t.LocalRetentionMs,
			LocalRetentionBytes: t.LocalRetentionBytes, CopyDisabled: t.RemoteCopyDisable,
			UploadInterval: max(time.Duration(c.Long("tier.upload.interval.ms"))*time.Millisecond, 0)},
	}
}

func level(t conf.TopicConfig, c record.Codec) int {
	switch c {
	case record.CodecGzip:
		return t.GzipLevel
	case record.CodecLZ4:
		return t.LZ4Level
	case record.CodecZstd:
		return t.ZstdLevel
	}
	return record.DefaultLevel
}

// unlessMax turns Kafka's "never" into 0.
func unlessMax(n int64) int64 {
	if n == math.MaxInt64 {
		return 0
	}
	return n
}

// descriptors is how many files logs may hold open: a third of what the process may,
// so that connections and the tier have the rest.
func descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur/3, 100_000))
}
