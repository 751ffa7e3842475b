// Package properties reads Java properties files and keeps what Java's own
// reader throws away: the line of every entry, and the entries that a later
// one of the same key replaces.
//
//	# comment          ! comment too
//	key = value        the separator is = or : or a blank, once
//	list = one, \
//	       two         a backslash at the end joins the next line, less its indent
//	path = C:\\logs    \t \n \r \f \uXXXX; any other \x is x
//
// A line that is not UTF-8 is read as ISO-8859-1, the only encoding that Java
// knows here; "café" means the same in a new file and in an old one.
//
// The splitting into lines is ours, because github.com/magiconair/properties
// reports none and breaks a joined line of a file with CRLF ends; what is
// inside a line is that library's.
package properties

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/magiconair/properties"
)

// Entry is one key and its value as they stand in a file.
type Entry struct {
	Line  int // of the key, from 1
	Key   string
	Value string // escapes resolved, ${} untouched, blanks at the end kept as Java keeps them
}

// Error is a line that cannot be read.
type Error struct {
	Line   int
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// lineMax bounds a joined line, 1 MiB: no list of servers is longer, and a
// file that is no properties file at all is refused early.
const lineMax = 1 << 20

// Parse reads text. It returns every entry in the order of the file and every
// line that it had to leave out.
func Parse(text []byte) ([]Entry, []*Error) {
	var (
		entries []Entry
		faults  []*Error
		lines   = lines{rest: bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))}
	)
	for {
		line, number, ok := lines.next()
		if !ok {
			return entries, faults
		}
		e, err := parseLine(line, number)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		entries = append(entries, e)
	}
}

// Map is the entries as Java sees them: the last one of a key counts.
func Map(entries []Entry) map[string]string {
	m := make(map[string]string, len(entries))
	for _, e := range entries {
		m[e.Key] = e.Value
	}
	return m
}

// parseLine reads one joined line, which holds an entry.
func parseLine(line []byte, number int) (Entry, *Error) {
	if len(line) > lineMax {
		return Entry{}, &Error{number, fmt.Sprintf("%d bytes in one entry, more than %d", len(line), lineMax)}
	}
	if c := line[0]; c == '=' || c == ':' {
		return Entry{}, &Error{number, "a value without a key"}
	}
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	if !utf8.Valid(line) {
		loader.Encoding = properties.ISO_8859_1
	}
	p, err := loader.LoadBytes(line)
	if err != nil {
		return Entry{}, &Error{number, reason(err)}
	}
	keys := p.Keys()
	if len(keys) != 1 {
		return Entry{}, &Error{number, fmt.Sprintf("%d keys in one entry", len(keys))}
	}
	value, _ := p.Get(keys[0])
	return Entry{Line: number, Key: keys[0], Value: value}, nil
}

// reason is the library's message without its own line number, which is that
// of the joined line and always 1.
func reason(err error) string {
	const prefix = "properties: Line 1: "
	if msg := err.Error(); len(msg) > len(prefix) && msg[:len(prefix)] == prefix {
		return msg[len(prefix):]
	}
	return err.Error()
}
