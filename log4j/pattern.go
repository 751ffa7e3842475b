package log4j

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// conversion is one % of a pattern.
type conversion func(b []byte, e *event) []byte

// newPattern compiles a PatternLayout's ConversionPattern:
// %[-][min][.max]c with c{n} C{n} d{format} F l L m M n p r t x X{key} %.
// complain is told what log4j would say; the rest of the pattern still holds.
func newPattern(pattern string, h *Hierarchy) layout {
	p := patternParser{text: pattern, hierarchy: h}
	conversions := p.parse()
	return func(b []byte, e *event) []byte {
		for _, c := range conversions {
			b = c(b, e)
		}
		return b
	}
}

type patternParser struct {
	text      string
	at        int
	hierarchy *Hierarchy
	out       []conversion
	literal   []byte
}

func (p *patternParser) parse() []conversion {
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c != '%' || p.at == len(p.text): // the last character is always itself
			p.literal = append(p.literal, c)
		case p.text[p.at] == '%':
			p.at++
			p.literal = append(p.literal, '%')
		case p.text[p.at] == 'n':
			p.at++
			p.literal = append(p.literal, '\n')
		default:
			p.conversion(p.at - 1)
		}
	}
	p.flush()
	return p.out
}

func (p *patternParser) flush() {
	if len(p.literal) == 0 {
		return
	}
	text := p.literal
	p.literal = nil
	p.out = append(p.out, func(b []byte, _ *event) []byte { return append(b, text...) })
}

// conversion reads what stands behind the % at start.
func (p *patternParser) conversion(start int) {
	w := width{max: -1}
	if p.peek() == '-' {
		w.left = true
		p.at++
	}
	w.min, _ = p.number()
	if p.peek() == '.' {
		p.at++
		n, ok := p.number()
		if !ok {
			p.hierarchy.complain("ERROR", "Error occured in position %d.\n Was expecting digit, instead got char \"%c\".", p.at+1, p.peek())
			p.literal = append(p.literal, p.text[start:p.at]...)
			return
		}
		w.max = n
	}
	if p.at == len(p.text) {
		p.literal = append(p.literal, p.text[start:]...)
		return
	}
	char := p.text[p.at]
	p.at++
	c := p.named(char, p.option())
	if c == nil {
		p.hierarchy.complain("ERROR", "Unexpected char [%c] at position %d in conversion patterrn.", char, p.at)
		p.literal = append(p.literal, p.text[start:p.at]...)
		return
	}
	p.flush()
	p.out = append(p.out, w.around(c))
}

func (p *patternParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *patternParser) number() (n int, ok bool) {
	const widthMax = 1 << 12
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		n, ok = min(n*10+int(c-'0'), widthMax), true
		p.at++
	}
	return n, ok
}

// option is what stands in {} behind the character.
func (p *patternParser) option() string {
	if p.peek() != '{' {
		return ""
	}
	end := strings.IndexByte(p.text[p.at:], '}')
	if end < 0 {
		return ""
	}
	option := p.text[p.at+1 : p.at+end]
	p.at += end + 1
	return option
}

// named is the conversion of a character, nil where there is none.
func (p *patternParser) named(char byte, option string) conversion {
	switch char {
	case 'c':
		n := p.precision(option)
		return func(b []byte, e *event) []byte { return append(b, lastParts(e.logger, n)...) }
	case 'd':
		return p.date(option)
	case 'm':
		return func(b []byte, e *event) []byte { return e.appendMessage(b) }
	case 'p':
		return func(b []byte, e *event) []byte { return append(b, LevelName(e.level)...) }
	case 'r':
		start := p.hierarchy.start
		return func(b []byte, e *event) []byte { return strconv.AppendInt(b, e.time.Sub(start).Milliseconds(), 10) }
	case 't':
		return func(b []byte, e *event) []byte { return append(b, e.diagnostic.threadName()...) }
	case 'x':
		return func(b []byte, e *event) []byte { return append(b, e.diagnostic.nestedText()...) }
	case 'X':
		if option == "" {
			return appendMapped
		}
		return func(b []byte, e *event) []byte { return append(b, e.diagnostic.mappedValue(option)...) }
	}
	return p.location(char, option)
}

