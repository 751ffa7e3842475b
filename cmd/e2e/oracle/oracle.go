// Package oracle asks a real Kafka and a Varve the same, in the same order, and
// compares the answers field by field. What Kafka answers is the truth; a
// difference that we want stands in allowed.go with its reason, and in
// docs/compatibility.md, which a run writes.
//
// A Case is a story of requests. Its steps are built for each side apart, because
// ids that a broker draws (topics, members, producers) differ: a side learns them
// from its answers under a name that both share, and comparison sees the names.
package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Case is one story.
type Case struct {
	Name string
	Tell func(x *Exchange)
}

// An Exchange is one telling of a case to both sides.
type Exchange struct {
	Kafka, Varve *Side
	Versions     map[int16]Range // what both serve, by API key

	name        string
	asked       int
	byVersion   map[int16]map[int16]int
	differences []Difference
	failures    []error
	logf        func(format string, args ...any)
}

// A Range is the versions of one API, both ends included.
type Range struct{ Min, Max int16 }

// A Report is what came of a run.
type Report struct {
	Stories     map[string]int          // requests compared, by story
	Asked       map[int16]map[int16]int // by API key and version
	Served      map[int16]Range         // what both serve, by API key
	Unasked     []string                // versions that both serve and no story asks
	Differences []Difference            // those that no rule allows
	Allowed     map[*Rule]int           // uses
	Failures    []error                 // steps that could not be carried out
}

// Run tells every case to both sides and reports. It says to logf how long each
// case took, and which steps were slow.
func Run(kafkaAddr, varveAddr string, cases []Case, logf func(format string, args ...any)) (*Report, error) {
	versions, err := commonVersions(kafkaAddr, varveAddr)
	if err != nil {
		return nil, err
	}
	r := &Report{Stories: map[string]int{}, Asked: map[int16]map[int16]int{}, Served: versions, Allowed: map[*Rule]int{}}
	for _, c := range cases {
		x := &Exchange{Kafka: NewSide("kafka", kafkaAddr), Varve: NewSide("varve", varveAddr), Versions: versions, name: c.Name, logf: logf,
			byVersion: r.Asked}
		begun := time.Now()
		c.Tell(x)
		logf("%s: %d requests in %v", c.Name, x.asked, time.Since(begun).Round(time.Millisecond))
		x.Kafka.Close()
		x.Varve.Close()
		r.add(x)
	}
	r.cover(versions)
	return r, nil
}

// cover notes the versions that no story has asked.
func (r *Report) cover(versions map[int16]Range) {
	for _, key := range slices.Sorted(maps.Keys(versions)) {
		for v := versions[key].Min; v <= versions[key].Max; v++ {
			if r.Asked[key][v] == 0 {
				r.Unasked = append(r.Unasked, fmt.Sprintf("%s v%d", kmsg.NameForKey(key), v))
			}
		}
	}
}

func (r *Report) add(x *Exchange) {
	r.Failures = append(r.Failures, x.failures...)
	for _, d := range x.differences {
		if rule := allowedBy(d); rule != nil {
			r.Allowed[rule]++
			continue
		}
		r.Differences = append(r.Differences, d)
	}
	r.Stories[x.name] += x.asked
}

// Ask sends what build makes to each side and compares the answers.
func (x *Exchange) Ask(step string, build func(s *Side) kmsg.Request) {
	x.Learn(step, build, func(*Side, kmsg.Response) {})
}

// Learn asks, and lets each side learn from its own answer before the comparison.
func (x *Exchange) Learn(step string, build func(s *Side) kmsg.Request, learn func(s *Side, resp kmsg.Response)) {
	kreq, vreq := build(x.Kafka), build(x.Varve)
	x.exchange(step, kreq.Key(), kreq.GetVersion(), learn,
		func() (kmsg.Response, error) { return x.Kafka.Call(kreq) },
		func() (kmsg.Response, error) { return x.Varve.Call(vreq) })
}

// Body sends a body that need not be one of its key and version, and compares.
func (x *Exchange) Body(step string, key, version int16, body []byte) {
	call := func(s *Side) func() (kmsg.Response, error) {
		return func() (kmsg.Response, error) { return s.CallBody(key, version, body) }
	}
	x.exchange(step, key, version, func(*Side, kmsg.Response) {}, call(x.Kafka), call(x.Varve))
}

func (x *Exchange) exchange(step string, key, version int16, learn func(*Side, kmsg.Response), askKafka, askVarve func() (kmsg.Response, error)) {
	x.asked++
	x.count(key, version)
	d := Difference{Case: x.name, Step: step, API: kmsg.NameForKey(key), Version: version}
	var kafka, varve kmsg.Response
	kerr, verr := x.both(d,
		func() (err error) { kafka, err = askKafka(); return err },
		func() (err error) { varve, err = askVarve(); return err })
	if kerr == nil {
		learn(x.Kafka, kafka)
	}
	if verr == nil {
		learn(x.Varve, varve)
	}
	if kerr == nil && verr == nil {
		x.record(d, compare(x.Kafka.flatten(kafka, neutral), x.Varve.flatten(varve, neutral)))
	}
}

