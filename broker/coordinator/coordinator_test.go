package coordinator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/coordinator"
	"varve/broker/kafka"
	"varve/broker/metadata"
	"varve/broker/partition"
	"varve/broker/record"
	"varve/broker/vfs"
)

func TestAKilledBrokerKeepsOffsetsAndMembers(t *testing.T) {
	b := start(t, vfs.NewMem(), 4, 1, 1)
	if code := b.commit("alone", 7); code != kafka.None {
		t.Fatal(code)
	}
	b.commit("alone", 8)
	member := b.joined("together")
	b = b.kill(2)
	b.ready("alone")
	b.ready("together")
	b.wantCommitted("alone", 8)
	if code := b.heartbeat("together", member); code != kafka.None {
		t.Errorf("heartbeat of a member after the restart: %v", code)
	}
}

func TestAThousandGroupsAreLoaded(t *testing.T) {
	b := start(t, vfs.NewMem(), 4, 1, 1)
	for i := range 1000 {
		if code := b.commit(fmt.Sprint("group", i), int64(i)); code != kafka.None {
			t.Fatal(code)
		}
	}
	b = b.kill(2)
	for i := range 1000 {
		b.ready(fmt.Sprint("group", i))
		b.wantCommitted(fmt.Sprint("group", i), int64(i))
	}
	listed := 0
	for _, n := range b.c.Shards() {
		answer := make(chan kmsg.Response, 1)
		b.c.Ask(n, coordinator.Client{}, kmsg.NewPtrListGroupsRequest(), func(r kmsg.Response) { answer <- r })
		listed += len(answered[*kmsg.ListGroupsResponse](t, answer).Groups)
	}
	if listed != 1000 {
		t.Errorf("listed %d groups, want 1000", listed)
	}
}

func TestNothingIsServedBelowTheLogEndOfTheElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, vfs.NewMem(), 1, 1, 1)
		b.commit("g", 7)
		b.c.Close()
		// Broker 2 has not fetched: what is loaded may be taken back (C1).
		b = start(t, b.fs.(*vfs.Mem).Kill(), 1, 2, 1, 2)
		if high, end := b.parts[0].HighWatermark(), b.parts[0].Log().End(); high >= end {
			t.Fatalf("the high watermark is %d and the log end %d: nothing to wait for", high, end)
		}
		synctest.Wait() // the log has been read
		if _, code := b.committed("g"); code != kafka.CoordinatorLoadInProgress {
			t.Errorf("a fetch while broker 2 may lack it: %v", code)
		}
		b.lead(3, 1)
		b.ready("g")
		b.wantCommitted("g", 7)
	})
}

func TestAnAnswerWaitsForTheReplicasAndEndsWithTheTerm(t *testing.T) {
	b := start(t, vfs.NewMem(), 1, 1, 1, 2)
	commit, fetch := b.ask("g", commitOf("g", 7)), b.ask("g", joinOf("g", "stranger"))
	for _, answer := range []<-chan kmsg.Response{commit, fetch} {
		select {
		case r := <-answer:
			t.Fatalf("answered before broker 2 has it: %+v", r)
		default:
		}
	}
	b.resign()
	c := answered[*kmsg.OffsetCommitResponse](t, commit)
	j := answered[*kmsg.JoinGroupResponse](t, fetch)
	if got := kafka.Code(c.Topics[0].Partitions[0].ErrorCode); got != kafka.NotCoordinator {
		t.Errorf("the commit: %v", got)
	}
	if got := kafka.Code(j.ErrorCode); got != kafka.NotCoordinator {
		t.Errorf("the join: %v", got)
	}
}

