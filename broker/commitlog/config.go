package commitlog

import (
	"varve/broker/segment"
)

// A Config is what a topic says of its logs, under Kafka's names. The zero value is
// Kafka's defaults.
type Config struct {
	SegmentBytes    int64 // segment.bytes; 0: 1 GiB
	SegmentMs       int64 // segment.ms; 0: 7 days
	SegmentJitterMs int64 // segment.jitter.ms
	IndexBytes      int   // segment.index.bytes; 0: 10 MiB
	IndexInterval   int   // index.interval.bytes; 0: 4096

	RetentionMs         int64 // retention.ms; 0: 7 days, -1: for ever
	RetentionBytes      int64 // retention.bytes; 0 and -1: unlimited
	LocalRetentionMs    int64 // local.retention.ms; 0 and -2: as RetentionMs
	LocalRetentionBytes int64 // local.retention.bytes; 0 and -2: as RetentionBytes
	Remote              bool  // remote.storage.enable
	Compact             bool  // cleanup.policy without delete: retention by log start only

	FlushMessages int64 // flush.messages: records between two flushes; 0: never by count
	FlushMs       int64 // flush.ms; 0: never by time
	WriteAhead    int   // log.write.ahead.bytes; 0: off

	FileDeleteDelayMs int64 // file.delete.delay.ms; 0: 60 s
	ProducerExpireMs  int64 // producer.id.expiration.ms; 0: a day
}

const (
	day       = 24 * 60 * 60 * 1000
	unlimited = -1
)

func (c *Config) segmentBytes() int64 { return or(c.SegmentBytes, 1<<30) }
func (c *Config) segmentMs() int64    { return or(c.SegmentMs, 7*day) }
func (c *Config) deleteDelay() int64  { return or(c.FileDeleteDelayMs, 60_000) }

// retention is how long and how much the log keeps in all.
func (c *Config) retention() (ms, bytes int64) {
	return or(c.RetentionMs, 7*day), or(c.RetentionBytes, unlimited)
}

// localRetention is how long and how much stays on this disk.
func (c *Config) localRetention() (ms, bytes int64) {
	ms, bytes = c.retention()
	if c.LocalRetentionMs != 0 && c.LocalRetentionMs != -2 {
		ms = c.LocalRetentionMs
	}
	if c.LocalRetentionBytes != 0 && c.LocalRetentionBytes != -2 {
		bytes = c.LocalRetentionBytes
	}
	return ms, bytes
}

func (c *Config) options() segment.Options {
	return segment.Options{
		IndexInterval: int(or(int64(c.IndexInterval), 4096)),
		IndexBytes:    int(or(int64(c.IndexBytes), 10<<20)),
		WriteAhead:    c.WriteAhead,
	}
}

func or(v, otherwise int64) int64 {
	if v == 0 {
		return otherwise
	}
	return v
}
