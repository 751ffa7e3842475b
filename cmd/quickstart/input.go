package quickstart

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// sample is a NameNode's log of some minutes with seven users and seven tables.
//
//go:embed namenode.log.gz
var sample []byte

// lineMax is the longest record; a longer line is several, which join to it again.
const lineMax = 512 << 10

// An input is the file to take through.
type input struct {
	name string
	size int64 // bytes; 0 where it is not known
	r    *bufio.Reader
	c    io.Closer
}

// open opens the file named, stdin for "-", and the sample for "".
func open(name string) (*input, error) {
	switch name {
	case "":
		z, err := gzip.NewReader(bytes.NewReader(sample))
		if err != nil {
			return nil, fmt.Errorf("opening the sample: %w", err)
		}
		return &input{name: "namenode.log (ships with Varve)", size: sampleSize(), r: reader(z), c: z}, nil
	case "-":
		return &input{name: "stdin", r: reader(os.Stdin), c: io.NopCloser(nil)}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder: name a file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &input{name: name, size: info.Size(), r: reader(f), c: f}, nil
}

func reader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, lineMax) }

// sampleSize is the last four bytes of a gzip file: the size of what is in it.
func sampleSize() int64 {
	b := sample[len(sample)-4:]
	return int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16 | int64(b[3])<<24
}

// next is the next record: a line with its newline, or as much of it as a record may
// hold. It is good until the next call; io.EOF ends.
func (in *input) next() ([]byte, error) {
	line, err := in.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return line, nil
	case errors.Is(err, io.EOF) && len(line) > 0:
		return line, nil
	}
	return line, err
}

// Close closes the file.
func (in *input) Close() error { return in.c.Close() }

// A tally is what passed by: records, bytes, and the SHA-256 of the bytes in order.
type tally struct {
	lines int64
	bytes int64
	hash  hash.Hash
}

func (t *tally) add(value []byte) {
	if t.hash == nil {
		t.hash = sha256.New()
	}
	t.lines++
	t.bytes += int64(len(value))
	t.hash.Write(value)
}

func (t *tally) sum() string {
	if t.hash == nil {
		t.hash = sha256.New()
	}
	return hex.EncodeToString(t.hash.Sum(nil))
}

// compare tells how another tally differs from what was sent.
func (t *tally) compare(got *tally) error {
	switch {
	case got.lines != t.lines:
		return fmt.Errorf("%d records came back, %d were sent", got.lines, t.lines)
	case got.bytes != t.bytes:
		return fmt.Errorf("%d bytes came back, %d were sent", got.bytes, t.bytes)
	case got.sum() != t.sum():
		return fmt.Errorf("the bytes differ: SHA-256 %s came back, %s was sent", got.sum(), t.sum())
	}
	return nil
}
