package servers

import (
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPomIsWhatMavenReads(t *testing.T) {
	for _, set := range []jarSet{hadoopJars("3.5.0"), zooKeeperJars("3.9.5"), zooKeeperJars("3.4.14"), kafkaJars(), kafkaStoreJar()} {
		var pom struct {
			Dependencies []struct {
				ArtifactID string `xml:"artifactId"`
				Version    string `xml:"version"`
			} `xml:"dependencies>dependency"`
		}
		if err := xml.Unmarshal(set.pom(), &pom); err != nil {
			t.Errorf("%s: %v", set, err)
		}
		if len(pom.Dependencies) != len(set.artifacts) || pom.Dependencies[0].Version != set.version {
			t.Errorf("%s: the pom names %v", set, pom.Dependencies)
		}
	}
}

func TestAnotherPomIsAnotherFolder(t *testing.T) {
	t.Setenv("VARVE_CACHE", t.TempDir())
	a, b := hadoopJars("3.5.0"), hadoopJars("3.5.0")
	b.artifacts[0].classifier = "tests"
	dirA, errA := a.dir()
	dirB, errB := b.dir()
	if errA != nil || errB != nil || dirA == dirB {
		t.Fatalf("%s and %s (%v, %v): one folder for two sets", dirA, dirB, errA, errB)
	}
}

func TestFailedFetchLeavesNothingThatLooksWhole(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("VARVE_CACHE", cache)
	bin := t.TempDir()
	// a Maven that brings one jar and then fails, as a cut connection makes it
	script := "#!/bin/sh\nmkdir lib; : > lib/half.jar; echo no route to the repository; exit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "mvn"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	_, err := kafkaStoreJar().fetch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no route to the repository") {
		t.Fatalf("error %v; want what Maven said", err)
	}
	if kafkaStoreJar().fetched() {
		t.Error("the half set is taken for a whole one")
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "jars", "fetching-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSecondFetchWaitsForTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); err == nil {
		t.Fatal("two hold one lock")
	}
	unlock()
	unlock, err = lock(t.Context(), path)
	if err != nil {
		t.Fatalf("the lock is not free after its holder: %v", err)
	}
	unlock()
}

func TestFreePortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d was given twice", port)
		}
		seen[port] = true
	}
}
