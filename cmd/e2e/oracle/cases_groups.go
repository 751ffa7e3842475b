package oracle

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupCases are the stories of coordinators, classic groups and their offsets.
func groupCases() []Case {
	return []Case{
		{"find a coordinator", findCoordinator},
		{"a member's life", memberLife},
		{"joining wrongly", joinWrong},
		{"a static member", staticMember},
		{"committing and fetching offsets", commitAndFetch},
		{"offsets of no group", offsetsOfNoGroup},
		{"describing, listing and deleting groups", groupAdmin},
	}
}

func findCoordinator(x *Exchange) {
	x.Coordinator()
	x.Each(10, func(v int16) {
		ask := func(step string, kind int8, keys ...string) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrFindCoordinatorRequest())
				req.CoordinatorType, req.CoordinatorKeys = kind, keys
				if len(keys) > 0 {
					req.CoordinatorKey = keys[0]
				}
				return req
			}))
		}
		x.Loaded()
		ask("of a group", 0, "any")
		ask("of the empty group", 0, "")
		ask("of two groups", 0, "any", "other")
		if v >= 1 {
			ask("of a transaction", 1, "payments")
			ask("of a kind that is not there", 9, "any")
		}
		if v >= 4 {
			ask("of none", 0)
		}
	})
}

// Loaded waits until every shard of the coordinator serves: a broker that has just made
// the offsets topic may answer "loading" for a while.
func (x *Exchange) Loaded() {
	for i := range 16 {
		x.Eventually("a loaded coordinator", same(func() kmsg.Request {
			return heartbeatRequest(3, fmt.Sprintf("loaded-%d", i), "nobody", 1)
		}), func(resp kmsg.Response) bool { return resp.(*kmsg.HeartbeatResponse).ErrorCode == unknownMember })
	}
}

// unknownMember is UNKNOWN_MEMBER_ID.
const unknownMember = 25

func joinRequest(version int16, group, member string) *kmsg.JoinGroupRequest {
	req := at(version, kmsg.NewPtrJoinGroupRequest())
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30_000, 30_000
	for _, n := range []string{"range", "roundrobin"} {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = n, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
		req.Protocols = append(req.Protocols, p)
	}
	return req
}

func syncRequest(version int16, group, member string, generation int32) *kmsg.SyncGroupRequest {
	req := at(version, kmsg.NewPtrSyncGroupRequest())
	req.Group, req.MemberID, req.Generation = group, member, generation
	if version >= 5 {
		req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	}
	a := kmsg.NewSyncGroupRequestGroupAssignment()
	a.MemberID, a.MemberAssignment = member, []byte("assigned")
	req.GroupAssignment = append(req.GroupAssignment, a)
	return req
}

// Joined takes one member through join and sync, and learns its id as "member of group".
func (x *Exchange) Joined(version int16, group string) {
	member := "member of " + group
	learn := func(s *Side, resp kmsg.Response) { s.Learn(member, resp.(*kmsg.JoinGroupResponse).MemberID) }
	join := func(s *Side) kmsg.Request { return joinRequest(version, group, Learned[string](s, member)) }
	x.Learn("join", join, learn)
	if version >= 4 {
		x.Learn("join with the member id", join, learn)
	}
	x.Ask("sync", func(s *Side) kmsg.Request {
		return syncRequest(min(version, x.Versions[14].Max), group, Learned[string](s, member), 1)
	})
}

func memberOf(s *Side, group string) string { return Learned[string](s, "member of "+group) }

func heartbeatRequest(version int16, group, member string, generation int32) *kmsg.HeartbeatRequest {
	req := at(version, kmsg.NewPtrHeartbeatRequest())
	req.Group, req.MemberID, req.Generation = group, member, generation
	return req
}

