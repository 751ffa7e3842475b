package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"varve/tier"
	"varve/tier/local"
)

// A manifest version is published by a rename that refuses to overwrite: who comes
// second knows it.
func Example() {
	dir, err := os.MkdirTemp("", "tier")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store, err := local.Open(dir)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, folder := range []string{"_inprogress", "manifest"} {
		if err := store.Mkdir(ctx, folder); err != nil {
			panic(err)
		}
	}
	for _, writer := range []string{"one", "two"} {
		w, err := store.Create(ctx, "_inprogress/"+writer, tier.CreateOptions{})
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "by %s", writer)
		if err := w.Close(); err != nil {
			panic(err)
		}
		err = store.Rename(ctx, "_inprogress/"+writer, "manifest/1")
		fmt.Println(writer, "lost:", errors.Is(err, tier.ErrExists))
	}
	// Output:
	// one lost: false
	// two lost: true
}
