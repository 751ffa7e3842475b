package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/cmd/e2e/servers"
)

// smallDisk is a file system of some MiB that ends with the test; where none may be
// mounted the test is skipped aloud.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: a small disk wants root that may mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmounting %s: %v: %s", dir, err, out)
		}
	})
	return dir
}

// health is what /healthz says; "" is well.
func health(t *testing.T, v *servers.Varve) string {
	t.Helper()
	resp, err := http.Get("http://" + v.HTTP + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusOK {
		return ""
	}
	return string(b)
}

func TestAFullDiskLosesNothingAndTheBrokerComesBackByItself(t *testing.T) {
	disk := smallDisk(t, "24m")
	v := servers.VarveFor(t, servers.VarveOptions{Properties: map[string]string{"log.dirs": filepath.Join(disk, "log")}})
	adm := admin(t, v)
	if _, err := adm.CreateTopic(t.Context(), 3, 1, nil, "full"); err != nil {
		t.Fatal(err)
	}
	h := newHistory("full")
	producer := client(t, v.Addr, kgo.StopProducerOnDataLossDetected(), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(1000))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	produced := make(chan error, 1)
	go func() { produced <- h.produce(ctx, producer, 4000, time.Millisecond) }()

	eventually(t, 30*time.Second, "the disk to be full", func(context.Context) error {
		if sick := health(t, v); !strings.Contains(sick, "no space left") {
			return fmt.Errorf("healthz says %q", sick)
		}
		return nil
	})
	if _, err := adm.CreateTopic(t.Context(), 1, 1, nil, "late"); err != nil {
		t.Fatalf("making a topic on a full disk: %v", err)
	}
	listed, err := adm.ListEndOffsets(t.Context(), "late")
	if err != nil || !errors.Is(listed.Error(), kerr.KafkaStorageError) {
		t.Fatalf("a topic that found no space answers %v, %v, want KAFKA_STORAGE_ERROR", listed.Error(), err)
	}
	before := h.acknowledgedSoFar()
	if out, err := exec.Command("mount", "-o", "remount,size=200m", disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, 30*time.Second, "records again once there is space", func(context.Context) error {
		if n := h.acknowledgedSoFar() - before; n < 1000 {
			return fmt.Errorf("%d records acknowledged", n)
		}
		return nil
	})
	stop()
	if err := <-produced; err != nil {
		t.Fatal(err)
	}
	h.check(t, v.Addr, endsOf(t, adm, "full"))
	if ends := endsOf(t, adm, "late"); ends[0] != 0 {
		t.Fatalf("the late topic ends at %v", ends)
	}
	if sick := health(t, v); sick != "" {
		t.Fatalf("with space again it says %s", sick)
	}
}

func TestOneOfTwoLogDirsMayFail(t *testing.T) {
	root := t.TempDir()
	first := filepath.Join(root, "first")
	v := servers.VarveFor(t, servers.VarveOptions{Properties: map[string]string{
		"log.dirs": first + "," + filepath.Join(root, "second"), "log.flush.offset.checkpoint.interval.ms": "500"}})
	adm := admin(t, v)
	if _, err := adm.CreateTopic(t.Context(), 2, 1, nil, "halves"); err != nil {
		t.Fatal(err)
	}
	cl := client(t, v.Addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(10*time.Second))
	put := func(p int32) error {
		return cl.ProduceSync(t.Context(), &kgo.Record{Topic: "halves", Partition: p, Value: []byte("value")}).FirstErr()
	}
	if err := errors.Join(put(0), put(1)); err != nil {
		t.Fatal(err)
	}
	lost, kept := int32(0), int32(1)
	if _, err := os.Stat(filepath.Join(first, "halves-1")); err == nil {
		lost, kept = 1, 0
	}
	answers := func(p int32) error {
		listed, err := adm.ListEndOffsets(t.Context(), "halves")
		if o, ok := listed.Lookup("halves", p); ok && err == nil {
			if o.Err == nil && o.Offset < 1 {
				return fmt.Errorf("it ends at %d: its record is gone", o.Offset)
			}
			return o.Err
		}
		return errors.Join(err, errors.New("no answer"))
	}

	// The folder goes from under the broker, and a file is where it was.
	if err := os.Rename(first, first+".away"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the failed folder to be told of", func(context.Context) error {
		put(lost) // what it wrote into the moved file counts; it must not bring the broker down
		if sick := health(t, v); !strings.Contains(sick, first) {
			return fmt.Errorf("healthz says %q", sick)
		}
		return nil
	})
	if err := put(kept); err != nil {
		t.Fatalf("the other folder's partition: %v", err)
	}
	if err := os.WriteFile(first, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	v.Kill()
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := put(kept); err != nil {
		t.Fatalf("the other folder's partition after a restart: %v", err)
	}
	if err := answers(lost); !errors.Is(err, kerr.KafkaStorageError) {
		t.Fatalf("the failed folder's partition answers %v, want KAFKA_STORAGE_ERROR", err)
	}
	v.Kill()
	if err := errors.Join(os.Remove(first), os.Rename(first+".away", first)); err != nil {
		t.Fatal(err)
	}
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(answers(lost), answers(kept), put(lost)); err != nil {
		t.Fatalf("with the folder back: %v", err)
	}
}