func memberLife(x *Exchange) {
	x.Each(11, func(v int16) {
		group := fmt.Sprintf("life-%d", v)
		x.Joined(v, group)
		hv := min(v, x.Versions[12].Max)
		heartbeat := func(step string, group string, generation int32, member func(s *Side) string) {
			x.Ask(step, func(s *Side) kmsg.Request { return heartbeatRequest(hv, group, member(s), generation) })
		}
		mine := func(s *Side) string { return memberOf(s, group) }
		heartbeat("heartbeat", group, 1, mine)
		heartbeat("heartbeat of another generation", group, 7, mine)
		heartbeat("heartbeat of a stranger", group, 1, func(*Side) string { return "stranger" })
		heartbeat("heartbeat to no group", "life-nowhere", 1, mine)
		sv := min(v, x.Versions[14].Max)
		x.Ask("sync again", func(s *Side) kmsg.Request { return syncRequest(sv, group, mine(s), 1) })
		x.Ask("sync of another generation", func(s *Side) kmsg.Request { return syncRequest(sv, group, mine(s), 3) })
		x.Ask("sync of a stranger", func(s *Side) kmsg.Request { return syncRequest(sv, group, "stranger", 1) })
		if sv >= 5 {
			x.Ask("sync with another protocol", func(s *Side) kmsg.Request {
				req := syncRequest(sv, group, mine(s), 1)
				req.Protocol = kmsg.StringPtr("other")
				return req
			})
		}
		x.Ask("join again unchanged, as the leader", func(s *Side) kmsg.Request { return joinRequest(v, group, mine(s)) })
		heartbeat("heartbeat while the group syncs", group, 2, mine)
		lv := min(v, x.Versions[13].Max)
		leave := func(step, group string, member func(s *Side) string) {
			x.Ask(step, func(s *Side) kmsg.Request {
				req := at(lv, kmsg.NewPtrLeaveGroupRequest())
				req.Group, req.MemberID = group, member(s)
				m := kmsg.NewLeaveGroupRequestMember()
				m.MemberID = member(s)
				req.Members = append(req.Members, m)
				return req
			})
		}
		leave("leave of a stranger", group, func(*Side) string { return "stranger" })
		leave("leave", group, mine)
		leave("leave again", group, mine)
		leave("leave no group", "life-nowhere", mine)
	})
}

func joinWrong(x *Exchange) {
	x.Each(11, func(v int16) {
		ask := func(step string, change func(r *kmsg.JoinGroupRequest)) {
			x.Ask(step, same(func() kmsg.Request {
				req := joinRequest(v, fmt.Sprintf("wrong-%d", v), "")
				change(req)
				return req
			}))
		}
		ask("an empty group", func(r *kmsg.JoinGroupRequest) { r.Group = "" })
		ask("a member id that was not given", func(r *kmsg.JoinGroupRequest) { r.MemberID = "made-up" })
		ask("a short session", func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 10 })
		ask("a long session", func(r *kmsg.JoinGroupRequest) { r.SessionTimeoutMillis = 1 << 30 })
		ask("no protocols", func(r *kmsg.JoinGroupRequest) { r.Protocols = nil })
		ask("no protocol type", func(r *kmsg.JoinGroupRequest) { r.ProtocolType = "" })
	})
}

