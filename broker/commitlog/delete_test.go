package commitlog_test

import (
	"errors"
	"fmt"
	"testing"

	"varve/broker/commitlog"
	"varve/broker/kafka"
	"varve/broker/vfs"
)

// A topic is deleted while its records are being flushed: the folder has another name
// by the time that its names are synced, and that is no fault of the disk.
func TestALogDeletedUnderItsAppendsTakesNoFolderOutOfService(t *testing.T) {
	dir := t.TempDir()
	d, _ := open(t, vfs.OS{}, dir, &commitlog.Config{}, nil)
	defer d.Abandon()
	for i := range 150 {
		tp := kafka.TopicPartition{Topic: fmt.Sprint("doomed", i)}
		l, err := d.Create(tp, kafka.TopicID{byte(i), 1}, &commitlog.Config{FlushMessages: 1, SegmentBytes: 4096})
		if err != nil {
			t.Fatal(err)
		}
		begun, ended := make(chan struct{}), make(chan error)
		go func() {
			for n := 0; ; n++ {
				_, err := l.Append(batch(1, 100, 1), 1000)
				if n == 0 {
					close(begun)
				}
				if err != nil {
					ended <- err
					return
				}
			}
		}()
		<-begun
		if err := d.Delete(l, 1000); err != nil {
			t.Fatalf("deleting log %d: %v", i, err)
		}
		if err := <-ended; !errors.Is(err, commitlog.ErrClosed) {
			t.Fatalf("appending to deleted log %d: %v, want %v", i, err, commitlog.ErrClosed)
		}
		if err := d.Failed(); err != nil {
			t.Fatalf("after deleting log %d: %v", i, err)
		}
	}
}
