// Package manifest decides what is in the tier: the chain of versions of one
// partition, what it folds to, and what may be changed in it.
//
// A version is one file, manifest/<version 20>.json, published by a rename that
// refuses to overwrite: that is the compare-and-swap under everything here. The
// highest number is the truth. A version is JSON:
//
//	{
//	  "version": 7,                      dense, from 1
//	  "id": "…", "previous": "…",        uuids of this attempt and of version 6
//	  "time": 1700000000000,             when it was written, for people only
//	  "writer": {"leaderEpoch": 3, "brokerEpoch": 41, "broker": 1, "incarnation": "…"},
//	  "change": {                        what it does to version 6
//	    "added": [segment…], "deleting": [id…], "dropped": [id…],
//	    "logStart": 100, "lastStable": 900, "lineage": [[epoch, start]…],
//	    "gaps": [[start, end)…], "deleted": false
//	  },
//	  "whole": { …the state after it… }  in checkpoints, and while it is small
//	}
//
// Every 64th version is a checkpoint: it always holds the whole state. Others hold
// it while the whole stays under 64 KiB, so that most chains are read with one file.
// Versions below the last but one checkpoint may be pruned, hence a version that
// turns out to lie below the newest checkpoint does not count (T2, T3).
//
// A segment is live (readable), then deleting (its file may be gone any moment), then
// dropped. There is no way back. The package is pure: chain/ reads and publishes.
package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	"varve/broker/kafka"
)

const (
	// CheckpointEvery is the distance of versions that always hold the whole state.
	CheckpointEvery = 64
	// WholeMax is the size in bytes up to which every version holds the whole state.
	WholeMax = 64 << 10
)

// A Writer is who wrote a version. Together its fields tell two writers apart even
// where one is a copy of the other's disk (T13).
type Writer struct {
	LeaderEpoch kafka.LeaderEpoch `json:"leaderEpoch"`
	BrokerEpoch kafka.BrokerEpoch `json:"brokerEpoch"`
	Broker      kafka.BrokerID    `json:"broker"`
	Incarnation string            `json:"incarnation"` // uuid of the process
}

func (w Writer) String() string {
	return fmt.Sprintf("broker %d (leader epoch %d, broker epoch %d, incarnation %s)",
		w.Broker, w.LeaderEpoch, w.BrokerEpoch, w.Incarnation)
}

// A Segment is one container as the chain knows it.
type Segment struct {
	ID           string            `json:"id"`   // uuid of the upload: never used twice
	Base         kafka.Offset      `json:"base"` // first offset
	End          kafka.Offset      `json:"end"`  // last offset, inclusive
	Size         int64             `json:"size"` // of the whole file, bytes
	LogSize      int64             `json:"logSize"`
	CRC          uint32            `json:"crc"` // CRC32C of the log bytes
	MaxTimestamp int64             `json:"maxTs"`
	Records      int64             `json:"records"` // control records included
	Epochs       Lineage           `json:"epochs"`  // of its records; the first is clamped to Base
	LeaderEpoch  kafka.LeaderEpoch `json:"leaderEpoch"`
	Broker       kafka.BrokerID    `json:"broker"`
	HasAborted   bool              `json:"hasAborted,omitempty"`
	DeletedAt    int64             `json:"deletedAt,omitempty"` // version that made it deleting
}

// Next is the offset after the segment's last.
func (s Segment) Next() kafka.Offset { return s.End + 1 }

// Contains tells whether the offset lies in the segment.
func (s Segment) Contains(o kafka.Offset) bool { return s.Base <= o && o <= s.End }

// A Gap is a range of offsets that the tier will never hold: it counts as covered.
type Gap struct {
	Start kafka.Offset `json:"start"`
	End   kafka.Offset `json:"end"` // exclusive
}

// A Change is what one version does to the state before it. It is computed from a
// state, never kept: after a lost race it is computed again (§3-10).
type Change struct {
	Added      []Segment    `json:"added,omitempty"`
	Deleting   []string     `json:"deleting,omitempty"`
	Dropped    []string     `json:"dropped,omitempty"`
	LogStart   kafka.Offset `json:"logStart,omitempty"`   // only rises (§3-9)
	LastStable kafka.Offset `json:"lastStable,omitempty"` // when it was written
	Lineage    Lineage      `json:"lineage,omitempty"`    // replaces; nil keeps
	Gaps       []Gap        `json:"gaps,omitempty"`       // added
	Deleted    bool         `json:"deleted,omitempty"`    // the topic is gone (T14)
}

// A Version is one file of the chain.
type Version struct {
	Number   int64  `json:"version"`
	ID       string `json:"id"`
	Previous string `json:"previous"`
	Time     int64  `json:"time"`
	Writer   Writer `json:"writer"`
	Change   Change `json:"change"`
	Whole    *State `json:"whole,omitempty"`
}

// Encode writes a version as its file holds it.
func (v Version) Encode() []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("manifest: version %d cannot be written: %v", v.Number, err))
	}
	return append(b, '\n')
}

// Decode reads a version file and holds it to what a version must be.
func Decode(b []byte) (Version, error) {
	var v Version
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("not a manifest version: %w", err)
	}
	switch {
	case v.Number < 1:
		return v, fmt.Errorf("version number %d: want 1 or more", v.Number)
	case !validID(v.ID):
		return v, fmt.Errorf("version %d: id %q is no uuid", v.Number, v.ID)
	case v.Number > 1 && !validID(v.Previous):
		return v, fmt.Errorf("version %d: predecessor %q is no uuid", v.Number, v.Previous)
	case IsCheckpoint(v.Number) && v.Whole == nil:
		return v, fmt.Errorf("version %d is a checkpoint and does not hold the whole state", v.Number)
	}
	for i := range v.Change.Added {
		if err := v.Change.Added[i].check(); err != nil {
			return v, fmt.Errorf("version %d: %w", v.Number, err)
		}
	}
	if v.Whole == nil {
		return v, nil
	}
	for _, segs := range [][]Segment{v.Whole.Live, v.Whole.Deleting} {
		for i := range segs {
			if err := segs[i].check(); err != nil {
				return v, fmt.Errorf("version %d: %w", v.Number, err)
			}
		}
	}
	v.Whole.Number, v.Whole.ID, v.Whole.Writer = v.Number, v.ID, v.Writer
	slices.SortFunc(v.Whole.Live, byBase)
	return v, nil
}

func (s *Segment) check() error {
	switch {
	case !validID(s.ID):
		return fmt.Errorf("segment id %q is no uuid", s.ID)
	case s.Base < 0 || s.End < s.Base:
		return fmt.Errorf("segment %s: offsets %d to %d", s.ID, s.Base, s.End)
	case s.LogSize <= 0 || s.Size < s.LogSize:
		return fmt.Errorf("segment %s: %d bytes of log in a file of %d", s.ID, s.LogSize, s.Size)
	case len(s.Epochs) == 0 || !s.Epochs.valid():
		return fmt.Errorf("segment %s: leader epochs %v", s.ID, s.Epochs)
	}
	return nil
}

// IsCheckpoint tells whether the version with that number always holds the whole state.
func IsCheckpoint(number int64) bool { return number%CheckpointEvery == 0 }

// Counts tells whether a version that was just published under number takes part in
// the chain whose newest version is newest: below the newest checkpoint its slot may
// have been empty only because it was pruned (T3).
func Counts(number, newest int64) bool { return newest/CheckpointEvery*CheckpointEvery <= number }
