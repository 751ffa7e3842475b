package tier

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/e2e/servers"
)

// restless makes segments close, settle and go at once, and failed steps be tried again
// soon.
var restless = map[string]string{
	"remote.log.manager.task.interval.ms":          "200",
	"log.retention.check.interval.ms":              "200",
	"remote.log.manager.task.retry.backoff.max.ms": "1000",
	"tier.local.grace.ms":                          "0",
	"log.segment.delete.delay.ms":                  "100",
	"offsets.topic.num.partitions":                 "1",
}

const (
	topic       = "orders"
	recordBytes = 1000
	patience    = 90 * time.Second
)

// A scene is one broker with one topic of small segments that leave the local disk as
// soon as the tier has them.
type scene struct {
	*testing.T
	hdfs *servers.HDFS
	v    *servers.Varve
	cl   *kgo.Client
	adm  *kadm.Client
	root string // of the tier, in HDFS
	sent int64  // records acknowledged
}

// on starts a broker whose tier is a folder of its own in HDFS.
func on(t *testing.T, h *servers.HDFS, properties ...string) *scene {
	t.Helper()
	s := &scene{T: t, hdfs: h, root: "/" + t.Name()}
	own := map[string]string{}
	for k, v := range restless {
		own[k] = v
	}
	for i := 0; i+1 < len(properties); i += 2 {
		own[properties[i]] = properties[i+1]
	}
	s.v = servers.VarveFor(t, servers.VarveOptions{Tier: h.URL + s.root, Properties: own})
	var err error
	s.cl, err = kgo.NewClient(kgo.SeedBrokers(s.v.Addr), kgo.MetadataMinAge(100*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cl.Close)
	s.adm = kadm.NewClient(s.cl)
	return s
}

// create makes the topic; settings come as key, value, key, value.
func (s *scene) create(settings ...string) {
	s.Helper()
	own := map[string]*string{"segment.bytes": kadm.StringPtr("1048576"), "remote.storage.enable": kadm.StringPtr("true"),
		"local.retention.ms": kadm.StringPtr("1"), "retention.ms": kadm.StringPtr("-1")}
	for i := 0; i+1 < len(settings); i += 2 {
		own[settings[i]] = &settings[i+1]
	}
	if _, err := s.adm.CreateTopic(s.bounded(), 1, 1, own, topic); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) bounded() context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	s.Cleanup(cancel)
	return ctx
}

// value is the n-th record's: its number, and noise that no two share.
func value(n int64) []byte {
	b := bytes.Repeat([]byte{byte('a' + n%26)}, recordBytes)
	copy(b, strconv.FormatInt(n, 10)+" ")
	return b
}

// fill appends so many megabytes of records and waits until all are acknowledged.
func (s *scene) fill(megabytes int64) {
	s.Helper()
	var records []*kgo.Record
	for range megabytes * 1e6 / recordBytes {
		records = append(records, &kgo.Record{Topic: topic, Value: value(s.sent)})
		s.sent++
	}
	results := s.cl.ProduceSync(s.bounded(), records...)
	if err := results.FirstErr(); err != nil {
		s.Fatal(err)
	}
}

// until waits for a condition, which says what is not yet.
func (s *scene) until(what string, cond func() error) {
	s.Helper()
	ctx := s.bounded()
	for {
		err := cond()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("never: %s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// reaches waits until the tier has all below an offset and nothing below it is local.
func (s *scene) reaches(want int64) {
	s.Helper()
	s.until(fmt.Sprintf("the tier has all below %d", want), func() error {
		tiered, local := s.marks()
		if tiered < want || local < want {
			return fmt.Errorf("it has all below %d, local is from %d on", tiered, local)
		}
		return nil
	})
}

// settled waits until the tier has everything.
func (s *scene) settled() { s.Helper(); s.reaches(s.sent) }

// marks are where the tier ends and where local data begins; -1 where the broker does
// not tell now.
func (s *scene) marks() (tiered, local int64) {
	ctx := s.bounded()
	latest, err := s.adm.ListLatestRemoteOffsets(ctx, topic)
	if err != nil || latest.Error() != nil {
		return -1, -1
	}
	first, err := s.adm.ListLocalLogStartOffsets(ctx, topic)
	if err != nil || first.Error() != nil {
		return -1, -1
	}
	l, _ := latest.Lookup(topic, 0)
	f, _ := first.Lookup(topic, 0)
	return l.Offset + 1, f.Offset
}

// metric reads one figure off /metrics.
func (s *scene) metric(name string) float64 {
	s.Helper()
	resp, err := http.Get("http://" + s.v.HTTP + "/metrics")
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	var page bytes.Buffer
	if _, err := page.ReadFrom(resp.Body); err != nil {
		s.Fatal(err)
	}
	for line := range strings.Lines(page.String()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.Fatalf("%s: %v", line, err)
			}
			return f
		}
	}
	s.Fatalf("/metrics has no %s", name)
	return 0
}

// seen waits until failures show in the metrics and, with their cause, in the log.
func (s *scene) seen(cause string) {
	s.Helper()
	s.until("failures in /metrics and log", func() error {
		if s.metric("varve_tier_errors_total") == 0 || s.metric("varve_tier_lag_bytes") == 0 {
			return fmt.Errorf("errors %v, lag %v", s.metric("varve_tier_errors_total"), s.metric("varve_tier_lag_bytes"))
		}
		lines, err := os.ReadFile(s.v.LogFile())
		if err == nil && !bytes.Contains(lines, []byte(cause)) {
			err = fmt.Errorf("the log does not say %q", cause)
		}
		return err
	})
}

// comesBack reads everything from the start through the broker: each record once, in
// order, as it was sent.
func (s *scene) comesBack() {
	s.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.v.Addr), kgo.MetadataMinAge(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		s.Fatal(err)
	}
	defer cl.Close()
	ctx, next := s.bounded(), int64(0)
	for next < s.sent {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			s.Fatalf("at %d of %d: %v", next, s.sent, err)
		}
		fetches.EachError(func(_ string, _ int32, err error) { s.Fatalf("at %d: %v", next, err) })
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != next || !bytes.Equal(r.Value, value(next)) {
				s.Fatalf("offset %d holds %.10q, want record %d", r.Offset, r.Value, next)
			}
			next++
		})
	}
}
