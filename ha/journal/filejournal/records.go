package filejournal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path"

	"varve/broker/kafka"
	"varve/broker/vfs"
	"varve/ha/journal"
)

const (
	openReadWrite = os.O_RDWR

	fileMagic  = "VARVEJNL"
	version    = 1
	fileHeader = 64
	// recordHeader is the edit's header and its checksum.
	recordHeader = journal.HeaderSize + 4
	align        = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A recordFile is one file of edits: what is known of it in memory.
type recordFile struct {
	name   string
	first  journal.Number
	before [32]byte // hash of the edit before first
	at     []uint32 // position of each edit; kept readers' copies stay valid when it grows
	tail   int64    // where the next record goes
	size   int64
	last   [32]byte // hash of the last edit, before while there is none
	epoch  kafka.ControllerEpoch
}

// next is the number that the file's next edit has.
func (f *recordFile) next() journal.Number { return f.first + journal.Number(len(f.at)) }

// encodeFileHeader is the header of a file that begins with edit first.
func encodeFileHeader(first journal.Number, before [32]byte) []byte {
	b := append(make([]byte, 0, fileHeader), fileMagic...)
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(first))
	b = append(b, before[:]...)
	b = append(b, make([]byte, fileHeader-len(b))...)
	binary.BigEndian.PutUint32(b[12:], crc32.Checksum(b[16:], castagnoli))
	return b
}

// appendRecord appends edit e, whose predecessor hashes to previous, and returns e's
// hash.
func appendRecord(dst []byte, e journal.Edit, previous [32]byte) ([]byte, [32]byte) {
	at := len(dst)
	dst = journal.AppendHeader(dst, e, crc32.Checksum(e.Payload, castagnoli), previous)
	head := dst[at:]
	hash := journal.HashHeader(head)
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(head, castagnoli))
	dst = append(dst, e.Payload...)
	for len(dst)%align != at%align {
		dst = append(dst, 0)
	}
	return dst, hash
}

// parseRecord reads the record at the front of b; ok is false for anything else than a
// whole and valid one. The payload aliases b.
func parseRecord(b []byte) (e journal.Edit, previous [32]byte, n int, ok bool) {
	if len(b) < recordHeader {
		return e, previous, 0, false
	}
	head := b[:journal.HeaderSize]
	length := int(binary.BigEndian.Uint32(head[28:]))
	if length > journal.MaxPayload || recordHeader+length > len(b) {
		return e, previous, 0, false
	}
	if crc32.Checksum(head, castagnoli) != binary.BigEndian.Uint32(b[journal.HeaderSize:]) {
		return e, previous, 0, false
	}
	payload := b[recordHeader : recordHeader+length]
	if crc32.Checksum(payload, castagnoli) != binary.BigEndian.Uint32(head[32:]) {
		return e, previous, 0, false
	}
	e = journal.Edit{
		N:     journal.Number(binary.BigEndian.Uint64(head)),
		ID:    journal.EditID{Writer: binary.BigEndian.Uint64(head[8:]), Count: binary.BigEndian.Uint64(head[16:])},
		Epoch: kafka.ControllerEpoch(binary.BigEndian.Uint32(head[24:])), Hash: journal.HashHeader(head), Payload: payload,
	}
	copy(previous[:], head[36:])
	return e, previous, min(len(b), (recordHeader+length+align-1)/align*align), true
}

// openRecords reads a record file whole and proves it. In the last file a torn record
// ends the log and is wiped.
func (j *Journal) openRecords(first journal.Number, last bool) (*recordFile, error) {
	name := j.path("edits-", first, ".log")
	b, err := vfs.ReadFile(j.fs, name)
	if err != nil {
		return nil, err
	}
	f, err := scan(name, first, b)
	if err != nil {
		return nil, err
	}
	rest := b[f.tail:]
	if len(bytes.Trim(rest, "\x00")) == 0 {
		return f, nil
	}
	if !last {
		return nil, fmt.Errorf("%w: %s: no valid edit at offset %d, but a later file follows", journal.ErrDamaged, name, f.tail)
	}
	if at, e, found := laterRecord(rest, f.next()); found {
		return nil, fmt.Errorf("%w: %s: no valid edit %d at offset %d, but edit %d at offset %d",
			journal.ErrDamaged, name, f.next(), f.tail, e.N, f.tail+int64(at))
	}
	j.log.Warn("the last edit was torn and is cut", "file", name, "offset", f.tail, "edit", f.next())
	return f, j.wipe(f)
}

