package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/e2e/servers"
)

// A lake is a topic whose closed segments are in the tier.
type lake struct {
	v     *servers.Varve
	adm   *kadm.Client
	topic string
	begin time.Time // of record 0; record i is i ms later
	want  []string
	local int64 // offset from which on it lies on the broker's disk
}

// TestATieredTopicIsReadAsOneLog tells the life of one topic, step by step.
func TestATieredTopicIsReadAsOneLog(t *testing.T) {
	v := broker(t)
	l := &lake{v: v, adm: kadm.NewClient(client(t, v.Addr)), topic: "lake"}
	l.fill(t)
	l.settle(t)
	t.Run("franz-go reads it from the start", l.readByFranz)
	t.Run("kcat reads it from the start", l.readByKcat)
	t.Run("Kafka's console consumer reads it from the start", l.readByJava)
	t.Run("times inside the tier are found", l.findTimes)
	restart(t, v)
	t.Run("after a restart it reads the same", l.readByFranz)
	v.Kill()
	start(t, v)
	t.Run("after a kill it reads the same", l.readByFranz)
	t.Run("retention by size takes the oldest containers", l.retainBySize)
	t.Run("retention by time takes all of them", l.retainByTime)
	t.Run("a deleted topic leaves nothing in the tier", l.deleteTopic)
}

// fill produces some MB with timestamps a millisecond apart.
func (l *lake) fill(t *testing.T) {
	create(t, l.v, l.topic, 1, "remote.storage.enable", "true", "segment.bytes", "1048576", "local.retention.bytes", "1", "retention.ms", "-1")
	l.want = wide(l.topic, 0, 5500)
	l.begin = time.Now().Add(-time.Duration(len(l.want)) * time.Millisecond).Truncate(time.Millisecond)
	cl := client(t, l.v.Addr, append(toPartition0(), kgo.ProducerBatchCompression(kgo.NoCompression()))...)
	var records []*kgo.Record
	for i, v := range l.want {
		records = append(records, &kgo.Record{Topic: l.topic, Value: []byte(v), Timestamp: l.begin.Add(time.Duration(i) * time.Millisecond)})
	}
	if err := cl.ProduceSync(within(t), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// settle waits until the tier has every closed segment and the disk only the open one.
func (l *lake) settle(t *testing.T) {
	t.Helper()
	dir := filepath.Join(l.v.DataDir, "log", l.topic+"-0")
	eventually(t, patience, "closed segments are in the tier alone", func(ctx context.Context) error {
		latest, local := l.offset(ctx, l.adm.ListLatestRemoteOffsets), l.offset(ctx, l.adm.ListLocalLogStartOffsets)
		logs := files(t, dir, "*.log")
		if local <= 0 || latest+1 != local || len(logs) != 1 {
			return fmt.Errorf("the tier has up to offset %d, local is from %d, in files %q", latest, local, logs)
		}
		l.local = local
		return nil
	})
	if l.local < 4000 || l.local >= int64(len(l.want)) {
		t.Fatalf("local from offset %d of %d; want the boundary inside the last segment's MiB", l.local, len(l.want))
	}
	if n := len(l.containers(t)); n < 4 {
		t.Errorf("%d containers in the tier for some 5 segments", n)
	}
}

// offset is one special offset of the topic, -2 where there is no answer.
func (l *lake) offset(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error)) int64 {
	listed, err := list(ctx, l.topic)
	if err != nil || listed.Error() != nil {
		return -2
	}
	o, _ := listed.Lookup(l.topic, 0)
	return o.Offset
}

// containers are the finished containers of the topic in the tier.
func (l *lake) containers(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(l.v.TierDir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".seg") && strings.Contains(path, "/segments/") && strings.Contains(path, "/"+l.topic+"/") {
			out = append(out, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted as we look
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (l *lake) readByFranz(t *testing.T) {
	same(t, "franz-go", poll(t, client(t, l.v.Addr, fromStart(l.topic)), len(l.want)), l.want)
}

func (l *lake) readByKcat(t *testing.T) {
	servers.Need(t, "kcat")
	same(t, "kcat", split(kcat(t, l.v, "", "-C", "-q", "-t", l.topic, "-p", "0", "-o", "beginning", "-e")), l.want)
}

func (l *lake) readByJava(t *testing.T) {
	servers.NeedKafkaTools(t)
	got := tool(t, l.v, servers.KafkaConsoleConsumer, "--topic", l.topic, "--partition", "0", "--offset", "earliest", "--max-messages", strconv.Itoa(len(l.want)))
	same(t, "the console consumer", split(got), l.want)
}

// findTimes asks for offsets by time in the tier, at its end, on the disk and behind.
func (l *lake) findTimes(t *testing.T) {
	end := int64(len(l.want))
	for _, want := range []int64{0, 1, 1234, l.local - 1, l.local, end - 1, end} {
		at := l.begin.UnixMilli() + want
		got := l.offset(within(t), func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
			return l.adm.ListOffsetsAfterMilli(ctx, at, topics...)
		})
		if got != want {
			t.Errorf("the first record at or after that of offset %d is at %d (local from %d, end %d)", want, got, l.local, end)
		}
	}
}

// set alters a setting of the topic.
func (l *lake) set(t *testing.T, key, value string) {
	t.Helper()
	answers, err := l.adm.AlterTopicConfigs(within(t), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, l.topic)
	if err == nil {
		_, err = answers.On(l.topic, nil)
	}
	if err != nil {
		t.Fatalf("setting %s=%s: %v", key, value, err)
	}
}

func (l *lake) retainBySize(t *testing.T) {
	before := len(l.containers(t))
	l.set(t, "retention.bytes", "3000000")
	eventually(t, patience, "the log begins later and the oldest containers are gone", func(ctx context.Context) error {
		from, now := l.offset(ctx, l.adm.ListStartOffsets), len(l.containers(t))
		if from <= 0 || now >= before {
			return fmt.Errorf("the log begins at %d, %d of %d containers are there", from, now, before)
		}
		return nil
	})
	from := l.offset(within(t), l.adm.ListStartOffsets)
	if from >= l.local {
		t.Errorf("the log begins at %d, but 3 MB reach below %d", from, l.local)
	}
	rest := l.want[from:]
	same(t, "what is left", poll(t, client(t, l.v.Addr, fromStart(l.topic)), len(rest)), rest)
}

func (l *lake) retainByTime(t *testing.T) {
	l.set(t, "retention.ms", "1")
	eventually(t, patience, "the tier is empty and so is the log", func(ctx context.Context) error {
		from, now := l.offset(ctx, l.adm.ListStartOffsets), len(l.containers(t))
		if from != int64(len(l.want)) || now > 0 {
			return fmt.Errorf("the log begins at %d of %d, %d containers are there", from, len(l.want), now)
		}
		return nil
	})
}

// deleteTopic fills the topic anew before it deletes it.
func (l *lake) deleteTopic(t *testing.T) {
	l.topic = "pond"
	l.fill(t)
	l.settle(t)
	inTier := func() []string {
		return files(t, l.v.TierDir, "*/topics/"+l.topic+"/*/*/segments/*", "*/topics/"+l.topic+"/*/*/_inprogress/*")
	}
	if len(inTier()) == 0 {
		t.Fatal("nothing is in the tier that could go")
	}
	answers, err := l.adm.DeleteTopics(within(t), l.topic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "its records are gone", func(context.Context) error {
		left := inTier()
		local := files(t, filepath.Join(l.v.DataDir, "log"), l.topic+"*")
		if len(left)+len(local) > 0 {
			return fmt.Errorf("left are %q and %q", left, local)
		}
		return nil
	})
}
