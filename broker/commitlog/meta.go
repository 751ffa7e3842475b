package commitlog

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/magiconair/properties"

	"varve/broker/kafka"
	"varve/broker/vfs"
)

const metaFile = "meta.properties"

// bootKey is ours, beside Kafka's keys: the boot of the machine in which the folder was
// used last and its logs were known to be whole (A7).
const bootKey = "varve.boot.id"

// Meta is what meta.properties says: whose folder this is.
//
//	version 0   broker.id, cluster.id
//	version 1   node.id, cluster.id, directory.id
type Meta struct {
	Version     int
	ClusterID   string
	NodeID      kafka.BrokerID
	DirectoryID string // 22 characters of base64url; "" in version 0
	BootID      string
}

// A ForeignError says that a folder belongs to another cluster or node.
type ForeignError struct{ File, Key, Got, Want string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s says %s=%s, and this is %s: the folder belongs to another; give this node a folder of its own, or its own %s",
		e.File, e.Key, e.Got, e.Want, e.Key)
}

// readMeta reads the file; ok is false if there is none.
func readMeta(fsys vfs.FS, dir string) (m Meta, ok bool, err error) {
	name := path.Join(dir, metaFile)
	b, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	m, err = parseMeta(b)
	if err != nil {
		return m, false, fmt.Errorf("%s: %w", name, err)
	}
	return m, true, nil
}

func parseMeta(b []byte) (Meta, error) {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	p, err := loader.LoadBytes(b)
	if err != nil {
		return Meta{}, err
	}
	m := Meta{NodeID: kafka.NoBroker, ClusterID: p.GetString("cluster.id", ""), BootID: p.GetString(bootKey, "")}
	if m.Version, err = strconv.Atoi(p.GetString("version", "")); err != nil || m.Version < 0 || m.Version > 1 {
		return m, fmt.Errorf("version is %q, want 0 or 1", p.GetString("version", ""))
	}
	key := "broker.id"
	if m.Version == 1 {
		key = "node.id"
		m.DirectoryID = p.GetString("directory.id", "")
	}
	if s, ok := p.Get(key); ok {
		id, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return m, fmt.Errorf("%s is %q, want a number", key, s)
		}
		m.NodeID = kafka.BrokerID(id)
	} else if m.Version == 1 {
		return m, fmt.Errorf("%s is missing", key)
	}
	return m, nil
}

// claim checks that the folder is ours and makes it so. was is what the file said, is
// what it says now: the boot of the last run still, which is for noteBoot to replace.
func claim(fsys vfs.FS, dir string, opt DirOptions) (was, is Meta, err error) {
	name := path.Join(dir, metaFile)
	m, ok, err := readMeta(fsys, dir)
	if err != nil {
		return m, m, err
	}
	was = m
	if ok && m.ClusterID != "" && opt.ClusterID != "" && m.ClusterID != opt.ClusterID {
		return m, m, &ForeignError{name, "cluster.id", m.ClusterID, opt.ClusterID}
	}
	if ok && m.NodeID != kafka.NoBroker && m.NodeID != opt.NodeID {
		return m, m, &ForeignError{name, "node.id", fmt.Sprint(m.NodeID), fmt.Sprint(opt.NodeID)}
	}
	if !ok || m.ClusterID == "" {
		m.ClusterID = opt.ClusterID
	}
	m.Version, m.NodeID = 1, opt.NodeID
	if !ok {
		m.BootID = opt.BootID
	}
	if m.DirectoryID == "" {
		m.DirectoryID = newUUID()
	}
	if ok && m == was {
		return was, m, nil
	}
	return was, m, vfs.WriteFile(fsys, name, m.encode(), true)
}

// noteBoot brings the present boot into the file.
func (d *Dir) noteBoot() error {
	m := d.is
	m.BootID = d.opt.BootID
	if m == d.is {
		return nil
	}
	if err := vfs.WriteFile(d.fs, path.Join(d.path, metaFile), m.encode(), true); err != nil {
		return fmt.Errorf("noting the machine's boot in %s: %w", path.Join(d.path, metaFile), err)
	}
	d.is = m
	return nil
}

func (m Meta) encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "#\nversion=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n", m.ClusterID, m.NodeID, m.DirectoryID)
	if m.BootID != "" {
		fmt.Fprintf(&b, "%s=%s\n", bootKey, m.BootID)
	}
	return []byte(b.String())
}

// newUUID is a random id as Kafka prints it, never beginning with '-' (a tool would
// take it for an option).
func newUUID() string {
	for {
		var b [16]byte
		rand.Read(b[:])
		if s := base64.RawURLEncoding.EncodeToString(b[:]); s[0] != '-' {
			return s
		}
	}
}

const partitionFile = "partition.metadata"

func encodePartitionMetadata(id kafka.TopicID) []byte {
	return fmt.Appendf(nil, "version: 0\ntopic_id: %v", id)
}

// parsePartitionMetadata reads a partition.metadata.
func parsePartitionMetadata(b []byte) (kafka.TopicID, error) {
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "topic_id:"); ok {
			return kafka.ParseTopicID(strings.TrimSpace(v))
		}
	}
	return kafka.TopicID{}, fmt.Errorf("has no topic_id")
}
