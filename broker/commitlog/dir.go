package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"varve/broker/kafka"
	"varve/broker/segment"
	"varve/broker/vfs"
)

// Files bounds the open segments of a broker.
type Files = segment.Files

// NewFiles returns a Files for so many descriptors.
func NewFiles(descriptors int) *Files { return segment.NewFiles(descriptors) }

// DirOptions say who opens a log.dir.
type DirOptions struct {
	ClusterID string // "" takes the folder's
	NodeID    kafka.BrokerID
	BootID    string // of the machine's present boot; "" if there is none to be had
	Files     *Files // nil: a cache of its own
	Logger    *slog.Logger
}

// A Dir is one log.dir: the logs in it, and what Kafka keeps beside them.
//
//	.lock                               held while the Dir is open
//	meta.properties                     whose folder it is
//	recovery-point-offset-checkpoint    durable below
//	log-start-offset-checkpoint         readable from
//	replication-offset-checkpoint       high watermarks
//	.kafka_cleanshutdown                there after a clean stop only
//	.varve_cleanshutdown-<crc>          beside it: all logs in one file
//	orders-3/                           a partition
//	orders-3.<32 hex>-delete/           a deleted one, until its time is up
//	orders-3.<32 hex>-stray/            one that was set aside: for people to decide on
type Dir struct {
	fs    vfs.FS
	path  string
	opt   DirOptions
	log   *slog.Logger
	store segment.Store
	lock  io.Closer
	was   Meta // what meta.properties said before this start
	is    Meta // what it says now
	doubt bool // MayHaveLostEnd, until SettleEnds; the owner's

	clean   bool                     // the last stop was
	summary map[string]*summaryEntry // of logs that are not open yet; guarded by mu
	found   []Found

	recovery, starts, highs map[string]kafka.Offset

	changed atomic.Bool // a checkpoint is due
	writing sync.Mutex  // one checkpoint is written at a time
	failed  atomic.Pointer[dirError]

	mu struct {
		sync.Mutex
		logs   map[string]*Log // by folder
		hot    map[*Log]struct{}
		doomed []doomed
		closed bool
	}
}

type dirError struct{ error }

// doomed is a folder that goes when its time is up.
type doomed struct {
	name string
	at   int64 // ms
}

// A Kind says what a folder of a log.dir holds.
type Kind int

// The kinds of folders.
const (
	Live    Kind = iota // a partition
	Deleted             // -delete: goes by itself
	Stray               // -stray: was set aside
	Future              // -future: being moved here by a Kafka
)

// A Found is a folder of a partition.
type Found struct {
	Partition kafka.TopicPartition
	Kind      Kind
	Name      string        // of the folder
	ID        kafka.TopicID // zero where it is not known without looking: see TopicID
}

// OpenDir takes a log.dir into use, making it if need be: locks it, checks that it is
// this node's, and reads what lies beside the logs. now is in ms.
func OpenDir(fsys vfs.FS, dir string, opt DirOptions, now int64) (*Dir, error) {
	d := &Dir{fs: fsys, path: dir, opt: opt, log: opt.Logger}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if opt.Files == nil {
		opt.Files = NewFiles(512)
	}
	d.store = segment.Store{FS: fsys, Path: dir, Files: opt.Files}
	d.mu.logs, d.mu.hot = map[string]*Log{}, map[*Log]struct{}{}
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("opening log dir %s: %w", dir, err)
	}
	lock, err := fsys.Lock(path.Join(dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("opening log dir %s: %w", dir, err)
	}
	d.lock = lock
	if err := d.open(now); err != nil {
		lock.Close()
		return nil, fmt.Errorf("opening log dir %s: %w", dir, err)
	}
	return d, nil
}

func (d *Dir) open(now int64) (err error) {
	if d.was, d.is, err = claim(d.fs, d.path, d.opt); err != nil {
		return err
	}
	if err := d.readMarker(); err != nil {
		return err
	}
	if d.doubt = d.MayHaveLostEnd(); !d.doubt {
		if err := d.noteBoot(); err != nil {
			return err
		}
	}
	for file, m := range map[string]*map[string]kafka.Offset{recoveryFile: &d.recovery, startFile: &d.starts, highFile: &d.highs} {
		if *m, err = readCheckpoint(d.fs, path.Join(d.path, file)); err != nil {
			return err
		}
	}
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, ok := parseFolder(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		if s := d.summary[f.Name]; s != nil {
			f.ID = s.id
		}
		if f.Kind == Deleted {
			d.mu.doomed = append(d.mu.doomed, doomed{f.Name, now})
		}
		d.found = append(d.found, f)
	}
	return nil
}

// parseFolder reads a folder's name: topic-partition, or topic-partition.uuid-kind.
func parseFolder(name string) (Found, bool) {
	f := Found{Name: name}
	base := name
	for suffix, kind := range map[string]Kind{"-delete": Deleted, "-stray": Stray, "-future": Future} {
		rest, ok := strings.CutSuffix(name, suffix)
		if !ok {
			continue
		}
		if dot := strings.LastIndexByte(rest, '.'); dot > 0 {
			base, f.Kind = rest[:dot], kind
		}
	}
	dash := strings.LastIndexByte(base, '-')
	if dash < 1 {
		return f, false
	}
	p, err := strconv.ParseInt(base[dash+1:], 10, 32)
	if err != nil || p < 0 {
		return f, false
	}
	f.Partition = kafka.TopicPartition{Topic: base[:dash], Partition: int32(p)}
	return f, true
}

