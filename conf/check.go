package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Check bounds the values of a key. The zero Check lets everything pass.
type Check struct {
	// Valid says what is wrong with a parsed value, in Kafka's words, or "".
	Valid func(key string, v any) string
	// Text says in the documentation what is valid, as Kafka's prints it.
	Text string

	each bool // Valid is asked for each item of a list
}

// fault asks Valid and returns what it found wrong and with what.
func (c Check) fault(key string, v any) (bad, reason string) {
	if c.Valid == nil {
		return "", ""
	}
	if !c.each {
		return shown(v), c.Valid(key, v)
	}
	for _, item := range v.([]string) {
		if reason := c.Valid(key, item); reason != "" {
			return item, reason
		}
	}
	return "", ""
}

func atLeast(low int64) Check {
	return Check{Text: fmt.Sprintf("[%d,...]", low), Valid: func(_ string, v any) string {
		if number(v) < float64(low) {
			return fmt.Sprintf("Value must be at least %d", low)
		}
		return ""
	}}
}

func between(low, high float64) Check {
	lowText, highText := formatBound(low), formatBound(high)
	return Check{Text: "[" + lowText + ",...," + highText + "]", Valid: func(_ string, v any) string {
		switch n := number(v); {
		case n < low:
			return "Value must be at least " + lowText
		case n > high:
			return "Value must be no more than " + highText
		}
		return ""
	}}
}

func betweenOr(low, high, other int64) Check {
	return Check{Text: fmt.Sprintf("[%d,...,%d] or %d", low, high, other), Valid: func(_ string, v any) string {
		n := number(v)
		if n != float64(other) && (n < float64(low) || n > float64(high)) {
			return fmt.Sprintf("Value must be between %d and %d or equal to %d", low, high, other)
		}
		return ""
	}}
}

func oneOf(valid ...string) Check {
	list := strings.Join(valid, ", ")
	return Check{Text: "[" + list + "]", Valid: func(_ string, v any) string {
		if !slices.Contains(valid, v.(string)) {
			return "String must be one of: " + list
		}
		return ""
	}}
}

// oneOfFold is oneOf in any case of letters.
func oneOfFold(valid ...string) Check {
	list := strings.Join(valid, ", ")
	return Check{Text: "(case insensitive) [" + list + "]", Valid: func(_ string, v any) string {
		if !slices.ContainsFunc(valid, func(s string) bool { return strings.EqualFold(s, v.(string)) }) {
			return "String must be one of (case insensitive): " + list
		}
		return ""
	}}
}

// oneOfEach is oneOf for each item of a list.
func oneOfEach(valid ...string) Check {
	c := oneOf(valid...)
	c.each = true
	return c
}

func nonEmpty() Check {
	return Check{Text: "non-empty string", Valid: func(_ string, v any) string {
		if v.(string) == "" {
			return "String must be non-empty"
		}
		return ""
	}}
}

// throttledReplicas is a list of partition:broker pairs, or *.
func throttledReplicas() Check {
	const form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
	return Check{Text: form, Valid: func(key string, v any) string {
		items := v.([]string)
		if len(items) == 1 && items[0] == "*" {
			return ""
		}
		for _, item := range items {
			partition, broker, ok := strings.Cut(item, ":")
			if !ok || !digits(partition) || !digits(broker) {
				return key + " must be the literal '*' or a list of replicas in the following format: " + form
			}
		}
		return ""
	}}
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// number is a parsed value as Kafka's bounds see it.
func number(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	}
	panic(fmt.Sprintf("conf: a bound on %T", v))
}

func formatBound(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