func TestMembersThatWaitAreSentAwayWhenTheLeadershipGoes(t *testing.T) {
	b := start(t, vfs.NewMem(), 1, 1, 1)
	b.joined("g")
	second := b.ask("g", joinOf("g", ""))
	b.resign()
	if j := answered[*kmsg.JoinGroupResponse](t, second); kafka.Code(j.ErrorCode) != kafka.NotCoordinator {
		t.Errorf("the join that waited: %v", kafka.Code(j.ErrorCode))
	}
	if code := b.commit("g", 1); code != kafka.NotCoordinator {
		t.Errorf("a commit after: %v", code)
	}
	b.lead(2, 1)
	b.ready("g")
	if _, code := b.committed("g"); code != kafka.None {
		t.Errorf("after the leadership came back: %v", code)
	}
}

func TestARefusedAppendIsTakenBack(t *testing.T) {
	b := start(t, vfs.NewMem(), 1, 1, 1)
	b.commit("g", 7)
	p := b.parts[0]
	settings := *p.Settings()
	few := settings
	few.MinISR = 2
	p.Set(&few)
	if code := b.commit("g", 8); code != kafka.CoordinatorNotAvailable {
		t.Errorf("a commit without enough replicas: %v", code)
	}
	p.Set(&settings)
	b.ready("g")
	b.wantCommitted("g", 7)
}

func TestADiskThatFailsIsNotRead(t *testing.T) {
	fsys := vfs.NewMem()
	b := start(t, fsys, 1, 1, 1)
	b.commit("g", 7)
	fsys.Rule(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, ".log") {
			return errors.New("the disk is gone")
		}
		return nil
	})
	for range 2 {
		if code := b.commit("g", 8); code != kafka.NotCoordinator {
			t.Errorf("a commit to a failed disk: %v", code)
		}
	}
	fsys.Rule(nil)
	b = b.kill(2)
	b.ready("g")
	b.wantCommitted("g", 7)
}

func TestRecordsOfAnotherWriterAreLoaded(t *testing.T) {
	b := start(t, vfs.NewMem(), 1, 1, 1)
	b.commit("g", 7)
	var w record.Builder
	key := kmsg.OffsetCommitKey{Version: 1, Group: "g", Topic: "orders", Partition: 2}
	value := kmsg.OffsetCommitValue{Version: 3, Offset: 50}
	w.Add(record.Record{Timestamp: 1, Key: key.AppendTo(nil), Value: value.AppendTo(nil)})
	foreign(t, b, w)
	if code := b.commit("other", 1); code != kafka.NotCoordinator {
		t.Errorf("the commit that met them: %v", code)
	}
	b.ready("g")
	b.wantCommitted("g", 50)
}

