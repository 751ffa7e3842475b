package site

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// fileMax bounds a file, 16 MiB: real ones have some kilobytes.
const fileMax = 16 << 20

// includeMax bounds how deep files include each other.
const includeMax = 16

// AddFile reads one more resource. A missing file is an error that
// os.IsNotExist knows.
func (c *Configuration) AddFile(path string) error {
	return c.addFile(path, nil)
}

func (c *Configuration) addFile(path string, including []string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > fileMax {
		return fmt.Errorf("error parsing conf %s: %d bytes, more than %d", path, info.Size(), fileMax)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return c.add(path, text, including)
}

// AddText reads one more resource from memory; name is for messages, and
// where includes are relative to.
func (c *Configuration) AddText(name string, text []byte) error {
	return c.add(name, text, nil)
}

// add parses the whole before it sets anything.
func (c *Configuration) add(path string, text []byte, including []string) error {
	r := reader{path: path, decoder: xml.NewDecoder(bytes.NewReader(text))}
	r.decoder.CharsetReader = charset
	items, err := r.document()
	if err != nil {
		line, _ := r.decoder.InputPos()
		reason := err.Error()
		if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
			line, reason = syntax.Line, syntax.Msg
		}
		return fmt.Errorf("error parsing conf %s: line %d: %s", path, line, reason)
	}
	for _, item := range items {
		if item.include == nil {
			c.put(item.name, item.property, false)
			continue
		}
		if err := c.include(*item.include, path, including); err != nil {
			return err
		}
	}
	return nil
}

// fetchFail is how Hadoop begins the message.
const fetchFail = "Fetch fail on include for"

// include is an <xi:include>.
type include struct {
	href     string
	fallback []item // nil: none
	line     int
}

func (c *Configuration) include(in include, path string, including []string) error {
	target := strings.TrimPrefix(in.href, "file://")
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	chain := append(slices.Clone(including), path)
	if slices.Contains(chain, target) || len(chain) > includeMax {
		return fmt.Errorf("error parsing conf %s: line %d: files include each other: %s", path, in.line, strings.Join(append(chain, target), " → "))
	}
	err := c.addFile(target, chain)
	switch {
	case err == nil || !os.IsNotExist(err):
		return err
	case in.fallback == nil:
		return fmt.Errorf("%s '%s' with no fallback while loading '%s'", fetchFail, in.href, path)
	}
	for _, item := range in.fallback {
		if item.include != nil {
			if err := c.include(*item.include, path, including); err != nil {
				return err
			}
			continue
		}
		c.put(item.name, item.property, false)
	}
	return nil
}

// item is a property or an include, in the order of the file.
type item struct {
	name string
	property
	include *include
}

type reader struct {
	path    string
	decoder *xml.Decoder
}

// document reads <configuration>…</configuration>.
func (r *reader) document() ([]item, error) {
	for {
		token, err := r.decoder.Token()
		switch {
		case err == io.EOF:
			return nil, fmt.Errorf("no <configuration> element")
		case err != nil:
			return nil, err
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "configuration" {
			return nil, fmt.Errorf("bad conf file: top-level element not <configuration> but <%s>", start.Name.Local)
		}
		items, err := r.items()
		if err != nil {
			return nil, err
		}
		return items, r.rest()
	}
}

// rest reads what follows the top element: comments and blanks.
func (r *reader) rest() error {
	for {
		token, err := r.decoder.Token()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			return fmt.Errorf("<%s> after the end of the document", t.Name.Local)
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return fmt.Errorf("text after the end of the document")
			}
		}
	}
}

// items reads up to the end of the element it is in. Unknown elements are
// walked through, as in Hadoop; an inner <configuration> is one of them.
func (r *reader) items() ([]item, error) {
	items := []item{}
	for {
		line, _ := r.decoder.InputPos()
		token, err := r.decoder.Token()
		if err != nil {
			return nil, unclosed(err)
		}
		switch t := token.(type) {
		case xml.EndElement:
			return items, nil
		case xml.StartElement:
			more, err := r.element(t, line)
			if err != nil {
				return nil, err
			}
			items = append(items, more...)
		}
	}
}

func (r *reader) element(start xml.StartElement, line int) ([]item, error) {
	switch start.Name.Local {
	case "property":
		p, err := r.property(start, line)
		if err != nil || p.name == "" {
			return nil, err
		}
		return []item{p}, nil
	case "include":
		in := include{href: strings.TrimSpace(attribute(start, "href")), line: line}
		if in.href == "" {
			return nil, fmt.Errorf("<include> without href")
		}
		fallback, err := r.fallback()
		in.fallback = fallback
		return []item{{include: &in}}, err
	}
	return r.items()
}

// fallback reads an include's body; nil where it has no <fallback>.
func (r *reader) fallback() ([]item, error) {
	var fallback []item
	for {
		token, err := r.decoder.Token()
		if err != nil {
			return nil, unclosed(err)
		}
		switch t := token.(type) {
		case xml.EndElement:
			return fallback, nil
		case xml.StartElement:
			inner, err := r.items()
			if err != nil {
				return nil, err
			}
			if t.Name.Local == "fallback" {
				fallback = inner
			}
		}
	}
}

// property reads <property>, whose parts are elements or attributes. One
// without a value, or with an empty <value>, is left out: its name is "".
func (r *reader) property(start xml.StartElement, line int) (item, error) {
	p := item{name: attribute(start, "name"), property: property{origin: Origin{r.path, line}, final: attribute(start, "final") == "true"}}
	value, hasValue := "", false
	for _, a := range start.Attr {
		if a.Name.Local == "value" {
			value, hasValue = a.Value, true
		}
	}
	for {
		token, err := r.decoder.Token()
		if err != nil {
			return item{}, unclosed(err)
		}
		switch t := token.(type) {
		case xml.EndElement:
			if p.name = strings.TrimSpace(p.name); !hasValue {
				p.name = ""
			}
			p.value = value
			return p, nil
		case xml.StartElement:
			text, err := r.text()
			if err != nil {
				return item{}, err
			}
			switch t.Name.Local {
			case "name":
				p.name = text
			case "value":
				value, hasValue = text, text != ""
			case "final":
				p.final = text == "true"
			}
		}
	}
}

// text is the characters of an element and of those within it.
func (r *reader) text() (string, error) {
	var b strings.Builder
	for depth := 1; ; {
		token, err := r.decoder.Token()
		if err != nil {
			return "", unclosed(err)
		}
		switch t := token.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			depth++
		case xml.EndElement:
			if depth--; depth == 0 {
				return b.String(), nil
			}
		}
	}
}

func unclosed(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// charset reads the encodings that the decoder does not know and files have.
func charset(label string, in io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "us-ascii", "ascii", "utf8":
		return in, nil
	case "iso-8859-1", "latin1", "iso-8859-15", "windows-1252":
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		wide := make([]byte, 0, len(text)+len(text)/8)
		for _, b := range text {
			wide = utf8.AppendRune(wide, rune(b))
		}
		return bytes.NewReader(wide), nil
	}
	return nil, fmt.Errorf("encoding %s is not read; save the file as UTF-8", label)
}
