package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"varve/broker/kafka"
)

// TestStories runs testdata/*: each line of a command's input is one thing that happens
// to the chain, the answer is what is decided, then the state.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				fmt.Fprintln(&out, w.do(d, strings.Fields(line)))
			}
			if d.Input == "" {
				fmt.Fprintln(&out, w.do(d, nil))
			}
			return out.String()
		})
	})
}

type story struct{ s State }

func idOf(n string) string { return fmt.Sprintf("00000000-0000-4000-8000-%012s", n) }
func short(id string) string {
	return strings.TrimLeft(strings.TrimPrefix(id, "00000000-0000-4000-8000-"), "0")
}

// args reads "key=value" words; lineages are written 0:0,5:50.
type args map[string]string

func parse(words []string) args {
	a := args{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		a[k] = v
	}
	return a
}

func (a args) num(key string, def int64) int64 {
	if v, ok := a[key]; ok {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	return def
}

func (a args) lineage(key string) Lineage {
	var l Lineage
	for _, p := range strings.Split(a[key], ",") {
		e, s, ok := strings.Cut(p, ":")
		if !ok {
			return nil
		}
		epoch, _ := strconv.Atoi(e)
		start, _ := strconv.Atoi(s)
		l = append(l, kafka.EpochStart{Epoch: kafka.LeaderEpoch(epoch), Start: kafka.Offset(start)})
	}
	return l
}

func (a args) writer() Writer {
	return Writer{LeaderEpoch: kafka.LeaderEpoch(a.num("epoch", 1)), BrokerEpoch: kafka.BrokerEpoch(a.num("broker-epoch", 1)), Incarnation: a["incarnation"]}
}

func (a args) segment() Segment {
	s := Segment{ID: idOf(a["id"]), Base: kafka.Offset(a.num("base", 0)), End: kafka.Offset(a.num("end", 0)), LogSize: a.num("size", 100),
		MaxTimestamp: a.num("ts", 0), LeaderEpoch: kafka.LeaderEpoch(a.num("epoch", 1)), Epochs: a.lineage("epochs")}
	if s.Epochs == nil {
		s.Epochs = Lineage{{Epoch: 0, Start: s.Base}}
	}
	s.Size = s.LogSize + 1
	return s
}

func (w *story) do(d *datadriven.TestData, words []string) string {
	a := parse(words)
	switch d.Cmd {
	case "fence":
		if err := w.s.MayLead(a.writer()); err != nil {
			return "refused: " + err.Error()
		}
		return w.apply(a.writer(), FenceChange(kafka.Offset(a.num("log-start", 0)), 0, a.lineage("lineage")))
	case "raw": // a version whatever it says
		var c Change
		switch words[0] {
		case "add":
			c.Added = []Segment{a.segment()}
		case "gap":
			c.Gaps = []Gap{{kafka.Offset(a.num("start", 0)), kafka.Offset(a.num("end", 0))}}
		case "deleting":
			c.Deleting = []string{idOf(a["id"])}
		case "dropped":
			c.Dropped = []string{idOf(a["id"])}
		case "tombstone":
			return w.apply(TombstoneWriter(w.s.Writer), TombstoneChange())
		}
		return w.apply(w.s.Writer, c)
	case "add":
		if err := w.s.MayWrite(a.writer()); err != nil {
			return "refused: " + err.Error()
		}
		c, ok := w.s.AddChange([]Segment{a.segment()}, 0, w.s.Lineage)
		if !ok {
			return "nothing to add"
		}
		return w.apply(a.writer(), c)
	case "expire":
		c, ok := w.s.ExpireChange(Retention{NowMs: a.num("now", 0), Ms: a.num("ms", -1), Bytes: a.num("bytes", -1), LocalBytes: a.num("local", 0), LogStart: kafka.Offset(a.num("log-start", 0))})
		if !ok {
			return "nothing expires"
		}
		return w.apply(w.s.Writer, c)
	case "removable":
		var pins []Pin
		for v := range strings.SplitSeq(a["pins"], ",") {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				pins = append(pins, Pin{n, 60, idOf("1")})
			}
		}
		return "may go: " + list(w.s.Removable(pins))
	case "find":
		seg, ok := w.s.Find(kafka.Offset(a.num("offset", 0)))
		if !ok {
			return "not there"
		}
		return "segment " + short(seg.ID)
	case "sweep":
		n := SegmentName{Base: 0, End: 9, LeaderEpoch: kafka.LeaderEpoch(a.num("epoch", 0)), ID: idOf(a["id"])}
		return fmt.Sprint(w.s.MaySweepContainer(n, kafka.LeaderEpoch(a.num("mine", 0)), func(id string) bool { return a["abandoned"] == "yes" }))
	case "prune":
		var listed []int64
		for n := a.num("from", 1); n <= a.num("to", 0); n++ {
			listed = append(listed, n)
		}
		var pins []Pin
		if v := a.num("pin", 0); v > 0 {
			pins = []Pin{{v, 60, idOf("1")}}
		}
		old := Prunable(listed, pins)
		if len(old) == 0 {
			return "none"
		}
		return fmt.Sprintf("%d to %d", old[0], old[len(old)-1])
	}
	return "unknown command " + d.Cmd
}

