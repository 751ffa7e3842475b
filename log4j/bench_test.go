package log4j

import (
	"bytes"
	"log/slog"
	"testing"
	"time"
)

// What does a line cost that is not logged? (5 ns at most, no allocation.)
func BenchmarkDisabled(b *testing.B) {
	h, _, _ := configured(b, "log4j.rootLogger=INFO,A"+toStdout+"%m%n")
	log := h.Logger("kafka.server.KafkaApis")
	b.ReportAllocs()
	for b.Loop() {
		log.Debug("not logged")
	}
}

// What does a line to a file cost who logs? (1.5 µs at most with the default pattern.)
func BenchmarkFile(b *testing.B) {
	path := b.TempDir() + "/x.log"
	h, _, _ := configured(b, "log4j.rootLogger=INFO,F\nlog4j.appender.F=org.apache.log4j.RollingFileAppender\nlog4j.appender.F.File="+path+
		"\nlog4j.appender.F.MaxFileSize=64MB\nlog4j.appender.F.layout=org.apache.log4j.PatternLayout\nlog4j.appender.F.layout.ConversionPattern=[%d] %p %m (%c)%n\n")
	log := h.Logger("kafka.server.KafkaApis")
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		log.Info("Processing automatic preferred replica leader election", "partition", 7)
		if n++; n%4096 == 0 {
			h.Flush(time.Second) // else the buffer's bound is what is measured
		}
	}
	if d := h.Dropped(); d > 0 {
		b.Errorf("%d lines were dropped", d)
	}
}

// How much of that is slog's? Its own text handler into memory, to compare.
func BenchmarkSlogText(b *testing.B) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	b.ReportAllocs()
	for b.Loop() {
		log.Info("Processing automatic preferred replica leader election", "partition", 7)
		out.Reset()
	}
}

// Can a client that repeats a refused request 100 000 times a second be afforded?
func BenchmarkSummary(b *testing.B) {
	h, _, _ := configured(b, "log4j.rootLogger=INFO,A"+toStdout+"%m%n")
	log := slog.New(NewSummary(h.Handler("x"), time.Hour))
	b.ReportAllocs()
	for b.Loop() {
		log.Warn("refused", "client", "perf", "api", "Produce", "version", 2)
	}
}
