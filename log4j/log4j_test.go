package log4j

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// buffer is a console for tests.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// configured is a hierarchy with text applied, its stdout and its stderr.
func configured(t testing.TB, text string) (h *Hierarchy, out, errs *buffer) {
	t.Helper()
	out, errs = &buffer{}, &buffer{}
	h = New(out, errs)
	h.Configure([]byte(text), map[string]string{"kafka.logs.dir": t.TempDir()})
	t.Cleanup(func() { h.Close(time.Second) })
	return h, out, errs
}

func flush(t testing.TB, h *Hierarchy) {
	t.Helper()
	if !h.Flush(5 * time.Second) {
		t.Fatal("lines are not written after 5 s")
	}
}

const toStdout = `
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=`

// The answers are those of the real log4j (reload4j 1.2.22), but for the
// attributes, which it has not, and for Go's names of functions.
func TestPatternsWriteWhatLog4jWrites(t *testing.T) {
	ctx := WithMapped(WithNested(WithNested(t.Context(), "n1"), "n2"), "connector.context", "[c|task-0] ")
	ctx = WithThread(ctx, "worker-3")
	const controller = "org.apache.kafka.controller.QuorumController"
	for _, c := range []struct{ pattern, want, errs string }{
		{"[%5p][%-5p]", "[ INFO][INFO ]", ""},
		{"[%.2p][%.10c]", "[FO][Controller]", ""},
		{"[%c{1}][%c{2}][%c{9}]", "[QuorumController][controller.QuorumController][" + controller + "]", ""},
		{"[%-30.5c]", "[oller]", ""},
		{"[%20.30c]", "[ka.controller.QuorumController]", ""},
		{"[%x] [%X{connector.context}] [%X{nokey}] [%5X{nokey}] [%X]", "[n1 n2] [[c|task-0] ] [] [     ] [{{connector.context,[c|task-0] }}]", ""},
		{"%m %% x%", "msg k=v % x%", ""},
		{"%t", "worker-3", ""},
		{"%q%m", "%qmsg k=v", "log4j:ERROR Unexpected char [q] at position 2 in conversion patterrn.\n"},
		{"%.p%m", "%.pmsg k=v", "log4j:ERROR Error occured in position 3.\n Was expecting digit, instead got char \"p\".\n"},
		{"%c{0} %c{x}", controller + " " + controller, "log4j:ERROR Precision option (0) isn't a positive integer.\nlog4j:ERROR Category option \"x\" not a decimal integer.\n"},
		{"%F:%L %M", "log4j_test.go:LINE TestPatternsWriteWhatLog4jWrites", ""},
		{"%d{yyyy 'at'}", time.Now().Format("2006") + " at", ""},
		{"[%3m]", "[msg k=v]", ""},
		{"[%-12m]", "[msg k=v     ]", ""},
	} {
		h, out, errs := configured(t, "log4j.rootLogger=INFO,A"+toStdout+c.pattern)
		h.Logger(controller).InfoContext(ctx, "msg", "k", "v")
		flush(t, h)
		got := regexp.MustCompile(`(go:)\d+`).ReplaceAllString(out.String(), "${1}LINE")
		if got != c.want || errs.String() != c.errs {
			t.Errorf("%s: got %q, errors %q; want %q, %q", c.pattern, got, errs, c.want, c.errs)
		}
	}
}

func TestLevelsOfFilesAreReadAsLog4jReadsThem(t *testing.T) {
	for value, want := range map[string]Level{
		"FOO": Debug, " info ,A": Info, "INFO, ,A,": Info, ", A": Debug, "${p1},A": Info, "${nope}warn": Warn,
		"ALL": All, "off": Off, "FATAL#x.Y": Fatal, "5000": Trace, "inherited": Debug,
	} {
		h, _, _ := configured(t, "p1=${p2}\np2=INFO\nlog4j.rootLogger="+value+toStdout+"%m")
		if got, _ := h.Level(RootName); got != want {
			t.Errorf("%q: got %s, want %s", value, LevelName(got), LevelName(want))
		}
	}
}

