package broker

import (
	"testing"
	"time"

	"varve/broker/record"
	"varve/conf"
)

// configured are the settings of a topic under a broker's configuration.
func configured(t *testing.T, tiered bool, defines ...string) *settings {
	t.Helper()
	c, err := conf.Load(conf.FromDefines(defines))
	if err != nil {
		t.Fatal(err)
	}
	return newSettings(c, tiered)
}

func TestTopicsWithoutConfigsShareTheirSettings(t *testing.T) {
	s := configured(t, false)
	if s.of("a", nil) != s.of("b", map[string]string{}) {
		t.Error("two topics without configs have settings of their own")
	}
	if s.of("a", nil) == s.of("b", map[string]string{"retention.ms": "1"}) {
		t.Error("a topic with a config has the others' settings")
	}
}

func TestATopicsConfigsStandOverTheBrokers(t *testing.T) {
	s := configured(t, true, "log.segment.bytes=1048576", "min.insync.replicas=2", "compression.type=lz4")
	plain := s.of("a", nil)
	if plain.Log.SegmentBytes != 1<<20 || plain.MinISR != 2 || plain.Policy.TargetCodec != record.CodecLZ4 || plain.Tiered {
		t.Errorf("the broker's: %+v", plain)
	}
	own := s.of("a", map[string]string{"segment.bytes": "2097152", "min.insync.replicas": "1", "compression.type": "zstd",
		"remote.storage.enable": "true", "message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"})
	if own.Log.SegmentBytes != 2<<20 || own.MinISR != 1 || own.Policy.TargetCodec != record.CodecZstd {
		t.Errorf("the topic's: %+v", own)
	}
	if !own.Tiered || !own.Log.Remote || !own.Policy.LogAppendTime || !own.Policy.KeyRequired || !own.Log.Compact {
		t.Errorf("what the topic switches on: %+v", own)
	}
}

// What a broker with a tier has moved there is not forgotten by one without.
func TestWithoutATierATieredTopicKeepsItsLogStart(t *testing.T) {
	s := configured(t, false).of("a", map[string]string{"remote.storage.enable": "true"})
	if s.Tiered || !s.Log.Remote {
		t.Errorf("tiered: %v; the log knows of a tier: %v", s.Tiered, s.Log.Remote)
	}
}

func TestKafkasNeverIsNever(t *testing.T) {
	s := configured(t, false).of("a", nil)
	if s.Log.FlushMessages != 0 || s.Log.FlushMs != 0 {
		t.Errorf("flushes after %d messages, %d ms", s.Log.FlushMessages, s.Log.FlushMs)
	}
	if got := unlimited(1<<63 - 1); got != 0 {
		t.Errorf("no limit is %d", got)
	}
	if got := millis(1<<63 - 1); got != 1<<63-1 {
		t.Errorf("for ever is %v", got)
	}
	if got := millis(1500); got != 1500*time.Millisecond {
		t.Errorf("1500 ms are %v", got)
	}
}

func TestLogsMayHoldAThirdOfTheDescriptors(t *testing.T) {
	if n := descriptors(); n < 100 || n > 100_000 {
		t.Errorf("%d descriptors", n)
	}
}

// BenchmarkSettings asks what a change of a topic's configs costs.
func BenchmarkSettings(b *testing.B) {
	c, err := conf.Load()
	if err != nil {
		b.Fatal(err)
	}
	s, own := newSettings(c, true), map[string]string{"retention.ms": "1000", "segment.bytes": "1048576"}
	b.ReportAllocs()
	for b.Loop() {
		s.of("a", own)
	}
}