func staticMember(x *Exchange) {
	x.Each(11, func(v int16) {
		if v < 5 {
			return
		}
		group := fmt.Sprintf("static-%d", v)
		instance := kmsg.StringPtr("instance")
		join := func(member string) *kmsg.JoinGroupRequest {
			req := joinRequest(v, group, member)
			req.InstanceID = instance
			return req
		}
		learn := func(s *Side, resp kmsg.Response) {
			s.Learn("member of "+group, resp.(*kmsg.JoinGroupResponse).MemberID)
		}
		x.Learn("join", func(*Side) kmsg.Request { return join("") }, learn)
		sync := func(s *Side) kmsg.Request {
			req := syncRequest(min(v, x.Versions[14].Max), group, memberOf(s, group), 1)
			req.InstanceID = instance
			return req
		}
		x.Ask("sync", sync)
		x.Learn("join of a restarted instance", func(*Side) kmsg.Request { return join("") }, func(s *Side, resp kmsg.Response) {
			s.Learn("old member of "+group, memberOf(s, group))
			learn(s, resp)
		})
		x.Ask("heartbeat of the old one", func(s *Side) kmsg.Request {
			req := heartbeatRequest(min(v, x.Versions[12].Max), group, Learned[string](s, "old member of "+group), 1)
			req.InstanceID = instance
			return req
		})
		x.Ask("heartbeat of the new one", func(s *Side) kmsg.Request {
			req := heartbeatRequest(min(v, x.Versions[12].Max), group, memberOf(s, group), 1)
			req.InstanceID = instance
			return req
		})
		x.Ask("leave by instance", same(func() kmsg.Request {
			req := at(3, kmsg.NewPtrLeaveGroupRequest())
			req.Group = group
			m := kmsg.NewLeaveGroupRequestMember()
			m.InstanceID = instance
			req.Members = append(req.Members, m)
			return req
		}))
	})
}

func commitRequest(s *Side, version int16, group, member string, generation int32, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	req := at(version, kmsg.NewPtrOffsetCommitRequest())
	req.Group, req.MemberID, req.Generation = group, member, generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, topicID(s, topic)
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Metadata = partition, offset, kmsg.StringPtr("note")
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func fetchOffsets(s *Side, version int16, group, topic string, partitions ...int32) *kmsg.OffsetFetchRequest {
	req := at(version, kmsg.NewPtrOffsetFetchRequest())
	req.Group = group
	t := kmsg.NewOffsetFetchRequestTopic()
	t.Topic, t.Partitions = topic, partitions
	req.Topics = append(req.Topics, t)
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch = group, -1
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic, gt.TopicID, gt.Partitions = topic, topicID(s, topic), partitions
	g.Topics = append(g.Topics, gt)
	req.Groups = append(req.Groups, g)
	return req
}

func commitAndFetch(x *Exchange) {
	x.Topic("committed", 2)
	x.Each(8, func(v int16) {
		alone := fmt.Sprintf("alone-%d", v)
		ask := func(step, group, member string, generation int32, topic string, partition int32, offset int64) {
			x.Ask(step, func(s *Side) kmsg.Request {
				return commitRequest(s, v, group, member, generation, topic, partition, offset)
			})
		}
		ask("without members", alone, "", -1, "committed", 0, 5)
		ask("to a partition that is not there", alone, "", -1, "committed", 9, 5)
		ask("to a topic that is not there", alone, "", -1, "uncommitted", 0, 5)
		ask("with a member id to an empty group", alone, "stranger", 3, "committed", 0, 6)
		ask("with a generation to a group that is not there", alone+"-not", "stranger", 3, "committed", 0, 6)
		ask("to the empty group id", "", "", -1, "committed", 0, 6)
		x.Ask("with long metadata", func(s *Side) kmsg.Request {
			req := commitRequest(s, v, alone, "", -1, "committed", 1, 5)
			req.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(string(make([]byte, 5000)))
			return req
		})
		group := fmt.Sprintf("committing-%d", v)
		x.Joined(7, group)
		x.Ask("of a member", func(s *Side) kmsg.Request {
			return commitRequest(s, v, group, memberOf(s, group), 1, "committed", 0, 8)
		})
		x.Ask("of a member in another generation", func(s *Side) kmsg.Request {
			return commitRequest(s, v, group, memberOf(s, group), 4, "committed", 0, 9)
		})
		ask("of a stranger", group, "stranger", 1, "committed", 0, 9)
		ask("of nobody in a living group", group, "", -1, "committed", 0, 9)
	})
	x.Each(9, func(v int16) {
		x.Ask("what was committed", func(s *Side) kmsg.Request { return fetchOffsets(s, v, "committing-8", "committed", 0, 1, 7) })
		x.Ask("of a group that is not there", func(s *Side) kmsg.Request { return fetchOffsets(s, v, "never-was", "committed", 0) })
		x.Ask("of a topic that is not there", func(s *Side) kmsg.Request { return fetchOffsets(s, v, "committing-8", "uncommitted", 0) })
		x.Ask("of the empty group id", func(s *Side) kmsg.Request { return fetchOffsets(s, v, "", "committed", 0) })
		if v >= 2 {
			x.Ask("everything", func(s *Side) kmsg.Request {
				req := fetchOffsets(s, v, "committing-8", "committed", 0)
				req.Topics, req.Groups[0].Topics = nil, nil
				return req
			})
		}
		if v >= 7 {
			x.Ask("stable", func(s *Side) kmsg.Request {
				req := fetchOffsets(s, v, "committing-8", "committed", 0)
				req.RequireStable = true
				return req
			})
		}
	})
}

func offsetsOfNoGroup(x *Exchange) {
	x.Topic("offsetless", 1)
	x.Each(47, func(v int16) {
		remove := func(step, group, topic string, partition int32) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrOffsetDeleteRequest())
				req.Group = group
				t := kmsg.NewOffsetDeleteRequestTopic()
				t.Topic = topic
				p := kmsg.NewOffsetDeleteRequestTopicPartition()
				p.Partition = partition
				t.Partitions = append(t.Partitions, p)
				req.Topics = append(req.Topics, t)
				return req
			}))
		}
		x.Ask("commit", func(s *Side) kmsg.Request { return commitRequest(s, 8, "deleting", "", -1, "offsetless", 0, 3) })
		remove("a committed offset", "deleting", "offsetless", 0)
		remove("an offset that is not there", "deleting", "offsetless", 0)
		remove("of a partition that is not there", "deleting", "offsetless", 8)
		remove("of a group that is not there", "never-deleted", "offsetless", 0)
	})
}