func TestBlankBetweenCommasIsANameAndNothingIsNot(t *testing.T) {
	for value, want := range map[string]string{
		"INFO,,A": "", "INFO,A,": "",
		"INFO, ,A": "log4j:ERROR Could not find value for key log4j.appender.\nlog4j:ERROR Could not instantiate appender named \"\".\n",
	} {
		_, _, errs := configured(t, "log4j.rootLogger="+value+toStdout+"%m")
		if errs.String() != want {
			t.Errorf("%s: got %q, want %q", value, errs, want)
		}
	}
}

func TestLinesGoUpPastAncestorsLevels(t *testing.T) {
	h, out, _ := configured(t, `
log4j.rootLogger=ERROR, A
log4j.logger.a.b=DEBUG, B
log4j.logger.alone=INFO, B
log4j.additivity.alone=false
log4j.additivity.a=false
log4j.appender.B=org.apache.log4j.ConsoleAppender
log4j.appender.B.Threshold=INFO
log4j.appender.B.layout=org.apache.log4j.PatternLayout
log4j.appender.B.layout.ConversionPattern=B:%c:%m%n`+toStdout+"A:%c:%m%n")
	h.Logger("a.b.c").Debug("one")
	h.Logger("a.b.c").Info("two")
	h.Logger("a").Info("not logged")
	h.Logger("alone.x").Info("three")
	h.Logger("ab").Error("four")
	flush(t, h)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	got := map[string]bool{}
	for _, l := range lines {
		got[l] = true
	}
	want := []string{"A:a.b.c:one", "A:a.b.c:two", "B:a.b.c:two", "B:alone.x:three", "A:ab:four"}
	if len(lines) != len(want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	for _, w := range want {
		if !got[w] {
			t.Errorf("no %q in %q", w, lines)
		}
	}
}

func TestLevelsChangeAtRunTime(t *testing.T) {
	h, out, _ := configured(t, "log4j.rootLogger=INFO,A"+toStdout+"%m ")
	log := h.Logger("kafka.server.KafkaApis")
	log.Debug("1")
	h.SetLevel("kafka", Debug)
	log.Debug("2")
	if l, exists := h.Level("kafka.server.KafkaApis"); l != Debug || !exists {
		t.Errorf("got %s %v", LevelName(l), exists)
	}
	if l, exists := h.Level("kafka.other"); l != Debug || exists {
		t.Errorf("a logger nobody asked for: got %s %v", LevelName(l), exists)
	}
	if err := h.InheritLevel("kafka"); err != nil {
		t.Fatal(err)
	}
	log.Debug("3")
	h.SetLevel(RootName, Off)
	log.Error("4")
	if err := h.InheritLevel(RootName); err == nil {
		t.Error("the root logger gave its level away")
	}
	flush(t, h)
	if got := out.String(); got != "2 " {
		t.Errorf("got %q, want only 2", got)
	}
	if got := fmt.Sprint(h.Loggers()); got != fmt.Sprint([]LoggerLevel{{"kafka", Off}, {"kafka.server.KafkaApis", Off}, {"root", Off}}) {
		t.Errorf("loggers: %s", got)
	}
}

func TestWrongFilesAreToldAndTheRestHolds(t *testing.T) {
	dir := t.TempDir()
	h, out, errs := configured(t, `
log4j.rootLogger=INFO, missing, other, nofile, A
log4j.appender.other=org.example.Appender
log4j.appender.nofile=org.apache.log4j.FileAppender
log4j.appender.nofile.layout=org.apache.log4j.SimpleLayout
log4j.appender.A.bogus=1
log4j.appender.A.ImmediateFlush=maybe
log4j.appender.A.Target=System.nowhere
log4j.appender.A.filter.1=org.apache.log4j.varia.DenyAllFilter
log4j.logger.x=${broken
`+toStdout+"%m")
	h.ConfigureFile(dir+"/none.properties", nil)
	h.Logger("x").Info("goes on")
	flush(t, h)
	if out.String() != "goes on" {
		t.Errorf("got %q", out)
	}
	want := `log4j:ERROR Could not find value for key log4j.appender.missing
log4j:ERROR Could not instantiate appender named "missing".
log4j:ERROR Could not instantiate class [org.example.Appender].
log4j:ERROR Could not instantiate appender named "other".
log4j:WARN File option not set for appender [nofile].
log4j:WARN Are you using FileAppender instead of ConsoleAppender?
log4j:WARN [System.nowhere] should be System.out or System.err.
log4j:WARN Using previously set target, System.out by default.
log4j:WARN Failed to set property [immediateFlush] to value "maybe". 
log4j:WARN No such property [bogus] in org.apache.log4j.ConsoleAppender.
log4j:ERROR Bad option value [${broken].
`
	for _, line := range strings.SplitAfter(want, "\n") {
		if !strings.Contains(errs.String(), line) {
			t.Errorf("no %q in\n%s", line, errs)
		}
	}
	if !strings.Contains(errs.String(), "Ignoring configuration file [") {
		t.Errorf("a missing file is not told: %s", errs)
	}
}

func TestNoAppenderIsToldOnce(t *testing.T) {
	errs := &buffer{}
	h := New(nil, errs)
	h.Logger("a").Info("x")
	h.Logger("b").Info("y")
	if got := strings.Count(errs.String(), "No appenders could be found for logger (a)."); got != 1 || strings.Count(errs.String(), "\n") != 3 {
		t.Errorf("got %s", errs)
	}
}

func TestAttributesFollowTheMessage(t *testing.T) {
	h, out, _ := configured(t, "log4j.rootLogger=INFO,A"+toStdout+"%m%n")
	log := h.Logger("x").With("broker", 1).WithGroup("req").With("api", "Produce")
	log.Warn("refused", "n", int64(7), "err", errors.New("no such topic"), "d", 1500*time.Millisecond, "empty", "", "odd", "a\nb",
		slog.Group("g", "f", 0.5, "b", true), "at", time.Unix(0, 0).UTC())
	flush(t, h)
	want := `refused broker=1 req.api=Produce req.n=7 req.err="no such topic" req.d=1.5s req.empty="" req.odd="a\nb" req.g.f=0.5 req.g.b=true req.at=1970-01-01T00:00:00.000Z` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out, want)
	}
}

