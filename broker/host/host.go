// Package host keeps the partitions of this broker: it opens the log folders at start,
// follows the cluster image from then on, and looks after everything once a second.
//
//	image ─► topics made, grown, deleted, configs changed ─► partitions opened, led, resigned, deleted
//	tick  ─► sweep of the log folders; checkpoints; retention
//
// It acts on an image only from the edit on that registers this broker's present epoch
// (A5, A10): before that, what looks stray may only be unknown yet.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/partition"
	"varve/broker/vfs"
	"varve/tier/archive"
)

// Options say whose partitions these are.
type Options struct {
	FS        vfs.FS
	Dirs      []string // log.dirs
	ClusterID string
	Broker    kafka.BrokerID
	BootID    string
	Files     int // descriptors for log files
	Log       *slog.Logger
	// Settings are what a topic's own configs mean; equal maps may share a result.
	Settings func(name string, own map[string]string) *partition.Settings
	// CheckpointEvery is log.flush.offset.checkpoint.interval.ms, RetentionEvery
	// log.retention.check.interval.ms.
	CheckpointEvery, RetentionEvery time.Duration
	// Checkpointed is told that checkpoints were written, or will be now by Close; by one
	// goroutine at a time.
	Checkpointed func()
	// Forget is told that nothing of a deleted topic is left in the tier (T14).
	Forget func(id kafka.TopicID)
}

// A Host is the partitions of one broker.
type Host struct {
	opt  Options
	tier *archive.Archive // nil without a tier
	dirs []*commitlog.Dir
	log  *slog.Logger
	end  context.CancelFunc
	wg   sync.WaitGroup
	beat pulse
	home homes

	missing []error         // of folders that could not be opened
	follow  sync.Mutex      // one change of partitions at a time; held over their opening
	image   *metadata.Image // the last that was followed; under follow

	mu struct {
		sync.RWMutex
		topics map[string]*topic
		byID   map[kafka.TopicID]*topic
	}
	removing map[kafka.TopicID]bool // from the tier; under follow
}

// A topic is the partitions of one topic that are here. Immutable but for growth,
// which replaces it.
type topic struct {
	name  string
	id    kafka.TopicID
	parts []*partition.Partition // by number; nil is not here
	down  map[int32]bool         // of those that should be here and could not be opened
}

// Open takes the log folders into use. One that fails is left out of service, as long
// as there is another.
func Open(opt Options, now time.Time) (*Host, error) {
	h := &Host{opt: opt, log: opt.Log, removing: map[kafka.TopicID]bool{}}
	h.mu.topics, h.mu.byID = map[string]*topic{}, map[kafka.TopicID]*topic{}
	files := commitlog.NewFiles(opt.Files)
	var failed []error
	for _, dir := range opt.Dirs {
		d, err := commitlog.OpenDir(opt.FS, dir, commitlog.DirOptions{ClusterID: opt.ClusterID, NodeID: opt.Broker, BootID: opt.BootID,
			Files: files, Logger: opt.Log}, now.UnixMilli())
		if err != nil {
			failed = append(failed, err)
			continue
		}
		h.dirs = append(h.dirs, d)
		h.home.found(d)
	}
	if foreign := errors.Join(failed...); len(h.dirs) == 0 || isForeign(foreign) {
		for _, d := range h.dirs {
			d.Abandon()
		}
		return nil, foreign
	}
	h.missing = failed
	for _, err := range failed {
		h.log.Error("a log dir is out of service; the others serve", "err", err)
	}
	return h, nil
}

// isForeign tells a folder that belongs to somebody else, which is no disk's fault:
// the broker must not start.
func isForeign(err error) bool {
	var foreign *commitlog.ForeignError
	return errors.As(err, &foreign)
}

// Attach gives the host its tier, before the first Follow.
func (h *Host) Attach(tier *archive.Archive) { h.tier = tier }

// ClusterID is what the folders say; "" if they are new.
func (h *Host) ClusterID() string {
	for _, d := range h.dirs {
		if id := d.Meta().ClusterID; id != "" {
			return id
		}
	}
	return ""
}

