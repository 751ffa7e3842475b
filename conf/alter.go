package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Op is what IncrementalAlterConfigs does to one key. The numbers are the
// protocol's.
type Op int8

const (
	OpSet      Op = 0
	OpDelete   Op = 1
	OpAppend   Op = 2
	OpSubtract Op = 3
)

// String is Kafka's name of the operation, as in its errors.
func (o Op) String() string { return [...]string{"SET", "DELETE", "APPEND", "SUBTRACT"}[o] }

// Alteration is one operation on one key.
type Alteration struct {
	Name  string
	Op    Op
	Value *string // nil with OpDelete
}

// RequestError is an alteration that is malformed: INVALID_REQUEST.
type RequestError struct{ Reason string }

func (e *RequestError) Error() string { return e.Reason }

// AlterTopic applies alterations to a topic's own configs and returns what
// they become, all or nothing; own is not changed. The error is a
// *RequestError, a *TopicError or a *ValueError.
func (c *Config) AlterTopic(own map[string]string, alterations []Alteration) (map[string]string, error) {
	if err := wellFormed(alterations); err != nil {
		return nil, err
	}
	next := maps.Clone(own)
	if next == nil {
		next = map[string]string{}
	}
	for _, a := range alterations {
		if err := c.alter(next, a); err != nil {
			return nil, err
		}
	}
	if err := c.ValidateTopic(own, next); err != nil {
		return nil, err
	}
	return next, nil
}

// wellFormed refuses what Kafka refuses before it looks at any key.
func wellFormed(alterations []Alteration) error {
	var nulls []string
	seen := map[string]bool{}
	for _, a := range alterations {
		if a.Op < OpSet || a.Op > OpSubtract {
			return &RequestError{fmt.Sprintf("Unknown operation type %d for configuration %s", a.Op, a.Name)}
		}
		if seen[a.Name] {
			return &RequestError{"Error due to duplicate config keys"}
		}
		seen[a.Name] = true
		if a.Op != OpDelete && a.Value == nil {
			nulls = append(nulls, a.Name)
		}
	}
	if len(nulls) > 0 {
		return &RequestError{"Null value not supported for : " + strings.Join(nulls, ", ")}
	}
	return nil
}

func (c *Config) alter(configs map[string]string, a Alteration) error {
	switch a.Op {
	case OpSet:
		configs[a.Name] = *a.Value
		return nil
	case OpDelete:
		delete(configs, a.Name)
		return nil
	}
	k := exact(a.Name)
	if k == nil || k.Type != List {
		return &TopicError{fmt.Sprintf("Can't %s to key %s because its type is not LIST.", a.Op, a.Name)}
	}
	// A list that the topic has not set begins as the effective one.
	items := topicValues{c, configs}.list(a.Name)
	items = slices.Clone(items)
	for _, item := range strings.Split(*a.Value, ",") {
		i := slices.Index(items, item)
		switch {
		case a.Op == OpAppend && i < 0:
			items = append(items, item)
		case a.Op == OpSubtract && i >= 0:
			items = slices.Delete(items, i, i+1)
		}
	}
	configs[a.Name] = strings.Join(items, ",")
	return nil
}
