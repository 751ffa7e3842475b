package log4j

// appender is one log4j.appender.NAME: a threshold, a layout, a writer.
type appender struct {
	name      string
	class     string // without its package
	threshold Level
	layout    layout
	out       *writer
}

// layout turns an event into a line.
type layout func(b []byte, e *event) []byte

func (a *appender) append(e *event) {
	if e.level < a.threshold {
		return
	}
	e.buffer = a.layout(e.buffer[:0], e)
	a.out.append(e.buffer, e.time)
}

// null is NullAppender's target.
type null struct{}

func (null) write([]byte, []line) (int, error) { return 0, nil }
func (null) close() error                      { return nil }
