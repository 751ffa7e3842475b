package tier

import (
	"fmt"
	"strings"
)

// CheckName tells whether name is one that a Store takes: slash-separated elements
// under the root, none of them empty, "." or "..", no byte below 0x20, no colon
// (HDFS has none). "" is the root itself.
func CheckName(name string) error {
	if name == "" {
		return nil
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element == "." || element == ".." {
			return fmt.Errorf("name %q has an element %q", name, element)
		}
	}
	for _, r := range name {
		if r < ' ' || r == ':' || r == '\uFFFD' {
			return fmt.Errorf("name %q has the character %q", name, r)
		}
	}
	return nil
}

// Parent splits a name into its folder and its last element; the folder of a name
// of one element is "", the root.
func Parent(name string) (dir, base string) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", name
	}
	return name[:i], name[i+1:]
}
