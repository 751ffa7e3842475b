package log4j

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// dateFormat is a java.text.SimpleDateFormat pattern, compiled.
type dateFormat []dateField

// dateField is one run of a letter, or text between.
type dateField struct {
	letter byte // 0: text
	count  int
	text   string
}

// newDateFormat knows log4j's names and SimpleDateFormat's patterns.
func newDateFormat(pattern string) (dateFormat, error) {
	switch strings.ToUpper(pattern) {
	case "", "ISO8601":
		pattern = "yyyy-MM-dd HH:mm:ss,SSS"
	case "ABSOLUTE":
		pattern = "HH:mm:ss,SSS"
	case "DATE":
		pattern = "dd MMM yyyy HH:mm:ss,SSS"
	}
	var f dateFormat
	for i := 0; i < len(pattern); {
		c := pattern[i]
		switch {
		case c == '\'':
			text, next, ok := quoted(pattern, i)
			if !ok {
				return nil, fmt.Errorf("unterminated quote in date pattern %q", pattern)
			}
			f, i = append(f, dateField{text: text}), next
		case letter(c):
			n := 1
			for i+n < len(pattern) && pattern[i+n] == c {
				n++
			}
			if !strings.ContainsRune("GyMwWDdFEuaHkKhmsSzZX", rune(c)) {
				return nil, fmt.Errorf("illegal pattern character '%c' in %q", c, pattern)
			}
			f, i = append(f, dateField{letter: c, count: n}), i+n
		default:
			f, i = append(f, dateField{text: string(c)}), i+1
		}
	}
	return f, nil
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// quoted reads '…' from i on; two of them are one, outside and inside.
func quoted(pattern string, i int) (text string, next int, ok bool) {
	if i+1 < len(pattern) && pattern[i+1] == '\'' {
		return "'", i + 2, true
	}
	var b strings.Builder
	for i++; i < len(pattern); i++ {
		if pattern[i] != '\'' {
			b.WriteByte(pattern[i])
			continue
		}
		if i+1 == len(pattern) || pattern[i+1] != '\'' {
			return b.String(), i + 1, true
		}
		b.WriteByte('\'')
		i++
	}
	return "", 0, false
}

func (f dateFormat) append(b []byte, t time.Time) []byte {
	for _, field := range f {
		b = field.append(b, t)
	}
	return b
}

func (f dateFormat) format(t time.Time) string { return string(f.append(nil, t)) }

func (f dateField) append(b []byte, t time.Time) []byte {
	switch f.letter {
	case 0:
		return append(b, f.text...)
	case 'G':
		return append(b, "AD"...)
	case 'y':
		if f.count == 2 {
			return appendPadded(b, t.Year()%100, 2)
		}
	case 'M':
		return f.name(b, int(t.Month()), t.Month().String())
	case 'E':
		return f.word(b, t.Weekday().String())
	case 'a':
		return append(b, [...]string{"AM", "PM"}[t.Hour()/12]...)
	case 'z':
		return t.AppendFormat(b, "MST")
	case 'Z':
		return t.AppendFormat(b, "-0700")
	case 'X':
		return t.AppendFormat(b, [...]string{"Z07", "Z0700", "Z07:00"}[min(f.count, 3)-1])
	}
	return appendPadded(b, f.number(t), f.count)
}

// name is a month: a number up to two letters, else a word.
func (f dateField) name(b []byte, n int, word string) []byte {
	if f.count <= 2 {
		return appendPadded(b, n, f.count)
	}
	return f.word(b, word)
}

func (f dateField) word(b []byte, word string) []byte {
	if f.count <= 3 {
		word = word[:3]
	}
	return append(b, word...)
}

func (f dateField) number(t time.Time) int {
	switch f.letter {
	case 'y':
		return t.Year()
	case 'd':
		return t.Day()
	case 'D':
		return t.YearDay()
	case 'H':
		return t.Hour()
	case 'k':
		return (t.Hour()+23)%24 + 1
	case 'K':
		return t.Hour() % 12
	case 'h':
		return (t.Hour()+11)%12 + 1
	case 'm':
		return t.Minute()
	case 's':
		return t.Second()
	case 'S':
		return t.Nanosecond() / 1e6
	case 'u':
		return (int(t.Weekday())+6)%7 + 1
	case 'F':
		return (t.Day()-1)/7 + 1
	case 'w':
		return weekOf(t.YearDay(), t)
	case 'W':
		return weekOf(t.Day(), t)
	}
	panic("log4j: date letter " + string(f.letter))
}

// weekOf counts weeks that begin on Sunday, the first of them however short,
// as Java does in the United States.
func weekOf(day int, t time.Time) int {
	first := (int(t.Weekday()) - (day-1)%7 + 7) % 7 // weekday of day 1
	return (day-1+first)/7 + 1
}

func appendPadded(b []byte, n, width int) []byte {
	for limit := pow10(width - 1); limit > 1 && n < limit; limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

func pow10(n int) int {
	limit := 1
	for range min(n, 18) {
		limit *= 10
	}
	return limit
}

// cachedDate keeps the text of a second around its milliseconds: a busy log
// formats a date once a second.
type cachedDate struct {
	format        dateFormat
	before, after dateFormat
	millis        int // digits, 0: none
	cacheable     bool
	last          atomic.Pointer[secondText]
}

type secondText struct {
	unix          int64
	before, after []byte
}

func newCachedDate(f dateFormat) *cachedDate {
	c := &cachedDate{format: f, before: f, cacheable: true}
	for i, field := range f {
		if field.letter != 'S' {
			continue
		}
		if c.millis > 0 {
			c.cacheable = false
		}
		c.before, c.after, c.millis = f[:i], f[i+1:], field.count
	}
	return c
}

func (c *cachedDate) append(b []byte, t time.Time) []byte {
	if !c.cacheable {
		return c.format.append(b, t)
	}
	s := c.last.Load()
	if s == nil || s.unix != t.Unix() {
		s = &secondText{t.Unix(), c.before.append(nil, t), c.after.append(nil, t)}
		c.last.Store(s)
	}
	b = append(b, s.before...)
	if c.millis > 0 {
		b = appendPadded(b, t.Nanosecond()/1e6, c.millis)
	}
	return append(b, s.after...)
}
