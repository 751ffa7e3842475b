package log4j

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendAttr writes " key=value". An empty key of a group makes its members
// stand where it stands, an attribute without key and value is left out: both
// are slog's rules.
func appendAttr(b []byte, group string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, member := range v.Group() {
			b = appendAttr(b, group, member)
		}
		return b
	}
	if a.Equal(slog.Attr{}) {
		return b
	}
	b = append(b, ' ')
	b = append(b, group...)
	b = append(b, a.Key...)
	b = append(b, '=')
	return appendValue(b, v)
}

// appendValue writes a value; fmt has a part only in kinds that cannot do without.
func appendValue(b []byte, v slog.Value) []byte {
	switch v.Kind() {
	case slog.KindString:
		return appendText(b, v.String())
	case slog.KindInt64:
		return strconv.AppendInt(b, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(b, v.Uint64(), 10)
	case slog.KindFloat64:
		return strconv.AppendFloat(b, v.Float64(), 'g', -1, 64)
	case slog.KindBool:
		return strconv.AppendBool(b, v.Bool())
	case slog.KindDuration:
		return append(b, v.Duration().String()...)
	case slog.KindTime:
		return v.Time().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	}
	switch x := v.Any().(type) {
	case error:
		return appendText(b, x.Error())
	case fmt.Stringer:
		return appendText(b, x.String())
	case []byte:
		return appendText(b, string(x))
	}
	return appendText(b, fmt.Sprintf("%+v", v.Any()))
}

// appendText quotes what would not be told from the next attribute, or would
// break the line.
func appendText(b []byte, s string) []byte {
	if s == "" || strings.IndexFunc(s, special) >= 0 {
		return strconv.AppendQuote(b, s)
	}
	return append(b, s...)
}

func special(r rune) bool {
	return r == ' ' || r == '=' || r == '"' || r == utf8.RuneError || !unicode.IsPrint(r)
}
