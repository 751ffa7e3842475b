package log4j

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// console is ConsoleAppender's target.
type console struct{ to io.Writer }

func (c console) write(text []byte, lines []line) (int, error) {
	if _, err := c.to.Write(text); err != nil {
		return len(lines), err
	}
	return 0, nil
}

func (console) close() error { return nil }

// file is FileAppender's target, and its heirs' with a roller. The file stays
// open; where it could not be opened, each write tries again.
type file struct {
	path   string
	append bool // keep what is there
	roller roller
	f      *os.File
	size   int64
	opened bool // once, so that a later open does not truncate
}

// roller decides when a file is put aside and does it.
type roller interface {
	// cut is how many lines go into the file before it rolls; ok is false where
	// it need not.
	cut(f *file, lines []line, start int) (n int, ok bool)
	// roll puts the closed file aside. Where it fails, logging goes on in it.
	roll(f *file) error
}

// open opens the file, making its folder.
func (t *file) open() error {
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !t.append && !t.opened {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(t.path, mode, 0o644)
	if os.IsNotExist(err) {
		if os.MkdirAll(filepath.Dir(t.path), 0o755) == nil {
			f, err = os.OpenFile(t.path, mode, 0o644)
		}
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	t.f, t.size, t.opened = f, info.Size(), true
	return nil
}

func (t *file) write(text []byte, lines []line) (lost int, err error) {
	start := 0 // of what is not written, in text
	for len(lines) > 0 {
		n, roll := len(lines), false
		if t.roller != nil && t.f != nil {
			n, roll = t.roller.cut(t, lines, start)
		}
		if n > 0 {
			end := lines[n-1].end
			if e := t.put(text[start:end]); e != nil {
				lost, err = lost+n, e
			}
			start, lines = end, lines[n:]
		}
		if roll {
			if e := t.rollOver(); e != nil && err == nil {
				err = e
			}
		}
	}
	return lost, err
}

func (t *file) put(text []byte) error {
	if t.f == nil {
		if err := t.open(); err != nil {
			return err
		}
	}
	n, err := t.f.Write(text)
	t.size += int64(n)
	return err
}

func (t *file) rollOver() error {
	if err := t.close(); err != nil {
		return err
	}
	err := t.roller.roll(t)
	if e := t.open(); e != nil {
		return e
	}
	return err
}

func (t *file) close() error {
	if t.f == nil {
		return nil
	}
	f := t.f
	t.f = nil
	return f.Close()
}

// bySize is RollingFileAppender's: after the line that makes the file sizeMax
// long, file becomes file.1, .1 becomes .2, the last one goes.
type bySize struct {
	sizeMax    int64
	backups    int
	next       int64 // size at which to try again after a failed roll
	nextOfSize bool
}

func (r *bySize) cut(f *file, lines []line, start int) (int, bool) {
	limit := r.sizeMax
	if r.nextOfSize {
		limit = r.next
	}
	for i, l := range lines {
		if f.size+int64(l.end-start) >= limit {
			return i + 1, true
		}
	}
	return len(lines), false
}

func (r *bySize) roll(f *file) error {
	r.nextOfSize = false
	if r.backups == 0 {
		return os.Truncate(f.path, 0)
	}
	name := func(i int) string { return f.path + "." + strconv.Itoa(i) }
	err := removeOld(name(r.backups))
	for i := r.backups - 1; i >= 1 && err == nil; i-- {
		if err = os.Rename(name(i), name(i+1)); os.IsNotExist(err) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(f.path, name(1))
	}
	if err != nil {
		r.next, r.nextOfSize = f.size+r.sizeMax, true
		return fmt.Errorf("rolling %s: %w", f.path, err)
	}
	return nil
}

func removeOld(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// byDate is DailyRollingFileAppender's: before the first line of a new period,
// file becomes file + the date of the period that ended.
type byDate struct {
	format dateFormat
	period period
	name   string    // what the file will be called, "": not known yet
	next   time.Time // when the period ends
	at     time.Time // of the line that begins the next one
}

func (r *byDate) cut(f *file, lines []line, start int) (int, bool) {
	if r.name == "" {
		info, err := f.f.Stat()
		if err != nil {
			return len(lines), false
		}
		r.begin(f, info.ModTime())
	}
	for i, l := range lines {
		if at := time.UnixMilli(l.milli); !at.Before(r.next) {
			name := f.path + r.format.format(at)
			if name == r.name { // the pattern is coarser than the period
				r.next = r.period.end(at)
				continue
			}
			r.at = at
			return i, true
		}
	}
	return len(lines), false
}

func (r *byDate) begin(f *file, at time.Time) {
	r.name = f.path + r.format.format(at)
	r.next = r.period.end(at)
}

func (r *byDate) roll(f *file) error {
	name := r.name
	r.begin(f, r.at)
	err := removeOld(name)
	if err == nil {
		err = os.Rename(f.path, name)
	}
	if err != nil {
		return fmt.Errorf("rolling %s: %w", f.path, err)
	}
	return nil
}
