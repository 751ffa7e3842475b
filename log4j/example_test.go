package log4j_test

import (
	"os"
	"time"

	"varve/log4j"
)

func Example() {
	h := log4j.New(os.Stdout, os.Stdout)
	defer h.Close(time.Second)
	h.Configure([]byte(`
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m (%c{1})%n
`), nil)

	log := h.Logger("kafka.log.LogManager")
	log.Info("Loading logs", "dirs", 2)
	log.Debug("not seen")
	h.SetLevel("kafka.log", log4j.Debug)
	log.Debug("seen")
	// Output:
	// INFO Loading logs dirs=2 (LogManager)
	// DEBUG seen (LogManager)
}
