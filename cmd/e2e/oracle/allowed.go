package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Rule allows differences that we want.
type Rule struct {
	API    string                  // as kmsg names it
	Step   string                  // of a story; "" = any
	Path   *regexp.Regexp          // nil = any
	Reason string                  // a sentence for docs/compatibility.md
	Only   func(d Difference) bool // nil = always
}

func (r *Rule) allows(d Difference) bool {
	return r.API == d.API && (r.Step == "" || r.Step == d.Step) && (r.Path == nil || r.Path.MatchString(d.Path)) &&
		(r.Only == nil || r.Only(d))
}

// neutral replaces what differs between any two brokers: addresses, clocks, ids
// that a broker draws.
func neutral(path, value string) string {
	for _, n := range neutrals {
		if n.path.MatchString(path) {
			if n.keep != nil && n.keep.MatchString(value) {
				return value
			}
			if n.part != nil {
				return n.part.ReplaceAllString(value, n.as)
			}
			return n.as
		}
	}
	return value
}

var neutrals = []struct {
	path *regexp.Regexp
	keep *regexp.Regexp // values that are no accident and stay
	part *regexp.Regexp // what of the value is replaced; nil = all
	as   string
}{
	{path: regexp.MustCompile(`(^|\.)ClusterID$`), keep: regexp.MustCompile(`^null$`), as: "<cluster id>"},
	{path: regexp.MustCompile(`(^|\.)Port$`), keep: regexp.MustCompile(`^(-1|0)$`), as: "<port>"},
	{path: regexp.MustCompile(`(^|\.)Host$`), keep: regexp.MustCompile(`^$`), as: "<host>"},
	{path: regexp.MustCompile(`(^|\.)TopicID$`), keep: regexp.MustCompile(`^\[0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\]$`), as: "<topic id>"},
	{path: regexp.MustCompile(`(^|\.)(SessionID)$`), keep: regexp.MustCompile(`^0$`), as: "<session>"},
	{path: regexp.MustCompile(`(^|\.)ProducerID$`), keep: regexp.MustCompile(`^(-1|0)$`), as: "<producer id>"},
	{path: regexp.MustCompile(`(^|\.)(MemberID|LeaderID|Leader)$`), keep: regexp.MustCompile(`^(-?[0-9]*|<.*>)$`), as: "<member>"},
	{path: regexp.MustCompile(`(^|\.)LogAppendTime(Ms|Millis)?$`), keep: regexp.MustCompile(fmt.Sprintf(`^(-1|%d)$`, stamp)), as: "<append time>"},
	{path: regexp.MustCompile(`(^|\.)FinalizedFeaturesEpoch$`), keep: regexp.MustCompile(`^-1$`), as: "<epoch>"},
	{path: regexp.MustCompile(`ErrorMessage$`), part: regexp.MustCompile(`within \[-?\d+, \d+\]`), as: "within <range>"},
}

// allowedBy returns the rule that allows d, or nil.
func allowedBy(d Difference) *Rule {
	i := slices.IndexFunc(Rules, func(r Rule) bool { return r.allows(d) })
	if i < 0 {
		return nil
	}
	return &Rules[i]
}