func TestConfiguringAgainReplacesAppenders(t *testing.T) {
	h, out, _ := configured(t, "log4j.rootLogger=INFO,A\nlog4j.logger.x=DEBUG"+toStdout+"1:%m ")
	h.Configure([]byte("log4j.rootLogger=INFO,A"+toStdout+"2:%m "), nil)
	h.Logger("x").Debug("kept")
	h.Configure([]byte("log4j.reset=true\nlog4j.rootLogger=INFO,A"+toStdout+"3:%m "), nil)
	h.Logger("x").Debug("not")
	h.Logger("x").Info("new")
	flush(t, h)
	if got := out.String(); got != "2:kept 3:new " {
		t.Errorf("got %q", got)
	}
}

func TestCirclesOfVariablesEnd(t *testing.T) {
	_, _, errs := configured(t, "a=${b}\nb=${a}\nlog4j.rootLogger=${a}")
	if !strings.Contains(errs.String(), "goes round in a circle") {
		t.Errorf("got %s", errs)
	}
}

func fileLogger(t testing.TB, class, options string) (h *Hierarchy, path string, errs *buffer) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "logs", "x.log")
	h, _, errs = configured(t, "log4j.rootLogger=INFO,F\nlog4j.appender.F=org.apache.log4j."+class+"\nlog4j.appender.F.File="+path+
		"\nlog4j.appender.F.layout=org.apache.log4j.PatternLayout\nlog4j.appender.F.layout.ConversionPattern=%m%n\n"+options)
	return h, path, errs
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return "(none)"
	}
	return string(text)
}

func TestRollsAfterTheLineThatFillsTheFile(t *testing.T) {
	h, path, errs := fileLogger(t, "RollingFileAppender", "log4j.appender.F.MaxFileSize=10\nlog4j.appender.F.MaxBackupIndex=2\n")
	for i := range 9 {
		h.Logger("x").Info(fmt.Sprintf("line%d", i)) // 6 bytes with its end: two a file
	}
	flush(t, h)
	for suffix, want := range map[string]string{"": "line8\n", ".1": "line6\nline7\n", ".2": "line4\nline5\n", ".3": "(none)"} {
		if got := content(t, path+suffix); got != want {
			t.Errorf("x.log%s: got %q, want %q", suffix, got, want)
		}
	}
	if errs.String() != "" {
		t.Errorf("stderr: %s", errs)
	}
}