func (x *Exchange) count(key, version int16) {
	if x.byVersion[key] == nil {
		x.byVersion[key] = map[int16]int{}
	}
	x.byVersion[key][version]++
}

// slow is how long a step may take without being told of.
const slow = 500 * time.Millisecond

// both asks the two sides at once and settles how they ended.
func (x *Exchange) both(d Difference, kafka, varve func() error) (kerr, verr error) {
	begun := time.Now()
	var ktook time.Duration
	done := make(chan struct{})
	go func() {
		defer close(done)
		kerr = kafka()
		ktook = time.Since(begun)
	}()
	verr = varve()
	vtook := time.Since(begun)
	<-done
	if max(ktook, vtook) > slow {
		x.logf("%s, %s, %s v%d: kafka took %v, varve %v", d.Case, d.Step, d.API, d.Version,
			ktook.Round(time.Millisecond), vtook.Round(time.Millisecond))
	}
	x.settle(d, outcomeOf(kerr), outcomeOf(verr), kerr, verr)
	return kerr, verr
}

// Frame sends raw bytes to each side and compares whether they answer. What they say
// is compared where the request has words for it.
func (x *Exchange) Frame(step string, frame []byte) {
	x.asked++
	d := Difference{Case: x.name, Step: step, API: "frame", Version: -1}
	x.both(d,
		func() error { _, err := x.Kafka.Frame(frame); return err },
		func() error { _, err := x.Varve.Frame(frame); return err })
}

// Send sends what has no answer. What came of it, the next question tells.
func (x *Exchange) Send(step string, build func(s *Side) kmsg.Request) {
	x.asked++
	for _, s := range []*Side{x.Kafka, x.Varve} {
		req := build(s)
		if s == x.Kafka {
			x.count(req.Key(), req.GetVersion())
		}
		if err := s.Send(req); err != nil {
			x.failures = append(x.failures, fmt.Errorf("%s, %s: %w", x.name, step, err))
		}
	}
}

// patience is how long a side may take to come to what a story rests on.
const patience = 30 * time.Second

// Eventually repeats a question to each side until good says yes: what follows may
// rest on it. Nothing is compared.
func (x *Exchange) Eventually(step string, build func(s *Side) kmsg.Request, good func(resp kmsg.Response) bool) {
	for _, s := range []*Side{x.Kafka, x.Varve} {
		begun := time.Now()
		deadline := begun.Add(patience)
		for {
			resp, err := s.Call(build(s))
			if err == nil && good(resp) {
				break
			}
			if time.Now().After(deadline) {
				x.failures = append(x.failures, fmt.Errorf("%s, %s: %s did not come to it: %v", x.name, step, s.Name, err))
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if took := time.Since(begun); took > slow {
			x.logf("%s, %s: %s took %v", x.name, step, s.Name, took.Round(time.Millisecond))
		}
	}
}

// Each tells a part of the story once for every version that both serve.
func (x *Exchange) Each(key int16, tell func(version int16)) {
	r, ok := x.Versions[key]
	if !ok {
		x.failures = append(x.failures, fmt.Errorf("%s: %s is not served by both", x.name, kmsg.NameForKey(key)))
		return
	}
	for v := r.Min; v <= r.Max; v++ {
		tell(v)
	}
}

// settle records who closed the connection, and what stopped the step.
func (x *Exchange) settle(d Difference, kafka, varve string, kerr, verr error) {
	if kafka != varve {
		x.record(d, []Difference{{Path: "outcome", Kafka: kafka, Varve: varve}})
	}
	for _, err := range []error{kerr, verr} {
		if err != nil && !errors.Is(err, errClosed) && !errors.Is(err, errSilent) {
			x.failures = append(x.failures, fmt.Errorf("%s, %s: %w", d.Case, d.Step, err))
		}
	}
}

func (x *Exchange) record(at Difference, ds []Difference) {
	for _, d := range ds {
		d.Case, d.Step, d.API, d.Version = at.Case, at.Step, at.API, at.Version
		x.differences = append(x.differences, d)
	}
}

func outcomeOf(err error) string {
	if err == nil {
		return "answer"
	}
	return err.Error()
}

// commonVersions asks both what they serve and returns what both do.
func commonVersions(addrs ...string) (map[int16]Range, error) {
	common := map[int16]Range{}
	for i, addr := range addrs {
		s := NewSide(addr, addr)
		req := kmsg.NewPtrApiVersionsRequest()
		req.SetVersion(0)
		resp, err := s.Call(req)
		s.Close()
		if err != nil {
			return nil, err
		}
		served := map[int16]Range{}
		for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
			r := Range{k.MinVersion, k.MaxVersion}
			if before, ok := common[k.ApiKey]; ok {
				r = Range{max(r.Min, before.Min), min(r.Max, before.Max)}
			} else if i > 0 {
				continue
			}
			served[k.ApiKey] = r
		}
		common = served
	}
	return common, nil
}
