package conf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The answers to validate are those of Kafka 4.3.1's LogConfig, which was given
// the same configs; those to describe follow kafka-configs.sh.
func TestTopicScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		broker, _ := Load()
		own := map[string]string{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "broker": // key=value lines
				var err error
				if broker, err = Load(FromProperties("server.properties", []byte(d.Input))); err != nil {
					return err.Error() + "\n"
				}
				return "ok\n"
			case "topic": // key=value lines, set without validation
				own = keyValues(d.Input)
				return "ok\n"
			case "validate": // each line is a topic's configs, key=value separated by blanks
				var b strings.Builder
				for _, line := range strings.Split(d.Input, "\n") {
					next := keyValues(strings.ReplaceAll(line, " ", "\n"))
					fmt.Fprintln(&b, answer(broker.ValidateTopic(own, next)))
				}
				return b.String()
			case "alter": // operations, "set key value" each
				next, err := broker.AlterTopic(own, alterations(d.Input))
				if err != nil {
					return answer(err) + "\n"
				}
				own = next
				var b strings.Builder
				for _, name := range sortedKeys(own) {
					fmt.Fprintf(&b, "%s=%s\n", name, own[name])
				}
				return b.String()
			case "describe": // names of topic configs, or of broker configs with broker=
				entries := broker.TopicEntries(own)
				if d.HasArg("broker") {
					entries = broker.BrokerEntries()
				}
				return describe(entries, strings.Fields(d.Input))
			}
			return "unknown command " + d.Cmd
		})
	})
}

func keyValues(text string) map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if name, value, ok := strings.Cut(line, "="); ok {
			m[name] = value
		}
	}
	return m
}

func answer(err error) string {
	var (
		topic   *TopicError
		value   *ValueError
		request *RequestError
	)
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &topic), errors.As(err, &value):
		return "INVALID_CONFIG " + err.Error()
	case errors.As(err, &request):
		return "INVALID_REQUEST " + err.Error()
	}
	return "unexpected " + err.Error()
}

func alterations(text string) []Alteration {
	var as []Alteration
	for _, line := range strings.Split(text, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		name, value, hasValue := strings.Cut(rest, " ")
		a := Alteration{Name: name, Op: map[string]Op{"set": OpSet, "delete": OpDelete, "append": OpAppend, "subtract": OpSubtract}[verb]}
		if hasValue {
			a.Value = &value
		}
		as = append(as, a)
	}
	return as
}

// describe prints as kafka-configs.sh --describe --all does.
func describe(entries []Entry, names []string) string {
	sources := map[ConfigSource]string{SourceTopic: "DYNAMIC_TOPIC_CONFIG", SourceDynamicBroker: "DYNAMIC_BROKER_CONFIG",
		SourceDynamicDefaultBroker: "DYNAMIC_DEFAULT_BROKER_CONFIG", SourceStaticBroker: "STATIC_BROKER_CONFIG", SourceDefault: "DEFAULT_CONFIG"}
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	var b strings.Builder
	for _, name := range names {
		for _, e := range entries {
			if e.Name != name {
				continue
			}
			var synonyms []string
			for _, s := range e.Synonyms {
				synonyms = append(synonyms, sources[s.Source]+":"+s.Name+"="+text(s.Value))
			}
			fmt.Fprintf(&b, "%s=%s sensitive=%v synonyms={%s}", e.Name, text(e.Value), e.Sensitive, strings.Join(synonyms, ", "))
			if e.ReadOnly {
				b.WriteString(" read-only")
			}
			fmt.Fprintf(&b, " %d\n", e.Type)
		}
	}
	return b.String()
}
