package producer_test

import (
	"fmt"

	"varve/broker/producer"
)

// The answer to a batch got lost and the client sends it again.
func Example() {
	s := producer.New(producer.Params{})
	batch := producer.Entry{PID: 1000, FirstSeq: 0, LastSeq: 9}

	if dup, err := s.Check(batch, true); dup == nil && err == nil {
		s.Append(batch, 500, 509) // where the log put it
	}
	dup, _ := s.Check(batch, true)
	fmt.Println("lies at", dup.Base)
	// Output: lies at 500
}
