package oracle

import (
	"regexp"
	"slices"
)

// A Rule allows differences that we want.
type Rule struct {
	API    string // "" = any
	Path   *regexp.Regexp
	Reason string
	Only   func(d Difference) bool // nil = always
}

// neutral replaces what differs between any two brokers: addresses, clocks, ids
// that a broker draws.
func neutral(path, value string) string {
	for _, n := range neutrals {
		if n.path.MatchString(path) {
			if n.keep != nil && n.keep.MatchString(value) {
				return value
			}
			return n.as
		}
	}
	return value
}

var neutrals = []struct {
	path *regexp.Regexp
	keep *regexp.Regexp // values that are no accident and stay
	as   string
}{
	{regexp.MustCompile(`(^|\.)ClusterID$`), regexp.MustCompile(`^null$`), "<cluster id>"},
	{regexp.MustCompile(`(^|\.)Port$`), regexp.MustCompile(`^(-1|0)$`), "<port>"},
	{regexp.MustCompile(`(^|\.)Host$`), regexp.MustCompile(`^$`), "<host>"},
	{regexp.MustCompile(`(^|\.)TopicID$`), regexp.MustCompile(`^\[0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\]$`), "<topic id>"},
	{regexp.MustCompile(`(^|\.)(SessionID)$`), regexp.MustCompile(`^0$`), "<session>"},
	{regexp.MustCompile(`(^|\.)ProducerID$`), regexp.MustCompile(`^(-1|0)$`), "<producer id>"},
	{regexp.MustCompile(`(^|\.)(MemberID|LeaderID|Leader)$`), regexp.MustCompile(`^(-?[0-9]*|<.*>)$`), "<member>"},
	{regexp.MustCompile(`(^|\.)LogAppendTime(Ms|Millis)?$`), regexp.MustCompile(`^-1$`), "<append time>"},
	{regexp.MustCompile(`(^|\.)FinalizedFeaturesEpoch$`), regexp.MustCompile(`^-1$`), "<epoch>"},
}

// allowedBy returns the rule that allows d, or nil.
func allowedBy(d Difference) *Rule {
	i := slices.IndexFunc(Rules, func(r Rule) bool {
		return (r.API == "" || r.API == d.API) && r.Path.MatchString(d.Path) && (r.Only == nil || r.Only(d))
	})
	if i < 0 {
		return nil
	}
	return &Rules[i]
}

// Rules are the differences that we want, each with its reason.
var Rules = []Rule{
	{API: "ApiVersions", Path: regexp.MustCompile(`^ApiKeys(\.len|\[\d+\]\..*)$`), Only: keyNotServed,
		Reason: "a key that Varve does not serve yet is not advertised"},
	{API: "ApiVersions", Path: regexp.MustCompile(`^(SupportedFeatures|FinalizedFeatures)`),
		Reason: "Varve has features of its own release line; it has no KRaft metadata.version"},
}

// keyNotServed tells that only Kafka has the row, or that the count differs.
func keyNotServed(d Difference) bool {
	return d.Varve == "(absent)" || d.Path == "ApiKeys.len"
}
