package servers

import (
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// jarSet is what Maven fetches at once: some artifacts and all that they need.
type jarSet struct {
	name, version string
	artifacts     []artifact
}

// artifact is written group:name:version, as Maven's users write it.
type artifact struct {
	coordinates string
	classifier  string // of one that is not the artifact's main jar, such as "test"
	without     string // group of what it depends on that is left out; "*" is all
}

// hadoopJars mends what keeps Hadoops before 3.3 from running on Java 17: their
// ZooKeeper client misreads how Java 14 and later print an unresolved address
// (ZOOKEEPER-3779), so that a failover controller never connects; and 2.10 has
// two generations of ASM, of which WebHDFS bears only the older.
func hadoopJars(version string) jarSet {
	set := jarSet{"hadoop", version, []artifact{
		{coordinates: "org.apache.hadoop:hadoop-hdfs:" + version},
		{coordinates: "org.apache.hadoop:hadoop-hdfs-client:" + version},
		{coordinates: "org.apache.hadoop:hadoop-common:" + version},
	}}
	old := strings.HasPrefix(version, "2.")
	if old {
		for i := range set.artifacts {
			set.artifacts[i].without = "org.ow2.asm"
		}
	}
	if old || strings.HasPrefix(version, "3.1.") {
		set.artifacts = append(set.artifacts, artifact{coordinates: "org.apache.zookeeper:zookeeper:3.5.10"})
	}
	return set
}

// zooKeeperJars names, from 3.6 on, also what the server needs at run time but
// its pom marks as provided. Older ones bring log4j 1.2 with them.
func zooKeeperJars(version string) jarSet {
	set := jarSet{"zookeeper", version, []artifact{{coordinates: "org.apache.zookeeper:zookeeper:" + version}}}
	if strings.HasPrefix(version, "3.4.") || strings.HasPrefix(version, "3.5.") {
		return set
	}
	for _, c := range []string{
		"org.xerial.snappy:snappy-java:1.1.10.7",
		"io.dropwizard.metrics:metrics-core:4.2.30",
		"ch.qos.logback:logback-classic:1.3.15",
	} {
		set.artifacts = append(set.artifacts, artifact{coordinates: c})
	}
	return set
}

func kafkaJars() jarSet {
	return jarSet{"kafka", KafkaVersion, []artifact{
		{coordinates: "org.apache.kafka:kafka_2.13:" + KafkaVersion},
		{coordinates: "org.apache.kafka:kafka-tools:" + KafkaVersion},
		{coordinates: "org.apache.kafka:connect-runtime:" + KafkaVersion},
		{coordinates: "org.apache.kafka:connect-json:" + KafkaVersion},
		{coordinates: "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5"},
	}}
}

// kafkaStoreJar is the jar with LocalTieredStorage, Kafka's own remote store
// for its tests.
func kafkaStoreJar() jarSet {
	return jarSet{"kafka-store", KafkaVersion, []artifact{
		{coordinates: "org.apache.kafka:kafka-storage:" + KafkaVersion, classifier: "test", without: "*"},
	}}
}

func (s jarSet) String() string { return s.name + " " + s.version }

// pom is the project file whose runtime dependencies are the set. Its bytes are
// the key of the cache: what changes them fetches anew.
func (s jarSet) pom() []byte {
	var b strings.Builder
	b.WriteString("<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\n")
	fmt.Fprintf(&b, "<groupId>varve.servers</groupId><artifactId>%s</artifactId><version>%s</version>\n<dependencies>\n", s.name, s.version)
	for _, a := range s.artifacts {
		part := strings.Split(a.coordinates, ":")
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>", part[0], part[1], part[2])
		if a.classifier != "" {
			fmt.Fprintf(&b, "<classifier>%s</classifier>", a.classifier)
		}
		if a.without != "" {
			fmt.Fprintf(&b, "<exclusions><exclusion><groupId>%s</groupId><artifactId>*</artifactId></exclusion></exclusions>", a.without)
		}
		b.WriteString("</dependency>\n")
	}
	b.WriteString("</dependencies></project>\n")
	return []byte(b.String())
}

// dir is where the set lies once it is fetched.
func (s jarSet) dir() (string, error) {
	root, err := cacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(s.pom())
	return filepath.Join(root, "jars", fmt.Sprintf("%s-%s-%x", s.name, s.version, sum[:6])), nil
}

func (s jarSet) fetched() bool {
	dir, err := s.dir()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "lib"))
	return err == nil
}

func cacheDir() (string, error) {
	if dir := os.Getenv("VARVE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for fetched jars (set VARVE_CACHE to choose one): %w", err)
	}
	return filepath.Join(dir, "varve"), nil
}

// writeSite writes a Hadoop *-site.xml.
func writeSite(path string, properties map[string]string) error {
	type property struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	}
	site := struct {
		XMLName    xml.Name   `xml:"configuration"`
		Properties []property `xml:"property"`
	}{}
	for _, name := range sortedKeys(properties) {
		site.Properties = append(site.Properties, property{name, properties[name]})
	}
	b, err := xml.MarshalIndent(site, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
