package conf

import (
	"fmt"
	"slices"
	"strings"
)

// TopicConfig is what holds for one topic: the broker's defaults and the
// topic's own configs on top. Times are milliseconds, -1 is no limit where a
// comment says so.
type TopicConfig struct {
	Delete, Compact bool // cleanup.policy
	CompressionType string
	GzipLevel       int
	LZ4Level        int
	ZstdLevel       int

	SegmentBytes       int64
	SegmentMs          int64
	SegmentJitterMs    int64
	SegmentIndexBytes  int64
	IndexIntervalBytes int64
	Preallocate        bool
	FileDeleteDelayMs  int64
	FlushMessages      int64
	FlushMs            int64

	RetentionMs         int64 // -1
	RetentionBytes      int64 // -1
	LocalRetentionMs    int64 // -1; RetentionMs where the topic says -2
	LocalRetentionBytes int64 // -1; RetentionBytes where the topic says -2

	DeleteRetentionMs      int64
	MinCompactionLagMs     int64
	MaxCompactionLagMs     int64
	MinCleanableDirtyRatio float64

	MaxMessageBytes             int64
	LogAppendTime               bool // message.timestamp.type
	TimestampBeforeMaxMs        int64
	TimestampAfterMaxMs         int64
	MinInsyncReplicas           int
	UncleanLeaderElectionEnable bool

	RemoteStorageEnable   bool
	RemoteCopyDisable     bool
	RemoteDeleteOnDisable bool
}

// TopicError is a topic config that is refused: INVALID_CONFIG, in Kafka's
// words.
type TopicError struct{ Reason string }

func (e *TopicError) Error() string { return e.Reason }

// ValidateTopic checks what a topic's own configs would become: next are all
// of them, before those it has now, nil for a new topic. The error is a
// *TopicError or a *ValueError; its text is for the client.
func (c *Config) ValidateTopic(before, next map[string]string) error {
	for _, name := range sortedKeys(next) {
		if k := exact(name); k == nil || !k.forTopic() {
			return &TopicError{"Unknown topic config name: " + name}
		}
	}
	for _, name := range sortedKeys(next) {
		if _, err := exact(name).Parse(next[name]); err != nil {
			return err
		}
	}
	t := topicValues{c, next}
	if low, high := t.long("min.compaction.lag.ms"), t.long("max.compaction.lag.ms"); low > high {
		return &TopicError{fmt.Sprintf("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", low, high)}
	}
	if !t.bool("remote.storage.enable") {
		if strings.EqualFold(before["remote.storage.enable"], "true") && !t.bool("remote.log.delete.on.disable") {
			return &TopicError{disableKeepsData}
		}
		return nil
	}
	return t.validateTiered()
}

const (
	disableKeepsData = "It is invalid to disable remote storage without deleting remote data. " +
		"If you want to keep the remote data and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. " +
		"If you want to disable remote storage and delete all remote data, please set `remote.storage.enable=false,remote.log.delete.on.disable=true`."
	tierDisabled  = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
	tierDeletes   = "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
	copyDisabled1 = "When `remote.log.copy.disable` is set to true, the `"
	copyDisabled2 = "` must be set to the identical value because there will be no more logs copied to the remote storage."
)

// validateTiered keeps the rules of a topic whose segments settle in the tier.
func (t topicValues) validateTiered() error {
	if !t.broker.TierEnabled() {
		return &TopicError{tierDisabled}
	}
	if policy := t.list("cleanup.policy"); slices.Contains(policy, "compact") {
		return &TopicError{tierDeletes}
	}
	rs := retentions(t.long("retention.ms"), t.long("local.retention.ms"), t.long("retention.bytes"), t.long("local.retention.bytes"))
	slices.Reverse(rs) // bytes come first, as Kafka looks
	for _, r := range rs {
		if err := r.fault(); err != nil {
			return err
		}
	}
	if !t.bool("remote.log.copy.disable") {
		return nil
	}
	for _, r := range rs {
		if r.localLimit != inherit && r.localLimit != r.totalLimit {
			return &TopicError{copyDisabled1 + r.local + "` and `" + r.total + copyDisabled2}
		}
	}
	return nil
}

// inherit as a local retention means: as the total.
const inherit = -2

// retention is a limit and its local share, by time or by size.
type retention struct {
	total, local           string
	totalLimit, localLimit int64
}

func retentions(ms, localMs, bytes, localBytes int64) []retention {
	return []retention{{"retention.ms", "local.retention.ms", ms, localMs}, {"retention.bytes", "local.retention.bytes", bytes, localBytes}}
}

// fault says what is wrong with the local share, which must not be more than the whole.
func (r retention) fault() error {
	switch {
	case r.totalLimit <= -1 || r.localLimit == inherit:
		return nil
	case r.localLimit == -1:
		return &ValueError{r.local, "-1", fmt.Sprintf("Value must not be -1 as %s value is set as %d.", r.total, r.totalLimit)}
	case r.localLimit > r.totalLimit:
		return &ValueError{r.local, fmt.Sprint(r.localLimit), fmt.Sprintf("Value must not be more than %s property value: %d", r.total, r.totalLimit)}
	}
	return nil
}

// topicValues looks topic configs up: the topic's own, else the broker's
// default, else Kafka's.
type topicValues struct {
	broker *Config
	own    map[string]string
}

func (t topicValues) value(name string) any {
	k := exact(name)
	if text, ok := t.own[name]; ok {
		if v, err := k.Parse(text); err == nil {
			return v
		}
	}
	if len(k.Synonyms) > 0 {
		return t.broker.Value(k.Synonyms[0].Name)
	}
	if k.Null {
		return nil
	}
	return k.defaultValue()
}

func (t topicValues) bool(name string) bool     { return t.value(name).(bool) }
func (t topicValues) long(name string) int64    { return t.value(name).(int64) }
func (t topicValues) list(name string) []string { return t.value(name).([]string) }