// location is a conversion that asks where in the source the line is.
func (p *patternParser) location(char byte, option string) conversion {
	n := 0
	if char == 'C' {
		n = p.precision(option)
	}
	part := map[byte]func(b []byte, f source) []byte{
		'C': func(b []byte, f source) []byte { return append(b, lastParts(f.class, n)...) },
		'F': func(b []byte, f source) []byte { return append(b, f.file...) },
		'L': func(b []byte, f source) []byte { return strconv.AppendInt(b, int64(f.line), 10) },
		'M': func(b []byte, f source) []byte { return append(b, f.method...) },
		'l': func(b []byte, f source) []byte {
			b = append(append(append(b, f.class...), '.'), f.method...)
			b = append(append(append(b, '('), f.file...), ':')
			return append(strconv.AppendInt(b, int64(f.line), 10), ')')
		},
	}[char]
	if part == nil {
		return nil
	}
	return func(b []byte, e *event) []byte { return part(b, sourceOf(e.record.PC)) }
}

// source is a place in the code; a Go package stands for the class.
type source struct {
	class, method, file string
	line                int
}

func sourceOf(pc uintptr) source {
	if pc == 0 {
		return source{"?", "?", "?", 0}
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	s := source{line: frame.Line, file: frame.File[strings.LastIndexByte(frame.File, '/')+1:]}
	slash := strings.LastIndexByte(frame.Function, '/') + 1
	s.class, s.method, _ = strings.Cut(frame.Function[slash:], ".")
	s.class = strings.ReplaceAll(frame.Function[:slash], "/", ".") + s.class
	return s
}

// precision reads n of %c{n}: 0 is the whole name.
func (p *patternParser) precision(option string) int {
	if option == "" {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(option))
	switch {
	case err != nil:
		p.hierarchy.complain("ERROR", "Category option \"%s\" not a decimal integer.", option)
	case n <= 0:
		p.hierarchy.complain("ERROR", "Precision option (%s) isn't a positive integer.", option)
	default:
		return n
	}
	return 0
}

// lastParts keeps the n parts of a dotted name that are rightmost.
func lastParts(name string, n int) string {
	if n <= 0 {
		return name
	}
	end := len(name)
	for ; n > 0; n-- {
		end = strings.LastIndexByte(name[:end], '.')
		if end < 0 {
			return name
		}
	}
	return name[end+1:]
}

// appendMapped is %X without a key: {{k,v}{k2,v2}}.
func appendMapped(b []byte, e *event) []byte {
	b = append(b, '{')
	if e.diagnostic != nil {
		keys := make([]string, 0, len(e.diagnostic.mapped))
		for k := range e.diagnostic.mapped {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			b = append(b, '{')
			b = append(b, k...)
			b = append(b, ',')
			b = append(b, e.diagnostic.mapped[k]...)
			b = append(b, '}')
		}
	}
	return append(b, '}')
}

// date is %d{format}; what no format knows is ISO8601.
func (p *patternParser) date(option string) conversion {
	format, err := newDateFormat(option)
	if err != nil {
		p.hierarchy.complain("ERROR", "Could not instantiate SimpleDateFormat with %s", option)
		format, _ = newDateFormat("")
	}
	cached := newCachedDate(format)
	return func(b []byte, e *event) []byte { return cached.append(b, e.time.In(time.Local)) }
}

// width bounds what a conversion writes: longer is cut in front, shorter is
// filled with blanks.
type width struct {
	left     bool
	min, max int // max -1: none
}

func (w width) around(c conversion) conversion {
	if w.min == 0 && w.max < 0 {
		return c
	}
	return func(b []byte, e *event) []byte {
		start := len(b)
		b = c(b, e)
		n := utf8.RuneCount(b[start:])
		switch {
		case w.max >= 0 && n > w.max:
			cut := start
			for ; n > w.max; n-- {
				_, size := utf8.DecodeRune(b[cut:])
				cut += size
			}
			return append(b[:start], b[cut:]...)
		case n < w.min && w.left:
			return append(b, strings.Repeat(" ", w.min-n)...)
		case n < w.min:
			return slices.Insert(b, start, []byte(strings.Repeat(" ", w.min-n))...)
		}
		return b
	}
}

// simple is SimpleLayout.
func simple(b []byte, e *event) []byte {
	b = append(b, LevelName(e.level)...)
	b = append(b, " - "...)
	return append(e.appendMessage(b), '\n')
}