func groupAdmin(x *Exchange) {
	x.Joined(7, "described")
	x.Each(15, func(v int16) {
		for _, groups := range [][]string{{"described"}, {"undescribed"}, {""}, {}} {
			x.Ask(fmt.Sprintf("describe %q", groups), same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrDescribeGroupsRequest())
				req.Groups = groups
				return req
			}))
		}
	})
	x.Each(15, func(v int16) {
		if v >= 3 {
			x.Ask("describe with authorized operations", same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrDescribeGroupsRequest())
				req.Groups, req.IncludeAuthorizedOperations = []string{"described", "undescribed"}, true
				return req
			}))
		}
	})
	x.Each(16, func(v int16) {
		list := func(step string, states, types []string) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrListGroupsRequest())
				req.StatesFilter, req.TypesFilter = states, types
				return req
			}))
		}
		list("all", nil, nil)
		if v >= 4 {
			list("that are stable", []string{"Stable"}, nil)
			list("that are stable, in small letters", []string{"stable"}, nil)
			list("in no state that is", []string{"Nowhere"}, nil)
			list("that prepare", []string{"PreparingRebalance"}, nil)
		}
		if v >= 5 {
			list("that are classic", nil, []string{"classic"})
			list("that are consumer", nil, []string{"Consumer"})
			list("of a type that is not there", nil, []string{"other"})
		}
	})
	x.Each(42, func(v int16) {
		x.Topic("deletable", 1)
		remove := func(step string, groups ...string) {
			x.Ask(step, same(func() kmsg.Request {
				req := at(v, kmsg.NewPtrDeleteGroupsRequest())
				req.Groups = groups
				return req
			}))
		}
		x.Ask("commit", func(s *Side) kmsg.Request { return commitRequest(s, 8, "empty", "", -1, "deletable", 0, 3) })
		remove("an empty group", "empty")
		remove("once more", "empty")
		remove("a living group", "described")
		remove("the empty id", "")
		remove("none")
	})
}