// Rules are the differences that we want, each with its reason.
var Rules = []Rule{
	{API: "ApiVersions", Path: regexp.MustCompile(`^ApiKeys(\.len|\[\d+\]\..*)$`), Only: notInVarve,
		Reason: "A key that Varve does not serve yet is not advertised."},
	{API: "ApiVersions", Path: regexp.MustCompile(`^(SupportedFeatures|FinalizedFeatures)`),
		Reason: "Varve has features of its own release line; it has no KRaft `metadata.version`."},

	{API: "CreateTopics", Path: minISR,
		Reason: "`min.insync.replicas` is a default of the broker. Kafka makes it a dynamic default of the cluster when it is formatted."},
	{API: "DescribeConfigs", Path: minISR,
		Reason: "The same of `min.insync.replicas`."},
	{API: "DescribeConfigs", Path: errorMessage, Only: bothSay,
		Reason: "Varve says which kind of resource it does not know; Kafka says that something is wrong with the request."},
	{API: "IncrementalAlterConfigs", Step: "operation 9",
		Reason: "An operation that is not there is INVALID_REQUEST; Kafka fails on it with UNKNOWN_SERVER_ERROR."},
	{API: "FindCoordinator", Path: errorMessage, Only: bothSay,
		Reason: "Varve says which kind of coordinator it does not serve; Kafka says that something is wrong with the request."},
	{API: "ListGroups", Path: regexp.MustCompile(`^Groups(\.len|\[wrong-\d\]\..*)$`), Only: notInVarve,
		Reason: "A join that is refused leaves no group; Kafka keeps an empty one until it cleans up."},
	{API: "Metadata", Path: regexp.MustCompile(`^Topics(\.len|\[__remote_log_metadata\]\..*)$`), Only: notInVarve,
		Reason: "What is in the tier is told by manifests beside it; Kafka has a topic `__remote_log_metadata`."},
	{API: "Metadata", Step: "by neither",
		Reason: "A topic with neither name nor id is UNKNOWN_TOPIC_ID, from version 12 on; Kafka fails on the request with UNKNOWN_SERVER_ERROR."},

	{API: "Produce", Path: errorMessage, Only: onlyVarveSays,
		Reason: "Varve says why it refuses records; Kafka leaves the message null but for errors of single records."},
	{API: "Produce", Step: "a partition twice",
		Reason: "A partition that is named twice gets the records of both; Kafka keeps the last and says nothing of the first."},
	{API: "Produce", Step: "a topic twice",
		Reason: "A topic that is named twice is answered twice; Kafka answers once."},
	{API: "Produce", Step: "a huge length",
		Reason: "A batch longer than the request is no batch, INVALID_RECORD; Kafka's sum overflows and it fails with UNKNOWN_SERVER_ERROR."},
	{API: "Produce", Step: "null records",
		Reason: "Null records are INVALID_RECORD; Kafka never answers such a request."},
	{API: "Produce", Step: "codec 7",
		Reason: "A codec that is not there is UNSUPPORTED_COMPRESSION_TYPE; Kafka fails on it with UNKNOWN_SERVER_ERROR."},
	{API: "Produce", Step: "gzip that is not gzip",
		Reason: "A compressed batch is not unfolded unless the topic asks for what only its records tell: the checksum vouches for the bytes, " +
			"and the consumer finds what its producer has spoilt. Kafka unfolds each batch, and fails on this one with UNKNOWN_SERVER_ERROR."},
	{API: "Produce", Step: "from rotten",
		Reason: "Where a batch is unfolded and cannot be, it is CORRUPT_MESSAGE; Kafka fails on it with UNKNOWN_SERVER_ERROR."},
	{API: "Produce", Step: "a negative length", Path: errorMessage,
		Reason: "The length is named with another bound: that of a batch, and not of an old message."},
	{API: "Produce", Step: "log append time from a client",
		Reason: "A producer's batch that says LogAppendTime is INVALID_TIMESTAMP; Kafka takes it into a topic of CreateTime, " +
			"and stores other times than it checked."},

	{API: "Fetch", Path: regexp.MustCompile(`RecordBatches$`), Only: wholeBatches,
		Reason: "Records are cut between batches; Kafka cuts at the byte, and clients throw the torn batch away."},
	{API: "Fetch", Step: "isolation level 2",
		Reason: "An isolation level that is not there reads uncommitted; Kafka fails on it with UNKNOWN_SERVER_ERROR."},
	{API: "ListOffsets", Step: "isolation level 2",
		Reason: "The same of ListOffsets."},
	{API: "Fetch", Step: "one that is not there",
		Reason: "Partitions are answered in the order of the request; Kafka puts those that are not there behind the others."},
	{API: "Fetch", Step: "a negative limit",
		Reason: "A negative limit is none at all: the first batch comes whole. Kafka fails on it with UNKNOWN_SERVER_ERROR."},
	{API: "InitProducerID", Step: "for transactions",
		Reason: "Transactions are not served yet: a transactional id is INVALID_REQUEST."},
	{API: "FindCoordinator", Step: "of a transaction",
		Reason: "The same: INVALID_REQUEST."},
	{API: "Fetch", Step: "the same partition twice",
		Reason: "A partition that is named twice without a session is answered twice; Kafka answers once. No client asks so, and each fetch would pay for the search."},
}

var (
	minISR       = regexp.MustCompile(`Configs\[min\.insync\.replicas\]\.(Source|ConfigSynonyms.*)$`)
	errorMessage = regexp.MustCompile(`ErrorMessage$`)
)

// says tells that an answer has a text.
func says(text string) bool {
	return text != "" && text != "null" && text != "(absent)" && text != "NONE"
}

func bothSay(d Difference) bool       { return says(d.Kafka) && says(d.Varve) }
func onlyVarveSays(d Difference) bool { return d.Kafka == "null" && says(d.Varve) }

// wholeBatches tells that Varve sent what Kafka did up to a torn batch.
func wholeBatches(d Difference) bool {
	return d.Varve != "" && strings.HasPrefix(d.Kafka, d.Varve)
}

// notInVarve tells that only Kafka has the row, or that the counts differ.
func notInVarve(d Difference) bool {
	return d.Varve == "(absent)" || strings.HasSuffix(d.Path, ".len")
}
