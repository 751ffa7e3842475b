package hdfs

import (
	"strings"
	"testing"
)

func TestURLNamesANameNodeAndAFolder(t *testing.T) {
	for url, want := range map[string][2]string{
		"hdfs://nn:9000/varve":    {"nn:9000", "/varve"},
		"hdfs://nn/a/b/":          {"nn", "/a/b"},
		"hdfs://ns1/a//b":         {"ns1", "/a/b"},
		"hdfs://[::1]:9000/varve": {"[::1]:9000", "/varve"},
	} {
		authority, root, err := parseURL(url)
		if err != nil || authority != want[0] || root != want[1] {
			t.Errorf("parseURL(%q) = %q, %q, %v, want %q", url, authority, root, err, want)
		}
	}
}

func TestOtherURLsAreRefusedWithASentence(t *testing.T) {
	for url, reason := range map[string]string{
		"viewfs://cluster/varve": "mounts", "s3a://bucket/varve": "object store", "ofs://om/vol/bucket": "Ozone",
		"webhdfs://nn:9870/varve": "RPC port", "hdfs:///varve": "names no NameNode", "hdfs://nn:9000": "root of HDFS",
		"hdfs://nn:9000/": "root of HDFS", "/varve": "want hdfs://", "hdfs://u@nn/varve": "nothing more", "hdfs://nn/v?x=1": "nothing more",
		"hdfs://nn:port/varve": "port",
	} {
		if _, _, err := parseURL(url); err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), url) {
			t.Errorf("parseURL(%q) = %v, want a refusal with %q", url, err, reason)
		}
	}
}

func TestAddressesGetTheUsualPort(t *testing.T) {
	for in, want := range map[string]string{"nn": "nn:8020", "nn:9000": "nn:9000", "[::1]": "[::1]:8020", "[::1]:9": "[::1]:9"} {
		if got := withPort(in); got != want {
			t.Errorf("withPort(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestUserIsThatOfTheEnvironment(t *testing.T) {
	t.Setenv("HADOOP_USER_NAME", "ann")
	s, err := Open("hdfs://nn/varve", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.o.User != "ann" || s.o.NameNodes[0] != "nn:8020" || s.URL() != "hdfs://nn/varve" {
		t.Fatalf("user %q, NameNodes %q, URL %q", s.o.User, s.o.NameNodes, s.URL())
	}
}
