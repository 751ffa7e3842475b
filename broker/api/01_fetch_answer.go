package api

import (
	"varve/broker/kafka"
	"varve/broker/wire"
)

// answer writes what was gathered.
func (f *fetcher) answer(x *call, s *session) error {
	v := wire.FetchResponse(x.h.Version)
	x.out.Begin(x.h)
	x.out.B = v.Begin(x.out.B, 0, kafka.None, s.id, f.topics(s))
	for k := 0; k < len(f.got); {
		t := &s.parts[f.got[k].i]
		n := f.together(s, k)
		x.out.B = v.Topic(x.out.B, t.topic, t.id, n)
		for ; n > 0; n-- {
			if err := f.part(x, s, &f.got[k]); err != nil {
				for k++; k < len(f.got); k++ {
					f.got[k].r.Run.Release()
				}
				return err
			}
			k++
		}
		x.out.B = v.EndTopic(x.out.B)
	}
	x.out.B = v.End(x.out.B, nil)
	x.out.End()
	return nil
}

// topics counts the runs of partitions of one topic.
func (f *fetcher) topics(s *session) (n int) {
	for k := 0; k < len(f.got); k += f.together(s, k) {
		n++
	}
	return n
}

// together is how many from k on are of one topic.
func (f *fetcher) together(s *session, k int) int {
	first := &s.parts[f.got[k].i]
	n := 1
	for k+n < len(f.got) && s.parts[f.got[k+n].i].topic == first.topic && s.parts[f.got[k+n].i].id == first.id {
		n++
	}
	return n
}

// unknown tells of a partition that is not here: Kafka lists its aborted transactions,
// none, whatever the isolation level.
func unknown(c kafka.Code) bool {
	return c == kafka.UnknownTopicOrPartition || c == kafka.UnknownTopicID
}

func (f *fetcher) part(x *call, s *session, g *got) error {
	v := wire.FetchResponse(x.h.Version)
	t := &s.parts[g.i]
	res := wire.FetchResult{Partition: t.n, Code: g.code, HighWatermark: g.r.High, LastStable: g.r.Stable, LogStart: g.r.LogStart,
		ReadCommitted: f.req.ReadCommitted || unknown(g.code), Preferred: kafka.NoBroker}
	for _, a := range g.r.Aborted {
		res.Aborted = append(res.Aborted, wire.AbortedTransaction{Producer: a.PID, First: a.First})
	}
	if g.r.Diverged {
		res.Diverging = wire.Diverging{Known: true, Epoch: g.r.End.Epoch, End: g.r.End.End}
	}
	t.told = told{g.r.High, g.r.LogStart}
	if g.code != kafka.None {
		t.told = never
	}
	x.out.B = v.Partition(x.out.B, &res, g.r.Run.N)
	if g.r.Run.N > 0 {
		if err := x.out.Run(g.r.Run); err != nil {
			return err
		}
	}
	x.out.B = v.EndPartition(x.out.B, &res)
	return nil
}
