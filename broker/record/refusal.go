package record

import (
	"fmt"
	"strings"

	"varve/broker/kafka"
)

// maxRecordErrors bounds what a refusal lists: a megabyte of tiny records must not
// make a hundred megabytes of complaints. The message counts them all.
const maxRecordErrors = 1000

// A RecordError says what is wrong with one record of a batch.
type RecordError struct {
	BatchIndex int32
	Message    string
}

// A Refusal says why a batch is not appended, as the produce response says it.
type Refusal struct {
	Code    kafka.Code
	Message string
	Records []RecordError
	Request bool // the request is wrong: Kafka does not ask its log, and tells nothing of it
}

func (r *Refusal) Error() string { return r.Code.String() + ": " + r.Message }

func refuse(code kafka.Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// refuseRecords makes one refusal of the records' errors, total of them, worded as Kafka's.
func refuseRecords(errs []RecordError, total int, timestamps bool) *Refusal {
	if timestamps {
		return &Refusal{Code: kafka.InvalidTimestamp, Message: "One or more records have been rejected due to invalid timestamp", Records: errs}
	}
	var first []string
	for _, e := range errs[:min(3, len(errs))] {
		first = append(first, fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", e.BatchIndex, e.Message))
	}
	return &Refusal{Code: kafka.InvalidRecord, Records: errs, Message: fmt.Sprintf("One or more records have been rejected due to %d "+
		"record errors in total, and only showing the first three errors at most: [%s]", total, strings.Join(first, ", "))}
}