// scan reads records from the front of b for as long as they are valid and next in
// number and chain.
func scan(name string, first journal.Number, b []byte) (*recordFile, error) {
	if len(b) < fileHeader || string(b[:8]) != fileMagic || crc32.Checksum(b[16:fileHeader], castagnoli) != binary.BigEndian.Uint32(b[12:]) ||
		journal.Number(binary.BigEndian.Uint64(b[16:])) != first {
		return nil, fmt.Errorf("%w: %s: the file's header is not what was written", journal.ErrDamaged, name)
	}
	if v := binary.BigEndian.Uint32(b[8:]); v != version {
		return nil, fmt.Errorf("%s has version %d of the format, this varve knows %d", name, v, version)
	}
	f := &recordFile{name: name, first: first, tail: fileHeader, size: int64(len(b))}
	copy(f.before[:], b[24:])
	f.last = f.before
	for {
		e, previous, n, ok := parseRecord(b[f.tail:])
		if !ok || e.N != f.next() {
			return f, nil
		}
		if previous != f.last || e.Epoch < f.epoch {
			return nil, fmt.Errorf("%w: %s: edit %d at offset %d does not continue the edit before it", journal.ErrDamaged, name, e.N, f.tail)
		}
		f.add(e, int64(n))
	}
}

// add counts e, which takes n bytes at the tail.
func (f *recordFile) add(e journal.Edit, n int64) {
	f.at = append(f.at, uint32(f.tail))
	f.tail += n
	f.last, f.epoch = e.Hash, e.Epoch
}

// laterRecord looks for a valid record of a number above n in what follows a bad one.
func laterRecord(b []byte, n journal.Number) (at int, e journal.Edit, found bool) {
	for at := 0; at+recordHeader <= len(b); at += align {
		if journal.Number(binary.BigEndian.Uint64(b[at:])) <= n {
			continue
		}
		if e, _, _, ok := parseRecord(b[at:]); ok {
			return at, e, true
		}
	}
	return 0, e, false
}

// wipe overwrites what a torn append left with zeros, durably.
func (j *Journal) wipe(f *recordFile) error {
	w, err := j.fs.OpenFile(f.name, openReadWrite, 0o644)
	if err != nil {
		return err
	}
	_, err = w.WriteAt(make([]byte, f.size-f.tail), f.tail)
	if err == nil {
		err = w.Sync()
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("wiping a torn edit of %s at offset %d: %w", f.name, f.tail, err)
	}
	return nil
}

// read returns edits from n on, at most max bytes of payload or, with one set, at
// least one edit; full says that more are here.
func (f *recordFile) read(fsys vfs.FS, n journal.Number, max int, one bool) (out []journal.Edit, full bool, err error) {
	r, err := fsys.Open(f.name)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	for i := int(n - f.first); i < len(f.at); i++ {
		end := f.tail
		if i+1 < len(f.at) {
			end = int64(f.at[i+1])
		}
		b := make([]byte, end-int64(f.at[i]))
		if _, err := r.ReadAt(b, int64(f.at[i])); err != nil {
			return nil, false, fmt.Errorf("reading edit %d of %s: %w", f.first+journal.Number(i), f.name, err)
		}
		e, _, _, ok := parseRecord(b)
		if !ok || e.N != f.first+journal.Number(i) {
			return nil, false, fmt.Errorf("%w: %s: edit %d at offset %d", journal.ErrDamaged, f.name, f.first+journal.Number(i), f.at[i])
		}
		if len(e.Payload) > max && !(one && len(out) == 0) {
			return out, true, nil
		}
		max -= len(e.Payload)
		out = append(out, e)
	}
	return out, false, nil
}

// createRecords makes the file of edits from first on and opens it: full of zeros,
// synced, renamed, its folder synced.
func (j *Journal) createRecords(first journal.Number, before [32]byte, least int64) (*recordFile, vfs.File, error) {
	f := &recordFile{
		name: j.path("edits-", first, ".log"), first: first, before: before, last: before,
		tail: fileHeader, size: max(j.size, fileHeader+least),
	}
	b := make([]byte, f.size)
	copy(b, encodeFileHeader(first, before))
	if err := vfs.WriteFile(j.fs, f.name, b, true); err != nil {
		return nil, nil, fmt.Errorf("making %s: %w", path.Base(f.name), err)
	}
	w, err := j.fs.OpenFile(f.name, openReadWrite, 0o644)
	return f, w, err
}
