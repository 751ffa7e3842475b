package log4j

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Handler is the slog.Handler of one logger. Attributes follow the message as
// key=value; those of a group are group.key=value.
type Handler struct {
	hierarchy *Hierarchy
	node      *node
	attrs     []byte // of With, as they will be written
	group     string // of WithGroup, with its dot
}

var _ slog.Handler = (*Handler)(nil)

// Enabled is the whole cost of a line that is not logged.
func (h *Handler) Enabled(_ context.Context, l slog.Level) bool {
	return int64(l) >= h.node.enabled.Load()
}

// Handle gives a line to the appenders of its logger. It returns no error:
// what cannot be written is counted by the appender.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	route := *h.node.route.Load()
	if len(route) == 0 {
		h.warnNone()
		return nil
	}
	e := events.Get().(*event)
	*e = event{logger: h.node.name, level: r.Level, time: r.Time, record: r, handler: h, buffer: e.buffer}
	if e.time.IsZero() {
		e.time = time.Now()
	}
	if d, ok := ctx.Value(diagnosticKey{}).(*diagnostic); ok {
		e.diagnostic = d
	}
	for _, a := range route {
		a.append(e)
	}
	e.record, e.diagnostic, e.handler = slog.Record{}, nil, nil
	events.Put(e)
	return nil
}

// WithAttrs formats the attributes once for all lines to come.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append([]byte(nil), h.attrs...)
	for _, a := range attrs {
		next.attrs = appendAttr(next.attrs, h.group, a)
	}
	return &next
}

// WithGroup puts name before the keys of what comes.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.group += name + "."
	return &next
}

func (h *Handler) warnNone() {
	if h.hierarchy.warnedNone.Swap(true) {
		return
	}
	h.hierarchy.complain("WARN", "No appenders could be found for logger (%s).", h.node.name)
	h.hierarchy.complain("WARN", "Please initialize the log4j system properly.")
	h.hierarchy.complain("WARN", "See http://logging.apache.org/log4j/1.2/faq.html#noconfig for more info.")
}

// event is one line on its way through the appenders.
type event struct {
	logger     string
	level      Level
	time       time.Time
	record     slog.Record
	handler    *Handler
	diagnostic *diagnostic // of the context; nil: none
	buffer     []byte      // for the formatted line
}

var events = sync.Pool{New: func() any { return &event{buffer: make([]byte, 0, 256)} }}

// appendMessage is %m: the message and the attributes.
func (e *event) appendMessage(b []byte) []byte {
	b = append(b, e.record.Message...)
	b = append(b, e.handler.attrs...)
	e.record.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, e.handler.group, a)
		return true
	})
	return b
}

// diagnostic is what a context says of who logs: %t, %x and %X.
type diagnostic struct {
	thread string
	nested []string          // NDC, outermost first
	mapped map[string]string // MDC
}

type diagnosticKey struct{}

func diagnosticOf(ctx context.Context) diagnostic {
	if d, ok := ctx.Value(diagnosticKey{}).(*diagnostic); ok {
		return *d
	}
	return diagnostic{}
}

// WithThread names the worker that logs, %t; "main" where nobody did.
func WithThread(ctx context.Context, name string) context.Context {
	d := diagnosticOf(ctx)
	d.thread = name
	return context.WithValue(ctx, diagnosticKey{}, &d)
}

// WithNested adds to the nested diagnostic context, %x.
func WithNested(ctx context.Context, text string) context.Context {
	d := diagnosticOf(ctx)
	d.nested = append(d.nested[:len(d.nested):len(d.nested)], text)
	return context.WithValue(ctx, diagnosticKey{}, &d)
}

// WithMapped sets one entry of the mapped diagnostic context, %X{key}.
func WithMapped(ctx context.Context, key, value string) context.Context {
	d := diagnosticOf(ctx)
	mapped := make(map[string]string, len(d.mapped)+1)
	for k, v := range d.mapped {
		mapped[k] = v
	}
	mapped[key] = value
	d.mapped = mapped
	return context.WithValue(ctx, diagnosticKey{}, &d)
}

func (d *diagnostic) threadName() string {
	if d == nil || d.thread == "" {
		return "main"
	}
	return d.thread
}

func (d *diagnostic) nestedText() string {
	if d == nil {
		return ""
	}
	return strings.Join(d.nested, " ")
}

func (d *diagnostic) mappedValue(key string) string {
	if d == nil {
		return ""
	}
	return d.mapped[key]
}
