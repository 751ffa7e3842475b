package log4j

import (
	"io"
	"strings"
	"testing"
	"time"
)

func FuzzConfigure(f *testing.F) {
	f.Add("%d{yy''MM} %-5.3c{2} %X{a", "'.'yyyy-ww", "INFO, A, B")
	f.Add("%", "", ",${a}")
	f.Fuzz(func(t *testing.T, pattern, date, root string) {
		h := New(io.Discard, io.Discard)
		defer h.Close(time.Second)
		clean := strings.NewReplacer("\n", "", "\r", "", "\\", "")
		h.Configure([]byte("log4j.rootLogger="+clean.Replace(root)+"\na=${b}\nb=${a}"+toStdout+clean.Replace(pattern)+"%d{"+clean.Replace(date)+"}"), nil)
		h.Logger("x.y").Error("m", "k", pattern)
		if l, exists := h.Level("x.y"); !exists || LevelName(l) == "" {
			t.Fatal("no level")
		}
		if format, err := newDateFormat(date); err == nil {
			periodOf(format)
		}
	})
}
