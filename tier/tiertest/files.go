package tiertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"varve/tier"
)

func filesReadBackAsWritten(b *bench) {
	b.mkdir("d")
	for _, n := range []int{0, 1, 511, 512, 513, 70_000} {
		name := fmt.Sprintf("d/%d", n)
		b.put(name, noise(uint64(n), n))
		b.holds(name, noise(uint64(n), n))
		if info, err := b.s.Stat(b.ctx, name); err != nil || info.Size != int64(n) {
			b.Fatalf("Stat(%s) = %+v, %v, want %d bytes", name, info, err, n)
		}
	}
}

func bigFilesReadBackAsWritten(b *bench) {
	data := noise(1, b.Big)
	b.put("big", data)
	b.holds("big", data)
}

func sizesNeedNotBeKnown(b *bench) {
	data := noise(2, 3<<20+17)
	w, err := b.s.Create(b.ctx, "f", tier.CreateOptions{})
	b.ok(err)
	_, err = w.Write(data)
	b.ok(err)
	b.ok(w.Close())
	b.holds("f", data)
}

func createWantsItsFolder(b *bench) {
	_, err := b.s.Create(b.ctx, "none/f", tier.CreateOptions{})
	b.is(err, tier.ErrNotFound)
	b.absent("none")
}

// filesMayBeShorterThanSaid: a container's length is known when it has been written.
func filesMayBeShorterThanSaid(b *bench) {
	w, err := b.s.Create(b.ctx, "f", tier.CreateOptions{Size: 100_000})
	b.ok(err)
	_, err = w.Write(noise(7, 70_000))
	b.ok(err)
	b.ok(w.Close())
	b.holds("f", noise(7, 70_000))
}

// writingNothingIsNothing: pins are empty files, whose content is written all the same.
func writingNothingIsNothing(b *bench) {
	w, err := b.s.Create(b.ctx, "f", tier.CreateOptions{})
	b.ok(err)
	for range 2 {
		if n, err := w.Write(nil); n != 0 || err != nil {
			b.Fatalf("Write of nothing = %d, %v", n, err)
		}
	}
	b.ok(w.Close())
	b.holds("f", nil)
}

func createDoesNotOverwrite(b *bench) {
	b.put("f", []byte("first"))
	_, err := b.s.Create(b.ctx, "f", tier.CreateOptions{})
	b.is(err, tier.ErrExists)
	b.holds("f", []byte("first"))
}

func abortedFilesAreGone(b *bench) {
	w, err := b.s.Create(b.ctx, "f", tier.CreateOptions{Size: 1000})
	b.ok(err)
	_, err = w.Write(noise(3, 500))
	b.ok(err)
	w.Abort()
	b.absent("f")
	if w.Close() == nil {
		b.Fatal("Close after Abort says that the file is complete")
	}
}

func abortAfterCloseDoesNothing(b *bench) {
	w, err := b.s.Create(b.ctx, "f", tier.CreateOptions{Size: 4})
	b.ok(err)
	_, err = w.Write([]byte("data"))
	b.ok(err)
	b.ok(w.Close())
	w.Abort()
	b.holds("f", []byte("data"))
}

// oneOfManyCreatesWins: and each winner's file is the winner's.
func oneOfManyCreatesWins(b *bench) {
	stores := []tier.Store{b.s, b.peer()}
	for round := range 3 {
		name := fmt.Sprintf("f%d", round)
		errs := race(6, func(i int) error {
			return put(b.ctx, stores[i%2], name, fmt.Appendf(nil, "writer %d", i))
		})
		b.holds(name, fmt.Appendf(nil, "writer %d", b.winner(errs, tier.ErrExists)))
	}
}

// manyReadersShareOneFile: ranges in order and at random, from several goroutines
// on one Reader.
func manyReadersShareOneFile(b *bench) {
	data := noise(4, 4<<20)
	b.put("f", data)
	r, err := b.s.Open(b.ctx, "f")
	b.ok(err)
	defer r.Close()
	errs := race(8, func(i int) error {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		buf := make([]byte, 64<<10)
		for pos := range 24 {
			off := int64(i*24+pos) * 16 << 10
			if i%2 == 0 {
				off = random.Int64N(int64(len(data)))
			}
			want := data[min(off, int64(len(data))):min(off+int64(len(buf)), int64(len(data)))]
			n, err := r.ReadAt(buf, off)
			if err != nil && (err != io.EOF || n == len(buf)) {
				return err
			}
			if !bytes.Equal(buf[:n], want) {
				return fmt.Errorf("reader %d: %d bytes at %d are not those written, want %d", i, n, off, len(want))
			}
		}
		return nil
	})
	b.ok(errors.Join(errs...))
}

func readsEndAtTheEnd(b *bench) {
	b.put("f", []byte("0123456789"))
	r, err := b.s.Open(b.ctx, "f")
	b.ok(err)
	defer r.Close()
	for _, c := range []struct {
		off  int64
		want string
	}{{0, "0123456789"}, {8, "89"}, {10, ""}, {11, ""}, {1 << 40, ""}} {
		buf := make([]byte, 20)
		n, err := r.ReadAt(buf, c.off)
		if string(buf[:n]) != c.want || err != io.EOF {
			b.Errorf("ReadAt(20 bytes, %d) = %q, %v, want %q, EOF", c.off, buf[:n], err, c.want)
		}
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
		b.Errorf("ReadAt(-1) = %v, want an error that is not EOF", err)
	}
	_, err = b.s.Open(b.ctx, "none")
	b.is(err, tier.ErrNotFound)
}

func readersOutliveTheRename(b *bench) {
	data := noise(5, 200_000)
	b.mkdir("to")
	b.put("f", data)
	r, err := b.s.Open(b.ctx, "f")
	b.ok(err)
	defer r.Close()
	half := make([]byte, 100_000)
	_, err = r.ReadAt(half, 0)
	b.ok(err)
	b.ok(b.s.Rename(b.ctx, "f", "to/f"))
	_, err = r.ReadAt(half, 100_000)
	if err != nil && err != io.EOF || !bytes.Equal(half, data[100_000:]) {
		b.Fatalf("the second half after the rename: %v", err)
	}
}

func replicasAreTold(b *bench) {
	b.put("f", noise(6, 5000))
	live, want, err := b.s.LiveReplicas(b.ctx, "f")
	if err != nil || live < 1 || want < 1 {
		b.Fatalf("LiveReplicas = %d, %d, %v, want at least 1, 1", live, want, err)
	}
	_, _, err = b.s.LiveReplicas(b.ctx, "none")
	b.is(err, tier.ErrNotFound)
}

// race calls f n times at once and returns what they said.
func race(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// winner wants exactly one nil, all else of the kind that losers get.
func (b *bench) winner(errs []error, losers error) int {
	b.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			b.Fatalf("both %d and %d won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, losers):
			b.Fatalf("%d lost with %v, want one that is %q", i, err, losers)
		}
	}
	if winner < 0 {
		b.Fatalf("nobody won: %v", errors.Join(errs...))
	}
	return winner
}
