package controller

import (
	"maps"
	"slices"
	"strings"

	"varve/broker/kafka"
	"varve/broker/metadata"
)

// maxConfigValue bounds a setting's value in bytes.
const maxConfigValue = 32767

func (c *Machine) alterConfigs(req AlterConfigs) Outcome {
	type resource struct {
		t    metadata.ResourceType
		name string
	}
	twice := repeated(req.Resources, func(r AlterResource) resource { return resource{r.Type, r.Name} })
	var out Outcome
	var answer ConfigsAltered
	for _, r := range req.Resources {
		done := ResourceAltered{Type: r.Type, Name: r.Name}
		var records []metadata.Record
		if hasKey(twice, resource{r.Type, r.Name}) {
			done.Err = kafka.Refuse(kafka.InvalidRequest, "Each resource must appear at most once.")
		} else {
			records, done.Err = c.alterResource(r, req.Replace)
		}
		out.Records = append(out.Records, records...)
		answer.Resources = append(answer.Resources, done)
	}
	if req.ValidateOnly {
		out.Records = nil
	}
	out.Answer = answer
	return out
}

func (c *Machine) alterResource(r AlterResource, replace bool) ([]metadata.Record, *kafka.Error) {
	if err := checkOps(r.Ops); err != nil {
		return nil, err
	}
	if err := c.checkThere(r); err != nil {
		return nil, err
	}
	old := c.spec.Config(r.Type, r.Name)
	settings := maps.Clone(old)
	if settings == nil || replace {
		settings = map[string]string{}
	}
	for _, op := range r.Ops {
		if err := c.alterOneSetting(settings, r.Type, op); err != nil {
			return nil, err
		}
	}
	if err := c.checkSettings(r.Type, r.Name, settings); err != nil {
		return nil, err
	}
	changed := difference(old, settings)
	if len(changed) == 0 {
		return nil, nil
	}
	return []metadata.Record{metadata.Config{Type: r.Type, Name: r.Name, Settings: changed}}, nil
}

func checkOps(ops []ConfigOp) *kafka.Error {
	if len(repeated(ops, func(op ConfigOp) string { return op.Name })) > 0 {
		return kafka.Refuse(kafka.InvalidRequest, "Error due to duplicate config keys")
	}
	var null []string
	for _, op := range ops {
		if op.Value == nil && op.Kind != OpDelete {
			null = append(null, op.Name)
		}
	}
	if null != nil {
		return kafka.Refuse(kafka.InvalidRequest, "Null value not supported for : %s", strings.Join(null, ", "))
	}
	for _, op := range ops {
		if op.Kind < OpSet || op.Kind > OpSubtract {
			return kafka.Refuse(kafka.InvalidRequest, "Unknown operations type %d", op.Kind)
		}
	}
	return nil
}

// checkThere refuses settings of what does not exist.
func (c *Machine) checkThere(r AlterResource) *kafka.Error {
	switch r.Type {
	case metadata.TopicResource:
		if err := CheckTopicName(r.Name); err != nil {
			return err
		}
		if _, ok := c.spec.Topic(r.Name); !ok {
			return kafka.Refuse(kafka.UnknownTopicOrPartition, "The topic '%s' does not exist.", r.Name)
		}
	case metadata.BrokerResource, metadata.GroupResource, metadata.ClientMetricsResource:
	default:
		return kafka.Refuse(kafka.InvalidRequest, "Unknown resource type %d", r.Type)
	}
	return nil
}

func (c *Machine) alterOneSetting(settings map[string]string, t metadata.ResourceType, op ConfigOp) *kafka.Error {
	switch op.Kind {
	case OpSet:
		settings[op.Name] = *op.Value
	case OpDelete:
		delete(settings, op.Name)
	case OpAppend, OpSubtract:
		fallback, list := c.cfg.ListDefault(t, op.Name)
		if !list {
			return kafka.Refuse(kafka.InvalidConfig, "Can't %s to key %s because its type is not LIST.", opNames[op.Kind], op.Name)
		}
		value, ok := settings[op.Name]
		if !ok {
			value = fallback
		}
		settings[op.Name] = alterList(value, *op.Value, op.Kind)
	}
	if len(settings[op.Name]) > maxConfigValue {
		return kafka.Refuse(kafka.InvalidConfig, "The configuration value cannot be added because it exceeds the maximum value size of %d bytes.", maxConfigValue)
	}
	return nil
}

var opNames = map[OpKind]string{OpAppend: "APPEND", OpSubtract: "SUBTRACT"}

// alterList adds or takes away the elements of change.
func alterList(value, change string, kind OpKind) string {
	list := elements(value)
	for _, e := range elements(change) {
		at := slices.Index(list, e)
		switch {
		case kind == OpAppend && at < 0:
			list = append(list, e)
		case kind == OpSubtract && at >= 0:
			list = slices.Delete(list, at, at+1)
		}
	}
	return strings.Join(list, ",")
}

func elements(s string) (out []string) {
	for _, e := range strings.Split(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

func (c *Machine) checkSettings(t metadata.ResourceType, name string, settings map[string]string) *kafka.Error {
	for _, v := range settings {
		if len(v) > maxConfigValue {
			return kafka.Refuse(kafka.InvalidConfig, "The configuration value cannot be added because it exceeds the maximum value size of %d bytes.", maxConfigValue)
		}
	}
	return c.cfg.CheckConfig(t, name, settings)
}

// difference is what turns old into new, by key.
func difference(old, new map[string]string) []metadata.Setting {
	var out []metadata.Setting
	for k, v := range new {
		if was, ok := old[k]; !ok || was != v {
			out = append(out, metadata.Setting{Key: k, Value: &v})
		}
	}
	for k := range old {
		if _, ok := new[k]; !ok {
			out = append(out, metadata.Setting{Key: k})
		}
	}
	slices.SortFunc(out, func(a, b metadata.Setting) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// pairs are settings as a record has them.
func pairs(settings map[string]string) []metadata.Setting { return difference(nil, settings) }
