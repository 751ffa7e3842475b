package controller

import (
	"varve/broker/kafka"
	"varve/broker/metadata"
)

// maxNameLength bounds topic names: with "-" and a partition number they are folders.
const maxNameLength = 249

// metadataTopic is the name of KRaft's log; nobody may make a topic of it.
const metadataTopic = "__cluster_metadata"

// CheckTopicName refuses names that no topic may have.
func CheckTopicName(name string) *kafka.Error {
	reason := ""
	switch {
	case name == "":
		reason = "the empty string is not allowed"
	case name == "." || name == "..":
		reason = "'" + name + "' is not allowed"
	case len(name) > maxNameLength:
		reason = "the length of '" + name + "' is longer than the max allowed length 249"
	case !plainName(name):
		reason = "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	default:
		return nil
	}
	return kafka.Refuse(kafka.InvalidTopicException, "Topic name is invalid: %s", reason)
}

func plainName(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// checkNewName also refuses names that are taken or collide in metric names.
func checkNewName(img *metadata.Image, name string) *kafka.Error {
	if name == metadataTopic {
		return kafka.Refuse(kafka.InvalidRequest, "Creation of internal topic %s is prohibited.", metadataTopic)
	}
	if err := CheckTopicName(name); err != nil {
		return err
	}
	if _, ok := img.Topic(name); ok {
		return kafka.Refuse(kafka.TopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	if other, ok := img.Colliding(name); ok {
		return kafka.Refuse(kafka.InvalidTopicException, "Topic '%s' collides with existing topic: %s", name, other)
	}
	return nil
}

// repeated is the set of keys that occur more than once.
func repeated[T any, K comparable](list []T, key func(T) K) map[K]bool {
	seen, twice := map[K]bool{}, map[K]bool{}
	for _, x := range list {
		if k := key(x); seen[k] {
			twice[k] = true
		} else {
			seen[k] = true
		}
	}
	return twice
}
