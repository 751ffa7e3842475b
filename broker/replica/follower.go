package replica

import (
	"fmt"

	"varve/broker/kafka"
)

// A Following is what the image and the log say when a follower's term begins.
type Following struct {
	Leader    kafka.BrokerID
	Epoch     kafka.LeaderEpoch
	End       kafka.Offset      // the log's end
	LastEpoch kafka.LeaderEpoch // of the last batch, -1 for an empty log
	High      kafka.Offset      // min(checkpoint, End), raised to the local start (§3-5)
	// Seq is the number of the last request that any term of this process has made: a late
	// response of an earlier term matches none of this one (A9).
	Seq uint64
	// Unclean: an unclean election lies between this log and the leader's, so records
	// below the high watermark may have to go.
	Unclean bool
}

// A Follower is the follower's half of one partition's replication.
type Follower struct {
	Following
	// inFlight is the number of the one fetch that waits for a response, 0 none (A9).
	inFlight uint64
	stopped  bool
}

// NewFollower begins a term. Its first response truncates what the leader lacks
// before anything is taken from it (§3-4).
func NewFollower(f Following) *Follower { return &Follower{Following: f} }

// A Request is a follower's fetch.
type Request struct {
	Seq       uint64
	Epoch     kafka.LeaderEpoch
	At        kafka.Offset
	LastEpoch kafka.LeaderEpoch // of the batch before At
}

// Fetch makes the next request; ok is false while one is in flight or the partition is
// stopped. A request that will never be answered is given up with Lost.
func (f *Follower) Fetch() (r Request, ok bool) {
	if f.inFlight != 0 || f.stopped {
		return Request{}, false
	}
	f.Seq++
	f.inFlight = f.Seq
	return Request{f.Seq, f.Epoch, f.End, f.LastEpoch}, true
}

// Lost says that request seq failed or was given up.
func (f *Follower) Lost(seq uint64) {
	if f.inFlight == seq {
		f.inFlight = 0
	}
}

// A Response is what a leader sent for request Seq.
type Response struct {
	Seq  uint64
	Code kafka.Code
	High kafka.Offset
	// Diverging is where the leader's log ends that epoch: ours has another history
	// beyond (KIP-595); Epoch -1 for none.
	Diverging kafka.EpochStart
	// First and MaxEpoch are of the batches in it: the first offset, the highest leader
	// epoch; First -1 for none.
	First    kafka.Offset
	MaxEpoch kafka.LeaderEpoch
	// SegmentBase is the base of the segment that the batches are of, -1 unknown.
	SegmentBase kafka.Offset
}

// A Do is what the driver does with a response.
type Do uint8

// What to do.
const (
	Drop     Do = iota // nothing: it is not the answer to our request
	Append             // append the batches, then call Appended; with Roll, in a new segment
	Idle               // nothing new; High may have moved
	Truncate           // cut the log at To, then call Truncated
	Retry              // the leader refused with its code; ask again when the image moves or time passes
	Stop               // this partition is stopped: Why says the two numbers
)

// A Verdict is a Do with its facts.
type Verdict struct {
	Do   Do
	To   kafka.Offset
	High kafka.Offset
	Roll bool
	Why  error
}

// Received judges a response. own tells where this log ends an epoch: the largest epoch
// not above the asked one and its end.
func (f *Follower) Received(r Response, own func(kafka.LeaderEpoch) (kafka.LeaderEpoch, kafka.Offset)) Verdict {
	if r.Seq != f.inFlight || f.stopped { // A9: only the answer to the latest fetch
		return Verdict{Do: Drop, High: f.High}
	}
	f.inFlight = 0
	switch {
	case r.Code != kafka.None:
		return Verdict{Do: Retry, High: f.High}
	case r.Diverging.Epoch >= 0:
		_, end := own(r.Diverging.Epoch)
		return f.truncate(min(end, r.Diverging.Start))
	case r.First >= 0 && (r.First != f.End || r.MaxEpoch > f.Epoch):
		return Verdict{Do: Drop, High: f.High} // not what was asked for, or of a later leader (KAFKA-18723)
	case r.First >= 0:
		f.High = max(f.High, min(r.High, f.End))
		return Verdict{Do: Append, High: f.High, Roll: r.SegmentBase == f.End}
	}
	f.High = max(f.High, min(r.High, f.End))
	return Verdict{Do: Idle, High: f.High}
}

// truncate cuts the log, but never below the high watermark without an unclean election
// between: that would take back what was revealed (A9).
func (f *Follower) truncate(to kafka.Offset) Verdict {
	if to < f.High && !f.Unclean {
		f.stopped = true
		return Verdict{Do: Stop, High: f.High, Why: fmt.Errorf(
			"the leader's log (broker %d, epoch %d) ends our history at %d, below the high watermark %d: partition stopped", f.Leader, f.Epoch, to, f.High)}
	}
	return Verdict{Do: Truncate, To: to, High: min(f.High, to)}
}

// Truncated says that the log now ends at end, its last batch of epoch last.
func (f *Follower) Truncated(end kafka.Offset, last kafka.LeaderEpoch) {
	f.End, f.LastEpoch, f.High = end, last, min(f.High, end)
}

// Appended says that the batches of the last response are in the log; leaderHigh is that
// response's. It returns the high watermark.
func (f *Follower) Appended(end kafka.Offset, last kafka.LeaderEpoch, leaderHigh kafka.Offset) kafka.Offset {
	f.End, f.LastEpoch = end, last
	f.High = max(f.High, min(leaderHigh, end))
	return f.High
}

// Stopped tells whether the partition waits for an operator.
func (f *Follower) Stopped() bool { return f.stopped }

// String is the state for scripts and logs.
func (f *Follower) String() string {
	s := fmt.Sprintf("end=%d high=%d last epoch=%d", f.End, f.High, f.LastEpoch)
	if f.stopped {
		s += " stopped"
	}
	return s
}
