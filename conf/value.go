package conf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ValueError is a value that its key does not allow. Its text is Kafka's, which
// clients show to people and tests compare.
type ValueError struct {
	Key    string
	Value  string
	Reason string
}

func (e *ValueError) Error() string {
	text := "Invalid value " + e.Value + " for configuration " + e.Key
	if e.Reason == "" {
		return text
	}
	return text + ": " + e.Reason
}

// Parse turns text into the key's Go type and checks it: bool, string, int64
// (of Int, Short and Long), float64 or []string. Blanks around it do not
// count. The error is a *ValueError.
func (k *Key) Parse(text string) (any, error) {
	v, reason := parse(k.Type, strings.Trim(text, javaBlanks))
	if reason != "" {
		return nil, &ValueError{k.Name, text, reason}
	}
	if bad, reason := k.Check.fault(k.Name, v); reason != "" {
		return nil, &ValueError{k.Name, bad, reason}
	}
	return v, nil
}

// javaBlanks is what Java's trim takes off: everything up to the blank.
const javaBlanks = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f "

func parse(t Type, text string) (v any, reason string) {
	switch t {
	case Bool:
		switch {
		case strings.EqualFold(text, "true"):
			return true, ""
		case strings.EqualFold(text, "false"):
			return false, ""
		}
		return nil, "Expected value to be either true or false"
	case Int:
		return parseInt(t, text, 32)
	case Short:
		return parseInt(t, text, 16)
	case Long:
		return parseInt(t, text, 64)
	case Double:
		return parseDouble(text)
	case List:
		return splitList(text), ""
	case Unknown, String, Class, Password:
		return text, ""
	}
	panic(fmt.Sprintf("conf: type %d", t))
}

func parseInt(t Type, text string, bits int) (any, string) {
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return nil, "Not a number of type " + t.String()
	}
	return n, ""
}

// parseDouble reads what Java reads: a d or f may follow, and too large is
// infinite. Go's hexadecimal and underscored forms are not numbers to Kafka's
// users and are refused.
func parseDouble(text string) (any, string) {
	number := strings.TrimRight(text, "dDfF")
	if len(text)-len(number) > 1 || strings.ContainsAny(number, "_xXpP") || strings.Contains(strings.ToLower(number), "inf") {
		return nil, "Not a number of type DOUBLE"
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil && !math.IsInf(f, 0) {
		return nil, "Not a number of type DOUBLE"
	}
	return f, ""
}

// splitList cuts at commas, with the blanks around them.
func splitList(text string) []string {
	if text == "" {
		return []string{}
	}
	items := strings.Split(text, ",")
	for i := range items {
		if i > 0 {
			items[i] = strings.TrimLeft(items[i], listBlanks)
		}
		if i < len(items)-1 {
			items[i] = strings.TrimRight(items[i], listBlanks)
		}
	}
	return items
}

const listBlanks = " \t\n\v\f\r"

// Format is a parsed value as DescribeConfigs answers it.
func Format(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatDouble(v)
	case []string:
		return strings.Join(v, ",")
	}
	panic(fmt.Sprintf("conf: value of %T", v))
}

// formatDouble writes as Java's Double.toString: 0.5, 1.0, 1.0E7, 1.0E-4.
func formatDouble(f float64) string {
	if a := math.Abs(f); f == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}

// shown is a value in an error text: a list has brackets there.
func shown(v any) string {
	if items, ok := v.([]string); ok {
		return "[" + strings.Join(items, ", ") + "]"
	}
	return Format(v)
}
