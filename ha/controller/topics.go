package controller

import (
	"strings"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// recordSlots bounds the partitions of one record.
const recordSlots = 1000

func (c *Machine) createTopics(req CreateTopics) Outcome {
	if err := c.tooMany(req.Topics); err != nil {
		return Outcome{Answer: refuseAll(req.Topics, err)}
	}
	img := c.spec // with what this request has made so far
	twice := repeated(req.Topics, func(t NewTopic) string { return t.Name })
	var out Outcome
	var answer TopicsCreated
	for _, t := range req.Topics {
		if again, ok := twice[t.Name]; ok {
			if again { // answered once
				twice[t.Name] = false
				answer.Topics = append(answer.Topics, TopicCreated{Name: t.Name, Err: duplicateName()})
			}
			continue
		}
		records, made := c.createTopic(img, t)
		answer.Topics = append(answer.Topics, made)
		img = img.Apply(img.N(), records)
		out.Records = append(out.Records, records...)
	}
	if req.ValidateOnly {
		out.Records = nil
	}
	out.Answer, out.Atomic = answer, true
	return out
}

func duplicateName() *kafka.Error { return kafka.Refuse(kafka.InvalidRequest, "Duplicate topic name.") }

// tooMany refuses requests for more partitions than a batch may hold.
func (c *Machine) tooMany(topics []NewTopic) *kafka.Error {
	total := 0
	for _, t := range topics {
		switch {
		case len(t.Assignments) > 0:
			total += len(t.Assignments)
		case t.Partitions == -1:
			total += int(c.cfg.DefaultPartitions)
		default:
			total += int(max(t.Partitions, 0))
		}
	}
	if total > c.cfg.MaxPartitions {
		return kafka.Refuse(kafka.PolicyViolation, "Excessively large number of partitions per request.")
	}
	return nil
}

func refuseAll(topics []NewTopic, err *kafka.Error) TopicsCreated {
	var answer TopicsCreated
	seen := map[string]bool{}
	for _, t := range topics {
		if !seen[t.Name] {
			answer.Topics = append(answer.Topics, TopicCreated{Name: t.Name, Err: err})
		}
		seen[t.Name] = true
	}
	return answer
}

func (c *Machine) createTopic(img *metadata.Image, t NewTopic) ([]metadata.Record, TopicCreated) {
	refused := func(err *kafka.Error) ([]metadata.Record, TopicCreated) {
		return nil, TopicCreated{Name: t.Name, Err: err}
	}
	if err := checkNewName(img, t.Name); err != nil {
		return refused(err)
	}
	settings, err := c.newSettings(t)
	if err != nil {
		return refused(err)
	}
	sets, err := c.assignNew(img, t)
	if err != nil {
		return refused(err)
	}
	id := c.cfg.NewID()
	records := []metadata.Record{metadata.NewTopic{ID: id, Name: t.Name}}
	records = append(records, newPartitions(img, id, 0, sets)...)
	if len(settings) > 0 {
		records = append(records, metadata.Config{Type: metadata.TopicResource, Name: t.Name, Settings: pairs(settings)})
	}
	return records, TopicCreated{
		Name: t.Name, ID: id, Partitions: int32(len(sets)),
		ReplicationFactor: int16(len(sets[0])), Configs: settings,
	}
}

func (c *Machine) newSettings(t NewTopic) (map[string]string, *kafka.Error) {
	var null []string
	settings := map[string]string{}
	for _, s := range t.Configs {
		if s.Value == nil {
			null = append(null, s.Name)
			continue
		}
		settings[s.Name] = *s.Value
	}
	if null != nil {
		return nil, kafka.Refuse(kafka.InvalidConfig, "Null value not supported for topic configs: %s", strings.Join(null, ","))
	}
	if len(settings) == 0 {
		return settings, nil
	}
	return settings, c.checkSettings(metadata.TopicResource, t.Name, settings)
}

// newPartitions are the records of partitions from first on, each with its brokers.
// The first live one leads, the live ones are in sync.
func newPartitions(img *metadata.Image, id kafka.TopicID, first int32, assigned [][]kafka.BrokerID) []metadata.Record {
	var out []metadata.Record
	for from := 0; from < len(assigned); from += recordSlots {
		p := metadata.Partitions{Topic: id}
		for i := from; i < min(from+recordSlots, len(assigned)); i++ {
			set := metadata.ReplicaSet{Replicas: assigned[i]}
			slot := metadata.Slot{Partition: first + int32(i), Set: len(p.Sets), Leader: -1, LastLeader: -1}
			for place, b := range set.Replicas {
				if !img.Live(b) {
					continue
				}
				slot.ISR = slot.ISR.With(place)
				if slot.Leader < 0 {
					slot.Leader = int8(place)
				}
			}
			p.Sets = append(p.Sets, set)
			p.Slots = append(p.Slots, slot)
		}
		out = append(out, p)
	}
	return out
}

func (c *Machine) deleteTopics(req DeleteTopics) Outcome {
	img := c.spec
	names := repeated(req.Topics, func(t TopicRef) string {
		if t.Name == nil {
			return ""
		}
		return *t.Name
	})
	ids := repeated(req.Topics, func(t TopicRef) kafka.TopicID { return t.ID })
	byID := map[kafka.TopicID]bool{}
	for _, t := range req.Topics {
		if t.Name == nil {
			byID[t.ID] = true
		}
	}
	var out Outcome
	var answer TopicsDeleted
	for _, ref := range req.Topics {
		var d TopicDeleted
		switch {
		case ref.Name == nil && ref.ID.IsZero():
			d.Err = kafka.Refuse(kafka.InvalidRequest, "Neither topic name nor id were specified.")
		case ref.Name != nil && !ref.ID.IsZero():
			d = TopicDeleted{*ref.Name, ref.ID, kafka.Refuse(kafka.InvalidRequest, "You may not specify both topic name and topic id.")}
		case ref.Name != nil && hasKey(names, *ref.Name):
			if !names[*ref.Name] {
				continue // answered already
			}
			names[*ref.Name] = false
			d = TopicDeleted{Name: *ref.Name, Err: duplicateName()}
		case ref.Name == nil && hasKey(ids, ref.ID):
			if !ids[ref.ID] {
				continue
			}
			ids[ref.ID] = false
			d = TopicDeleted{ID: ref.ID, Err: kafka.Refuse(kafka.InvalidRequest, "Duplicate topic id.")}
		default:
			d = find(img, ref, byID)
		}
		if d.Err == nil {
			t, _ := img.TopicByID(d.ID)
			out.Records = append(out.Records, metadata.RemoveTopic{ID: d.ID, Tiered: c.cfg.Tiered(t.Configs())})
		}
		answer.Topics = append(answer.Topics, d)
	}
	out.Answer, out.Atomic = answer, true
	return out
}

func hasKey[K comparable](m map[K]bool, k K) bool { _, ok := m[k]; return ok }

// find resolves a reference that is well formed and occurs once.
func find(img *metadata.Image, ref TopicRef, byID map[kafka.TopicID]bool) TopicDeleted {
	if ref.Name == nil {
		t, ok := img.TopicByID(ref.ID)
		if !ok {
			return TopicDeleted{ID: ref.ID, Err: kafka.Refuse(kafka.UnknownTopicID, "This server does not host this topic ID.")}
		}
		return TopicDeleted{Name: t.Name, ID: t.ID}
	}
	t, ok := img.Topic(*ref.Name)
	switch {
	case !ok:
		return TopicDeleted{Name: *ref.Name, Err: kafka.Refuse(kafka.UnknownTopicOrPartition, "This server does not host this topic-partition.")}
	case byID[t.ID]:
		return TopicDeleted{Name: t.Name, ID: t.ID, Err: kafka.Refuse(kafka.InvalidRequest, "The provided topic name maps to an ID that was already supplied.")}
	}
	return TopicDeleted{Name: t.Name, ID: t.ID}
}

func (c *Machine) forgetTopics(req ForgetTopics) Outcome {
	out := Outcome{Answer: TopicsForgotten{}}
	for _, d := range c.spec.Deleted() {
		for _, id := range req.IDs {
			if d.ID == id {
				out.Records = append(out.Records, metadata.TopicGone{ID: id})
			}
		}
	}
	return out
}
