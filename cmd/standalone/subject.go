package standalone

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"varve/broker"
	"varve/cmd/daemon"
	"varve/cmd/human"
	"varve/log4j"
)

// subject is the process as its pages tell of it.
type subject struct{ p *Process }

// Health is nil, or what is wrong.
func (s subject) Health() error { return s.p.broker.Health() }

// Sections are the tables of the front page.
func (s subject) Sections() []daemon.Section {
	p := s.p
	about := daemon.Section{Title: "About", Rows: [][]string{
		{"Version", Version()},
		{"Cluster", p.runner.Image().ClusterID()},
		{"Node", strconv.Itoa(int(p.broker.ID()))},
		{"Clients connect to", p.Bootstrap()},
		{"Tier", or(p.TierURL(), "none")},
		{"Up since", p.started.Format(time.RFC3339) + " (" + time.Since(p.started).Round(time.Second).String() + ")"},
		{"Runs on", runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version()},
	}}
	return append([]daemon.Section{about}, sections(p.broker)...)
}

// sections are the broker's tables.
func sections(b *broker.Broker) []daemon.Section {
	topics := daemon.Section{Title: "Topics", Head: []string{"Topic", "Partitions", "Records", "Local", "In the tier"}}
	for _, t := range b.Topics() {
		where := "not tiered"
		if t.Tiered {
			where = human.Count(t.InTier)
		}
		topics.Rows = append(topics.Rows, []string{t.Name, strconv.Itoa(t.Partitions), human.Count(t.Records), human.Bytes(t.LocalBytes), where})
	}
	out := []daemon.Section{topics}
	if s, ok := b.Tier(); ok {
		waiting := "nothing"
		if s.LagSegments > 0 {
			waiting = fmt.Sprintf("%s in %d segments, the oldest for %s", human.Bytes(s.LagBytes), s.LagSegments, s.OldestLag.Round(time.Second))
		}
		out = append(out, daemon.Section{Title: "Tier", Rows: [][]string{
			{"Copied", fmt.Sprintf("%s in %d containers", human.Bytes(s.Copied), s.Containers)},
			{"Waiting to be copied", waiting},
			{"Local copies let go", human.Bytes(s.Dropped)},
			{"Cache", fmt.Sprintf("%d reads found their bytes, %d waited, %s fetched", s.Cache.Hits, s.Cache.Misses, human.Bytes(s.Cache.FillBytes))},
			{"Errors", fmt.Sprintf("%d; last: %s", s.Errors, or(s.LastError, "none"))},
		}})
	}
	return out
}

// Beans are the broker's figures.
func (s subject) Beans() []daemon.Bean {
	beans := []daemon.Bean{{Name: "varve:type=Process", Values: map[string]any{
		"Version": Version(), "Goroutines": runtime.NumGoroutine(), "UptimeSeconds": int(time.Since(s.p.started).Seconds()),
	}}}
	for name, values := range s.p.broker.Figures() {
		beans = append(beans, daemon.Bean{Name: name, Values: values})
	}
	return beans
}

// Conf are the effective settings; secrets are not shown.
func (s subject) Conf() []daemon.Setting {
	var out []daemon.Setting
	for _, e := range s.p.conf.Effective() {
		out = append(out, daemon.Setting{Key: e.Name, Value: e.Value, Origin: e.Origin.String()})
	}
	daemon.SortSettings(out)
	return out
}

// Level asks or sets a logger's level.
func (s subject) Level(logger, level string) (string, error) {
	if level != "" {
		l, ok := log4j.ParseLevel(level)
		if !ok {
			return "", fmt.Errorf("level %q: want ALL, TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF", level)
		}
		s.p.logs.SetLevel(logger, l)
	}
	l, _ := s.p.logs.Level(logger)
	return log4j.LevelName(l), nil
}
