package properties

import "bytes"

// lines walks a file by joined lines: comments and blank lines left out, a
// line that ends in an odd number of backslashes joined with the next one.
type lines struct {
	rest []byte
	seen int // natural lines taken so far
}

const blanks = " \t\f"

// next returns the next entry's text, never empty, and the number of its
// first line.
func (l *lines) next() (text []byte, number int, ok bool) {
	for len(l.rest) > 0 {
		line := bytes.TrimLeft(l.natural(), blanks)
		if len(line) == 0 || line[0] == '#' || line[0] == '!' {
			continue
		}
		number = l.seen
		if text = l.join(line); len(text) > 0 {
			return text, number, true
		}
	}
	return nil, 0, false
}

// natural takes one line without its end: \n, \r or \r\n.
func (l *lines) natural() []byte {
	l.seen++
	i := bytes.IndexAny(l.rest, "\r\n")
	if i < 0 {
		line := l.rest
		l.rest = nil
		return line
	}
	line, after := l.rest[:i], l.rest[i+1:]
	if l.rest[i] == '\r' && len(after) > 0 && after[0] == '\n' {
		after = after[1:]
	}
	l.rest = after
	return line
}

// join appends the lines that line continues into. A backslash at the end of
// the file joins nothing and is dropped, as Java drops it.
func (l *lines) join(line []byte) []byte {
	if !continues(line) {
		return line
	}
	joined := bytes.Clone(line[:len(line)-1])
	for len(l.rest) > 0 {
		more := bytes.TrimLeft(l.natural(), blanks)
		if !continues(more) {
			return append(joined, more...)
		}
		joined = append(joined, more[:len(more)-1]...)
	}
	return joined
}

func continues(line []byte) bool {
	trailing := len(line) - len(bytes.TrimRight(line, `\`))
	return trailing%2 == 1
}