func foreign(t *testing.T, b *broker, w record.Builder) {
	t.Helper()
	var v record.Validator
	if _, err := b.parts[0].Append(partition.Append{Records: w.AppendTo(nil), Acks: -1, Internal: true, Validator: &v, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyCommittedTransactionsAreLoaded(t *testing.T) {
	b := start(t, vfs.NewMem(), 1, 1, 1)
	for pid, group := range []string{"committed", "aborted", "open"} {
		p := record.Producer{ID: kafka.ProducerID(pid), Sequence: 0}
		w := record.Builder{Producer: &p, Transactional: true}
		key := kmsg.OffsetCommitKey{Version: 1, Group: group, Topic: "orders", Partition: 2}
		value := kmsg.OffsetCommitValue{Version: 3, Offset: 50}
		w.Add(record.Record{Timestamp: 1, Key: key.AppendTo(nil), Value: value.AppendTo(nil)})
		foreign(t, b, w)
	}
	for pid, commit := range []bool{true, false} {
		batch := record.Batch(record.AppendEndTxn(nil, record.Producer{ID: kafka.ProducerID(pid)}, record.EndTxnMarker{Commit: commit}, 1))
		if _, err := b.parts[0].Log().Append(batch, 1); err != nil {
			t.Fatal(err)
		}
	}
	b.lead(2, 1)
	for group, want := range map[string]int64{"committed": 50, "aborted": -1, "open": -1} {
		b.ready(group)
		b.wantCommitted(group, want)
	}
}

func TestALogThatCannotBeReadIsNotServed(t *testing.T) {
	b := start(t, vfs.NewMem(), 1, 1, 1)
	var w record.Builder
	w.Add(record.Record{Timestamp: 1, Key: []byte{0}, Value: []byte("?")})
	foreign(t, b, w)
	b.lead(2, 1)
	b.ready("g")
	if code := b.commit("g", 1); code != kafka.NotCoordinator {
		t.Errorf("a commit: %v", code)
	}
	b.logs.mu.Lock()
	defer b.logs.mu.Unlock()
	if !slices.ContainsFunc(b.logs.messages, func(m string) bool { return strings.Contains(m, "cannot be read") }) {
		t.Errorf("the log says %q", b.logs.messages)
	}
}

func TestOffsetsOfDeletedTopicsAreForgotten(t *testing.T) {
	b := start(t, vfs.NewMem(), 1, 1, 1)
	b.commit("g", 7)
	b.edit(metadata.RemoveTopic{ID: ordersID})
	b.wantCommitted("g", -1)
	// One that is deleted and made again while the shard is elsewhere has another id.
	b.edit(newTopic("orders", ordersID, 4)...)
	b.commit("g", 8)
	b.resign()
	b.edit(metadata.RemoveTopic{ID: ordersID})
	b.edit(newTopic("orders", kafka.TopicID{2}, 4)...)
	b.lead(2, 1)
	b.ready("g")
	b.wantCommitted("g", -1)
}

func TestEmptyPartitionsHaveNoShardUntilSomebodyAsks(t *testing.T) {
	fsys := vfs.NewMem()
	b := start(t, fsys, 50, 1, 1)
	var mu sync.Mutex
	var touched []string
	fsys.Rule(func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		touched = append(touched, fmt.Sprint(op.Kind, " ", op.Name))
		return nil
	})
	b.follow()
	if n := len(b.c.Shards()); n != 0 {
		t.Errorf("%d shards of empty partitions", n)
	}
	b.wantCommitted("g", -1)
	if n := len(b.c.Shards()); n != 1 {
		t.Errorf("%d shards after a question to one", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(touched) > 0 {
		t.Errorf("files were touched: %q", touched)
	}
}

func TestTheOffsetsTopicIsMadeOnce(t *testing.T) {
	b := start(t, vfs.NewMem(), 4, 1, 1)
	b.edit(metadata.RemoveTopic{ID: offsetsID})
	if n := b.c.Shard("g"); n != -1 {
		t.Fatalf("the shard without a topic is %d", n)
	}
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { b.ready(fmt.Sprint("group", i)) })
	}
	all.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mu.made) != 1 {
		t.Fatalf("made %d times", len(b.mu.made))
	}
	topic := b.mu.made[0].Topics[0]
	if topic.Name != coordinator.OffsetsTopic || topic.Partitions != 4 || topic.ReplicationFactor != 1 || *topic.Configs[0].Value != "compact" {
		t.Errorf("made as %+v", topic)
	}
}

func TestLateMembersLeaveByOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, vfs.NewMem(), 4, 1, 1)
		defer b.c.Close()
		late, alive := b.joined("late"), b.joined("alive")
		for range 3 {
			time.Sleep(5 * time.Second)
			if code := b.heartbeat("alive", alive); code != kafka.None {
				t.Fatalf("heartbeat of the living: %v", code)
			}
		}
		if code := b.heartbeat("late", late); code != kafka.UnknownMemberID {
			t.Errorf("heartbeat after the session timed out: %v", code)
		}
	})
}

func TestCloseAnswersWhatWaits(t *testing.T) {
	b := start(t, vfs.NewMem(), 1, 1, 1)
	b.joined("g")
	second := b.ask("g", joinOf("g", ""))
	b.c.Close()
	if j := answered[*kmsg.JoinGroupResponse](t, second); kafka.Code(j.ErrorCode) != kafka.NotCoordinator {
		t.Errorf("the join that waited: %v", kafka.Code(j.ErrorCode))
	}
	if code := b.commit("g", 1); code != kafka.NotCoordinator {
		t.Errorf("a commit after Close: %v", code)
	}
}
