package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"strings"

	"varve/broker/kafka"
	"varve/broker/segment"
	"varve/broker/vfs"
)

const (
	markerFile    = ".kafka_cleanshutdown"
	summaryPrefix = ".varve_cleanshutdown-"
	summaryMagic  = "varvelogs1"
)

// A summaryEntry is one log in the summary of a clean stop:
//
//	"varvelogs1" | marker's modification time, ns i64 | logs u32 |
//	per log:  name length u16, name | topic id 16 | log start i64 | local start i64 |
//	          end i64 | high watermark i64 | transactions u8 | segments u32 |
//	  per segment:  base i64 | next i64 | size i64 | max timestamp i64
//
// The file's name ends with the CRC32C of its contents. It belongs to the marker of
// that modification time: one that a Kafka wrote later makes it void.
type summaryEntry struct {
	name            string
	id              kafka.TopicID
	logStart, local kafka.Offset
	end, high       kafka.Offset
	txns            int32
	segs            []segment.Facts
}

// readMarker sees whether the last stop was clean, reads the summary, and takes both
// away: what happens from now on is not clean until it is said again.
func (d *Dir) readMarker() error {
	info, err := d.fs.Stat(path.Join(d.path, markerFile))
	d.clean = err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return err
	}
	var summaries []string
	for _, e := range entries {
		sum, ok := strings.CutPrefix(e.Name(), summaryPrefix)
		if !ok {
			continue
		}
		name := path.Join(d.path, e.Name())
		summaries = append(summaries, name)
		if d.clean {
			d.readSummary(name, sum, info.ModTime().UnixNano())
		}
	}
	if d.clean { // the marker goes first, and for good
		if err := d.fs.Remove(path.Join(d.path, markerFile)); err != nil {
			return err
		}
		if err := d.fs.SyncDir(d.path); err != nil {
			return err
		}
	}
	for _, name := range summaries {
		if err := d.fs.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// readSummary takes a summary in, or says why not: the folders are listed then.
func (d *Dir) readSummary(name, sum string, marker int64) {
	b, err := vfs.ReadFile(d.fs, name)
	if err == nil && fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) != sum {
		err = errors.New("it does not match the checksum in its name")
	}
	var of int64
	var entries map[string]*summaryEntry
	if err == nil {
		of, entries, err = decodeSummary(b)
	}
	if err == nil && of != marker {
		err = errors.New("it is of another stop")
	}
	if err != nil {
		d.log.Warn("summary of the clean stop is not used, folders are listed instead", "file", name, "error", err)
		return
	}
	d.summary = entries
}

// writeMarker writes the summary and the marker of a clean stop, the marker last.
func (d *Dir) writeMarker(brokerEpoch int64) error {
	tmp := path.Join(d.path, markerFile+".tmp")
	if err := vfs.WriteFile(d.fs, tmp, fmt.Appendf(nil, `{"version":0,"brokerEpoch":%d}`, brokerEpoch), true); err != nil {
		return d.fail(err)
	}
	info, err := d.fs.Stat(tmp)
	if err != nil {
		return d.fail(err)
	}
	b := d.encodeSummary(info.ModTime().UnixNano())
	name := fmt.Sprintf("%s%08x", summaryPrefix, crc32.Checksum(b, castagnoli))
	if err := vfs.WriteFile(d.fs, path.Join(d.path, name), b, true); err != nil {
		return d.fail(err)
	}
	if err := d.fs.Rename(tmp, path.Join(d.path, markerFile)); err != nil {
		return d.fail(err)
	}
	return d.fs.SyncDir(d.path)
}

func (d *Dir) encodeSummary(marker int64) []byte {
	logs := d.Logs()
	b := binary.BigEndian.AppendUint64([]byte(summaryMagic), uint64(marker))
	b = binary.BigEndian.AppendUint32(b, uint32(len(logs)))
	put := func(vs ...int64) {
		for _, v := range vs {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
	}
	for _, l := range logs {
		v := l.View()
		b = binary.BigEndian.AppendUint16(b, uint16(len(l.home.Name)))
		b = append(append(b, l.home.Name...), l.id[:]...)
		put(int64(v.LogStart), int64(v.LocalStart), l.end.Load(), l.high.Load())
		b = append(b, byte(l.txns.Load()))
		b = binary.BigEndian.AppendUint32(b, uint32(len(v.segs)))
		for _, s := range v.segs {
			f := s.Facts()
			put(int64(f.Base), int64(f.Next), f.Size, f.MaxTimestamp)
		}
	}
	return b
}

var errSummary = errors.New("summary is malformed")

func decodeSummary(b []byte) (marker int64, entries map[string]*summaryEntry, err error) {
	if !bytes.HasPrefix(b, []byte(summaryMagic)) || len(b) < len(summaryMagic)+12 {
		return 0, nil, errSummary
	}
	b = b[len(summaryMagic):]
	marker = int64(binary.BigEndian.Uint64(b))
	n := int(binary.BigEndian.Uint32(b[8:]))
	b = b[12:]
	if n > len(b)/54 {
		return 0, nil, errSummary
	}
	entries = make(map[string]*summaryEntry, n)
	for range n {
		e := &summaryEntry{}
		if b, err = e.decode(b); err != nil {
			return 0, nil, err
		}
		entries[e.name] = e
	}
	if len(b) > 0 {
		return 0, nil, errSummary
	}
	return marker, entries, nil
}

func (s *summaryEntry) decode(b []byte) ([]byte, error) {
	if len(b) < 2 {
		return nil, errSummary
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	if len(b) < n+16+4*8+1+4 {
		return nil, errSummary
	}
	s.name = string(b[:n])
	copy(s.id[:], b[n:])
	b = b[n+16:]
	i64 := func() int64 {
		v := int64(binary.BigEndian.Uint64(b))
		b = b[8:]
		return v
	}
	s.logStart, s.local, s.end, s.high = kafka.Offset(i64()), kafka.Offset(i64()), kafka.Offset(i64()), kafka.Offset(i64())
	s.txns = int32(b[0])
	segs := int(binary.BigEndian.Uint32(b[1:]))
	b = b[5:]
	if segs > len(b)/32 {
		return nil, errSummary
	}
	s.segs = make([]segment.Facts, segs)
	for i := range s.segs {
		f := &s.segs[i]
		f.Base, f.Next, f.Size, f.MaxTimestamp = kafka.Offset(i64()), kafka.Offset(i64()), i64(), i64()
		f.TimestampSet = f.MaxTimestamp >= segment.NoTimestamp
	}
	return b, nil
}

// restore makes the log of what the summary says.
func (l *Log) restore(s *summaryEntry) {
	segs := make([]*segment.Segment, len(s.segs))
	for i, f := range s.segs {
		segs[i] = segment.New(&l.home, f)
	}
	l.publish(segs, s.logStart, s.local)
	l.end.Store(int64(s.end))
	l.synced.Store(int64(s.end))
	l.high.Store(int64(s.high))
	l.txns.Store(s.txns)
}