// apply goes the way of a file: encoded, decoded, folded.
func (w *story) apply(by Writer, c Change) string {
	v, err := w.s.Next(by, idOf(strconv.FormatInt(w.s.Number+1, 10)), 0, c)
	if err != nil {
		return "refused: " + err.Error()
	}
	back, err := Decode(v.Encode())
	if err != nil {
		return "does not decode: " + err.Error()
	}
	folded, err := w.s.Apply(back)
	if err != nil {
		return "does not fold: " + err.Error()
	}
	if whole, err := (State{}).Apply(back); back.Whole != nil && (err != nil || whole.String() != folded.String()) {
		return fmt.Sprintf("the whole says %v, the fold %v", whole, folded)
	}
	w.s = folded
	return w.s.String()
}

// String is the state as the stories print it.
func (s State) String() string {
	return fmt.Sprintf("version %d: log start %d, next %d, live %s, deleting %s", s.Number, s.LogStart, s.NextOffset(), list(s.Live), list(s.Deleting))
}

func list(segs []Segment) string {
	if len(segs) == 0 {
		return "none"
	}
	var out []string
	for _, s := range segs {
		out = append(out, fmt.Sprintf("%s[%d,%d]", short(s.ID), s.Base, s.End))
	}
	return strings.Join(out, " ")
}

func TestNamesHaveOneSpelling(t *testing.T) {
	id := idOf("7")
	for _, good := range []fmt.Stringer{
		SegmentName{5, 9, 3, id}, ProgressName{Number: 5, LeaderEpoch: 3, Broker: 1, ID: id}, ProgressName{5, 3, 1, id, true}, Pin{4, 60, id},
	} {
		name := good.String()
		var back fmt.Stringer
		var err error
		switch good.(type) {
		case SegmentName:
			back, err = ParseSegmentName(name)
		case ProgressName:
			back, err = ParseProgressName(name)
		case Pin:
			back, err = ParsePin(name)
		}
		if err != nil || back != good {
			t.Errorf("%s: %v, %v", name, back, err)
		}
	}
	for _, bad := range []string{"", ".json", "1.json", "0000000000000000000x.json", "00000000000000000000.json", "00000000000000000001.json.tmp", "000000000000000000001.json", "+0000000000000000001.json"} {
		if n, err := ParseVersionName(bad); err == nil {
			t.Errorf("%q is version %d", bad, n)
		}
	}
}

func FuzzDecodeVersion(f *testing.F) {
	s := State{}
	v, err := s.Next(Writer{LeaderEpoch: 1}, idOf("1"), 5, Change{Lineage: Lineage{{Epoch: 0, Start: 0}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(v.Encode())
	v.Change.Added = []Segment{parse([]string{"id=4", "end=9"}).segment()}
	f.Add(v.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(v.Encode())
		if err != nil || again.Number != v.Number || again.ID != v.ID {
			t.Errorf("%s\ncomes back as %+v, %v", b, again, err)
		}
		if s, err := (State{}).Apply(v); err == nil {
			s.NextOffset()
			s.Find(s.LogStart)
			s.ExpireChange(Retention{NowMs: 1, Ms: 0, Bytes: 0})
		}
	})
}

func FuzzParseNames(f *testing.F) {
	f.Add(SegmentName{5, 9, 3, idOf("7")}.String())
	f.Add(ProgressName{5, 3, 1, idOf("7"), true}.String())
	f.Add(Pin{4, 60, idOf("7")}.String())
	f.Add(VersionName(9))
	f.Fuzz(func(t *testing.T, name string) {
		if n, err := ParseSegmentName(name); err == nil && n.String() != name {
			t.Errorf("%q is %q", name, n)
		}
		if n, err := ParseProgressName(name); err == nil && n.String() != name {
			t.Errorf("%q is %q", name, n)
		}
		if n, err := ParsePin(name); err == nil && n.String() != name {
			t.Errorf("%q is %q", name, n)
		}
		if n, err := ParseVersionName(name); err == nil && VersionName(n) != name {
			t.Errorf("%q is %q", name, VersionName(n))
		}
	})
}