// Path is the folder.
func (d *Dir) Path() string { return d.path }

// Meta is what meta.properties said before this start.
func (d *Dir) Meta() Meta { return d.was }

// CleanStart tells whether the last stop was clean.
func (d *Dir) CleanStart() bool { return d.clean }

// MayHaveLostEnd tells whether logs may lack what the last run had written: it did not
// stop cleanly, and the machine has been started since (A7). A killed process loses
// nothing that it wrote.
func (d *Dir) MayHaveLostEnd() bool {
	used := d.was.Version != 0 || d.was.ClusterID != ""
	return used && !d.clean && (d.opt.BootID == "" || d.was.BootID != d.opt.BootID)
}

// InDoubt tells whether SettleEnds is owed. It and SettleEnds are for one goroutine.
func (d *Dir) InDoubt() bool { return d.doubt }

// SettleEnds says that everybody knows who has to know that logs may have lost their
// end. Until then the next start finds MayHaveLostEnd again, however this one stops.
func (d *Dir) SettleEnds() error {
	if !d.doubt {
		return nil
	}
	if err := d.noteBoot(); err != nil {
		return err
	}
	d.doubt = false
	return nil
}

// Partitions lists the folders of partitions that were there at start.
func (d *Dir) Partitions() []Found { return d.found }

// TopicID reads the topic id of a folder; zero if it has none.
func (d *Dir) TopicID(f Found) (kafka.TopicID, error) {
	if !f.ID.IsZero() {
		return f.ID, nil
	}
	name := path.Join(d.path, f.Name, partitionFile)
	b, err := vfs.ReadFile(d.fs, name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.Trim(b, "\x00")) == 0 {
		return kafka.TopicID{}, nil // an empty one: a power cut took what was in it
	}
	if err != nil {
		return kafka.TopicID{}, err
	}
	id, err := parsePartitionMetadata(b)
	if err != nil {
		return id, fmt.Errorf("%s: %w", name, err)
	}
	return id, nil
}

// Logs lists the open logs by folder.
func (d *Dir) Logs() []*Log {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]*Log, 0, len(d.mu.logs))
	for _, name := range slices.Sorted(maps.Keys(d.mu.logs)) {
		out = append(out, d.mu.logs[name])
	}
	return out
}

// Failed is why the folder is out of service, or nil.
func (d *Dir) Failed() error {
	if e := d.failed.Load(); e != nil {
		return e.error
	}
	return nil
}

// touch says that a checkpoint is due. Every append comes here by its high watermark:
// the line of memory that all logs share is written only when that is news.
func (d *Dir) touch() {
	if !d.changed.Load() {
		d.changed.Store(true)
	}
}

// fail takes the folder out of service.
func (d *Dir) fail(err error) error {
	if vfs.Full(err) {
		return err
	}
	if d.failed.CompareAndSwap(nil, &dirError{fmt.Errorf("log dir %s is out of service: %w", d.path, err)}) {
		d.log.Error("log dir out of service: its partitions answer KAFKA_STORAGE_ERROR; mend the disk and restart the broker",
			"dir", d.path, "error", err)
	}
	return err
}

// logFailed hears of a log's first failed write. A full disk closes the log alone;
// anything else is the disk's, and the folder goes.
func (d *Dir) logFailed(l *Log, e *StorageError) {
	then := "the folder goes out of service"
	switch full := vfs.Full(e.Err); {
	case full && healable[e.Op]:
		then = "the log goes on by itself once there is room"
	case full:
		then = "make room and restart the broker"
	}
	d.log.Error("log takes no more appends after a failed write", "partition", l.tp.String(), "error", e, "then", then)
	d.fail(e)
}

// warm enters a log that is being written. Where too many are, one that was idle for
// long is brought to rest.
func (d *Dir) warm(l *Log) {
	d.mu.Lock()
	d.mu.hot[l] = struct{}{}
	var others []*Log
	if d.store.Files.Crowded() {
		for o := range d.mu.hot { // in no order: a sample
			if o != l && len(others) < crowdSample {
				others = append(others, o)
			}
		}
	}
	d.mu.Unlock()
	coolIdlest(others)
}

// crowdSample is among how many logs the idlest is looked for.
const crowdSample = 16

// coolIdlest brings the log to rest that was appended to the longest ago, of those that
// nobody has at hand.
func coolIdlest(logs []*Log) {
	var idlest *Log
	for _, o := range logs {
		switch {
		case !o.mu.TryLock():
			continue
		case o.hot == nil, idlest != nil && o.hot.touched >= idlest.hot.touched:
			o.mu.Unlock()
			continue
		case idlest != nil:
			idlest.mu.Unlock()
		}
		idlest = o
	}
	if idlest != nil {
		idlest.coolLocked()
		idlest.mu.Unlock()
	}
}

func (d *Dir) cooled(l *Log) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.hot, l)
}