// MayHaveLostEnd tells whether a log may lack what the last run wrote (A7).
func (h *Host) MayHaveLostEnd() bool {
	for _, d := range h.dirs {
		if d.MayHaveLostEnd() {
			return true
		}
	}
	return false
}

// CheckStrays looks for folders of partitions that the image does not know. Where the
// folders have not seen this history of metadata before, more than half of them strays
// is refused: more likely it is the wrong image (A10). Else their topics were deleted,
// and the broker was killed before their folders went.
func (h *Host) CheckStrays(image *metadata.Image, seen bool) error {
	live, stray := 0, 0
	var example string
	for _, d := range h.dirs {
		for _, f := range d.Partitions() {
			if f.Kind != commitlog.Live {
				continue
			}
			live++
			if _, ok := image.Partition(f.Partition); !ok {
				stray, example = stray+1, filepath.Join(d.Path(), f.Name)
			}
		}
	}
	switch {
	case stray*2 > live && !seen:
		return fmt.Errorf("%d of the %d partitions in the log dirs are not in the cluster's metadata (such as %s): "+
			"the metadata is another cluster's or older than the logs; nothing was changed", stray, live, example)
	case stray > 0:
		h.log.Warn("some folders are of topics that are no more: look at them and delete them", "folders", stray, "such as", example)
	}
	return nil
}

// Find is a partition of this broker. The code is UNKNOWN_TOPIC_OR_PARTITION where
// there is none, KAFKA_STORAGE_ERROR where it is out of service. topic may alias a
// request.
func (h *Host) Find(topic string, p int32) (*partition.Partition, kafka.Code) {
	h.mu.RLock()
	t := h.mu.topics[topic]
	h.mu.RUnlock()
	return t.find(p, kafka.UnknownTopicOrPartition)
}

// FindID is Find by topic id; the code is UNKNOWN_TOPIC_ID where no topic has it.
func (h *Host) FindID(id kafka.TopicID, p int32) (*partition.Partition, kafka.Code) {
	h.mu.RLock()
	t := h.mu.byID[id]
	h.mu.RUnlock()
	return t.find(p, kafka.UnknownTopicID)
}

func (t *topic) find(p int32, unknown kafka.Code) (*partition.Partition, kafka.Code) {
	if t == nil {
		return nil, unknown
	}
	switch {
	case p < 0 || int(p) >= len(t.parts):
		return nil, kafka.UnknownTopicOrPartition
	case t.down[p]:
		return nil, kafka.KafkaStorageError
	case t.parts[p] == nil:
		return nil, kafka.UnknownTopicOrPartition
	}
	return t.parts[p], kafka.None
}

// Partitions lists all that are here.
func (h *Host) Partitions() []*partition.Partition {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var out []*partition.Partition
	for _, t := range h.mu.topics {
		for _, p := range t.parts {
			if p != nil {
				out = append(out, p)
			}
		}
	}
	return out
}

// Dirs are the log folders in service, and those that failed since.
func (h *Host) Dirs() []*commitlog.Dir { return h.dirs }

// Health is nil, or what of the disks is out of service.
func (h *Host) Health() error {
	errs := []error{h.outOfService()}
	for _, t := range h.broken() {
		errs = append(errs, fmt.Errorf("%d partitions of topic %s are out of service: see the broker's log", len(t.down), t.name))
	}
	for _, p := range h.Partitions() {
		if err := p.Log().Failed(); err != nil && p.Log().Dir().Failed() == nil {
			errs = append(errs, fmt.Errorf("%v takes no appends: %w", p.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// Abandon lets the folders go without a word, as a crash would: for a start that failed.
func (h *Host) Abandon() {
	for _, d := range h.dirs {
		d.Abandon()
	}
}

// Close resigns from everything, closes the logs durably and marks the stop as clean.
func (h *Host) Close(ctx context.Context, epoch kafka.BrokerEpoch) error {
	if h.end != nil {
		h.end()
		h.wg.Wait()
		h.settleEnds()
		h.opt.Checkpointed() // closing writes them
	}
	for _, p := range h.Partitions() {
		p.Resign()
	}
	var errs []error
	for _, d := range h.dirs {
		errs = append(errs, d.CloseClean(ctx, int64(epoch)))
	}
	return errors.Join(errs...)
}
