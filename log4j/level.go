// Package log4j reads log4j.properties with the meaning that log4j 1.2 gives
// it and logs by it: Hierarchy is the tree of named loggers with their levels
// and appenders, and each logger is an *slog.Logger.
//
//	log4j.rootLogger=INFO, server
//	log4j.logger.kafka.request.logger=DEBUG     level of a logger and those below it
//	log4j.appender.server=org.apache.log4j.RollingFileAppender
//	log4j.appender.server.File=${varve.logs.dir}/server.log
//	log4j.appender.server.layout=org.apache.log4j.PatternLayout
//	log4j.appender.server.layout.ConversionPattern=[%d] %p %m (%c)%n
//
// A line goes from its logger up to the root and to every appender on the way,
// past ancestors' levels, until a logger says additivity=false.
//
// Who logs never waits: a line is formatted and handed to the appender's
// writer, which has a goroutine and a bounded buffer. A disk that is full,
// slow or gone costs lines, which are counted and told, and nothing else.
package log4j

import (
	"log/slog"
	"math"
	"strconv"
	"strings"
)

// Level is slog's, with log4j's further names.
type Level = slog.Level

const (
	All   Level = math.MinInt
	Trace Level = slog.LevelDebug - 4
	Debug Level = slog.LevelDebug
	Info  Level = slog.LevelInfo
	Warn  Level = slog.LevelWarn
	Error Level = slog.LevelError
	Fatal Level = slog.LevelError + 4
	Off   Level = math.MaxInt
)

// LevelName is log4j's name of the level, or of the named one below it.
func LevelName(l Level) string {
	switch {
	case l == Off:
		return "OFF"
	case l >= Fatal:
		return "FATAL"
	case l >= Error:
		return "ERROR"
	case l >= Warn:
		return "WARN"
	case l >= Info:
		return "INFO"
	case l >= Debug:
		return "DEBUG"
	case l > All:
		return "TRACE"
	}
	return "ALL"
}

// ParseLevel knows log4j's names in any case; ok is false for others.
func ParseLevel(name string) (l Level, ok bool) {
	switch strings.ToUpper(name) {
	case "ALL":
		return All, true
	case "TRACE":
		return Trace, true
	case "DEBUG":
		return Debug, true
	case "INFO":
		return Info, true
	case "WARN":
		return Warn, true
	case "ERROR":
		return Error, true
	case "FATAL":
		return Fatal, true
	case "OFF":
		return Off, true
	}
	return 0, false
}

// toLevel reads a level of a file: LEVEL or LEVEL#class, or log4j's number.
// What it does not know is otherwise, in silence, as in log4j.
func toLevel(text string, otherwise Level) Level {
	name, _, _ := strings.Cut(strings.TrimSpace(text), "#")
	if l, ok := ParseLevel(name); ok {
		return l
	}
	n, err := strconv.Atoi(name)
	if err != nil {
		return otherwise
	}
	for _, l := range []struct {
		number int
		level  Level
	}{{math.MaxInt32, Off}, {50000, Fatal}, {40000, Error}, {30000, Warn}, {20000, Info}, {10000, Debug}, {5000, Trace}, {math.MinInt32, All}} {
		if n == l.number {
			return l.level
		}
	}
	return otherwise
}
