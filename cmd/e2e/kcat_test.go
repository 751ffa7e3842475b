package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"varve/cmd/e2e/servers"
)

func TestKcatUsesTheBroker(t *testing.T) {
	servers.Need(t, "kcat")
	v := broker(t)
	t.Run("what it produces with any codec comes back as it was", func(t *testing.T) { kcatCodecs(t, v) })
	t.Run("its metadata names broker, topics and leaders", func(t *testing.T) { kcatMetadata(t, v) })
	t.Run("a group goes on where it committed", func(t *testing.T) { kcatGroup(t, v) })
}

func kcatCodecs(t *testing.T, v *servers.Varve) {
	create(t, v, "codecs", 5)
	for i, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		var want []string
		for n := range 500 {
			want = append(want, fmt.Sprintf("key%d:%s value %d", n%7, codec, n))
		}
		partition := fmt.Sprint(i)
		kcat(t, v, lines(want), "-P", "-t", "codecs", "-p", partition, "-K:", "-z", codec, "-X", "enable.idempotence=true")
		got := kcat(t, v, "", "-C", "-q", "-t", "codecs", "-p", partition, "-o", "beginning", "-e", "-K:")
		same(t, codec, split(got), want)
	}
}

func kcatMetadata(t *testing.T, v *servers.Varve) {
	create(t, v, "known", 3)
	var answer struct {
		Brokers []struct {
			ID   int
			Name string
		}
		Topics []struct {
			Topic      string
			Partitions []struct {
				Partition, Leader int
				ISRs              []struct{ ID int }
			}
		}
	}
	if err := json.Unmarshal([]byte(kcat(t, v, "", "-L", "-J", "-t", "known")), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Brokers) != 1 || answer.Brokers[0].Name != v.Addr {
		t.Errorf("brokers %+v, want one at %s", answer.Brokers, v.Addr)
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 3 {
		t.Fatalf("topics %+v, want known with 3 partitions", answer.Topics)
	}
	for _, p := range answer.Topics[0].Partitions {
		if p.Leader != answer.Brokers[0].ID || len(p.ISRs) != 1 {
			t.Errorf("partition %+v, want led by broker %d, in sync alone", p, answer.Brokers[0].ID)
		}
	}
}

func kcatGroup(t *testing.T, v *servers.Varve) {
	create(t, v, "shared", 1)
	first, second := numbered("first", 0, 200), numbered("second", 0, 50)
	take := func(n int) []string {
		return split(kcat(t, v, "", "-q", "-G", "readers", "-X", "auto.offset.reset=earliest", "-c", fmt.Sprint(n), "shared"))
	}
	kcat(t, v, lines(first), "-P", "-t", "shared")
	same(t, "the first run", take(len(first)), first)
	kcat(t, v, lines(second), "-P", "-t", "shared")
	same(t, "the second run", take(len(second)), second)
}