func TestNoBackupMeansTruncate(t *testing.T) {
	h, path, _ := fileLogger(t, "RollingFileAppender", "log4j.appender.F.MaxFileSize=10\nlog4j.appender.F.MaxBackupIndex=0\n")
	for i := range 3 {
		h.Logger("x").Info(fmt.Sprintf("line%d", i))
	}
	flush(t, h)
	if got := content(t, path); got != "line2\n" {
		t.Errorf("got %q", got)
	}
	if got := content(t, path+".1"); got != "(none)" {
		t.Errorf("x.log.1: got %q", got)
	}
}

// logAt logs a line as of a time.
func logAt(h *Hierarchy, at time.Time, msg string) {
	r := slog.NewRecord(at, Info, msg, 0)
	_ = h.Handler("x").Handle(context.Background(), r)
}

func TestDatedFilesRollOnTheFirstLineOfAPeriod(t *testing.T) {
	h, path, errs := fileLogger(t, "DailyRollingFileAppender", "log4j.appender.F.DatePattern='.'yyyy-MM-dd-HH\n")
	today := time.Now()
	day := func(n int) time.Time { return time.Date(today.Year()+1, 3, n, 12, 30, 0, 0, time.Local) }
	logAt(h, today, "now")
	logAt(h, day(1), "a")
	logAt(h, day(1).Add(20*time.Minute), "b")
	logAt(h, day(2), "c")
	flush(t, h)
	for suffix, want := range map[string]string{"": "c\n", day(1).Format(".2006-01-02-15"): "a\nb\n", today.Format(".2006-01-02-15"): "now\n"} {
		if got := content(t, path+suffix); got != want {
			t.Errorf("x.log%s: got %q, want %q", suffix, got, want)
		}
	}
	if errs.String() != "" {
		t.Errorf("stderr: %s", errs)
	}
}

func TestPeriodsOfPatterns(t *testing.T) {
	for pattern, want := range map[string]period{
		"'.'yyyy-MM-dd-HH-mm": minutely, "'.'yyyy-MM-dd-HH": hourly, "'.'yyyy-MM-dd-a": halfDaily, ".yyyy-MM-dd": daily, "'.'yyyy-ww": weekly, "'.'yyyy-MM": monthly,
	} {
		f, err := newDateFormat(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := periodOf(f); !ok || got != want {
			t.Errorf("%s: got %d %v, want %d", pattern, got, ok, want)
		}
	}
	if f, _ := newDateFormat("'x'"); true {
		if _, ok := periodOf(f); ok {
			t.Error("a constant has a period")
		}
	}
}

func TestDatesAreWrittenAsJavaWritesThem(t *testing.T) {
	at := time.Date(1994, 11, 6, 8, 9, 7, 45e6, time.UTC)
	for pattern, want := range map[string]string{
		"": "1994-11-06 08:09:07,045", "ABSOLUTE": "08:09:07,045", "DATE": "06 Nov 1994 08:09:07,045",
		"yy/M/d h:mm a": "94/11/6 8:09 AM", "EEE, MMMM d": "Sun, November 6", "EEEE": "Sunday", "HH:mm:ss.SSSZ": "08:09:07.045+0000",
		"yyyy-MM-dd'T'HH:mm:ssXXX": "1994-11-06T08:09:07Z", "k K D u F w W": "8 8 310 7 1 46 2", "o''clock": "", "h 'o''clock'": "8 o'clock", "S SS": "45 45",
	} {
		f, err := newDateFormat(pattern)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", pattern, err)
			}
			continue
		}
		if got := f.format(at); got != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
		if got := string(newCachedDate(f).append(nil, at)); got != want {
			t.Errorf("%s, cached: got %q, want %q", pattern, got, want)
		}
	}
}
