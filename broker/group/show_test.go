package group

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

func (st *story) show(records []Record, replies []Reply) string {
	st.log = append(st.log, records...)
	var out strings.Builder
	for _, r := range records {
		fmt.Fprintf(&out, "+ %s\n", showRecord(r))
	}
	for _, r := range replies {
		fmt.Fprintf(&out, "< %d %s\n", r.ID, showResponse(r.Response))
	}
	return out.String()
}

func showRecord(r Record) string {
	if r.Key[1] == groupKeyVersion {
		var k kmsg.GroupMetadataKey
		var v kmsg.GroupMetadataValue
		if k.ReadFrom(r.Key); r.Value == nil {
			return fmt.Sprintf("group %s gone", k.Group)
		}
		if err := v.ReadFrom(r.Value); err != nil {
			return err.Error()
		}
		s := fmt.Sprintf("group %s type %q generation %d protocol %s leader %s since %d", k.Group, v.ProtocolType, v.Generation,
			text(v.Protocol), text(v.Leader), v.CurrentStateTimestamp)
		for _, p := range v.Members {
			s += fmt.Sprintf("; %s instance %s of %s%s timeouts %d %d said %s has %q", p.MemberID, text(p.InstanceID), p.ClientID, p.ClientHost,
				p.SessionTimeoutMillis, p.RebalanceTimeoutMillis, topics(p.Subscription), p.Assignment)
		}
		return s
	}
	var k kmsg.OffsetCommitKey
	var v kmsg.OffsetCommitValue
	if k.ReadFrom(r.Key); r.Value == nil {
		return fmt.Sprintf("offset %s %s-%d gone", k.Group, k.Topic, k.Partition)
	}
	if err := v.ReadFrom(r.Value); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("offset %s %s-%d = %d v%d at %d expires %d", k.Group, k.Topic, k.Partition, v.Offset, v.Version, v.CommitTimestamp, v.ExpireTimestamp)
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func topics(b []byte) string {
	var said kmsg.ConsumerMemberMetadata
	if len(b) == 0 || said.ReadFrom(b) != nil {
		return fmt.Sprintf("%q", b)
	}
	return strings.Join(said.Topics, "+")
}

func showResponse(r kmsg.Response) string {
	switch r := r.(type) {
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode != 0 {
			return fmt.Sprintf("join %v member %q", kafka.Code(r.ErrorCode), r.MemberID)
		}
		s := fmt.Sprintf("joined generation %d as %s, leader %s, %s %s", r.Generation, r.MemberID, r.LeaderID, text(r.ProtocolType), text(r.Protocol))
		if r.SkipAssignment {
			s += ", skip assignment"
		}
		for _, p := range r.Members {
			s += fmt.Sprintf("; %s instance %s said %s", p.MemberID, text(p.InstanceID), topics(p.ProtocolMetadata))
		}
		return s
	case *kmsg.SyncGroupResponse:
		return fmt.Sprintf("sync %v %q", kafka.Code(r.ErrorCode), r.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		return fmt.Sprintf("heartbeat %v", kafka.Code(r.ErrorCode))
	case *kmsg.LeaveGroupResponse:
		s := fmt.Sprintf("leave %v", kafka.Code(r.ErrorCode))
		for _, p := range r.Members {
			s += fmt.Sprintf("; %s %s %v", p.MemberID, text(p.InstanceID), kafka.Code(p.ErrorCode))
		}
		return s
	case *kmsg.OffsetCommitResponse:
		s := "commit"
		for _, t := range r.Topics {
			s += fmt.Sprintf(" %s-%d %v", t.Topic, t.Partitions[0].Partition, kafka.Code(t.Partitions[0].ErrorCode))
		}
		return s
	case *kmsg.OffsetFetchResponse:
		return showFetch(r)
	case *kmsg.OffsetDeleteResponse:
		s := fmt.Sprintf("offset-delete %v", kafka.Code(r.ErrorCode))
		for _, t := range r.Topics {
			s += fmt.Sprintf(" %s-%d %v", t.Topic, t.Partitions[0].Partition, kafka.Code(t.Partitions[0].ErrorCode))
		}
		return s
	case *kmsg.DescribeGroupsResponse:
		d := r.Groups[0]
		s := fmt.Sprintf("%v %s %s type %q protocol %q", kafka.Code(d.ErrorCode), d.Group, d.State, d.ProtocolType, d.Protocol)
		for _, p := range d.Members {
			s += fmt.Sprintf("; %s instance %s %s %s said %s has %q", p.MemberID, text(p.InstanceID), p.ClientID, p.ClientHost,
				topics(p.ProtocolMetadata), p.MemberAssignment)
		}
		return s
	case *kmsg.ListGroupsResponse:
		s := "list"
		for _, g := range r.Groups {
			s += fmt.Sprintf(" %s(%s %s %s)", g.Group, g.ProtocolType, g.GroupState, g.GroupType)
		}
		return s
	case *kmsg.DeleteGroupsResponse:
		return fmt.Sprintf("delete %v", kafka.Code(r.Groups[0].ErrorCode))
	}
	return fmt.Sprintf("%T", r)
}

func showFetch(r *kmsg.OffsetFetchResponse) string {
	s := fmt.Sprintf("fetch %v", kafka.Code(r.ErrorCode))
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			s += fmt.Sprintf(" %s-%d=%d %q %v", t.Topic, p.Partition, p.Offset, text(p.Metadata), kafka.Code(p.ErrorCode))
		}
	}
	for _, g := range r.Groups {
		s += fmt.Sprintf(" %s: %v", g.Group, kafka.Code(g.ErrorCode))
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				s += fmt.Sprintf(" %s-%d=%d %q", t.Topic, p.Partition, p.Offset, text(p.Metadata))
			}
		}
	}
	return s
}
