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
	{path: regexp.MustCompile(`(^|\.)LogAppendTime(Ms|Millis)?$`), keep: regexp.MustCompile(`^-1$`), as: "<append time>"},
	{path: regexp.MustCompile(`(^|\.)FinalizedFeaturesEpoch$`), keep: regexp.MustCompile(`^-1$`), as: "<epoch>"},
	{path: regexp.MustCompile(`ErrorMessage$`), part: regexp.MustCompile(`within \[-?\d+, \d+\]`), as: "within <range>"},
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
	{API: "FindCoordinator", Path: regexp.MustCompile(`ErrorMessage$`), Only: bothSay,
		Reason: "Varve says which kind of coordinator it does not serve; Kafka says that something is wrong with the request"},
}

// bothSay tells that both have a text.
func bothSay(d Difference) bool {
	said := func(s string) bool { return s != "" && s != "null" && s != "(absent)" && s != "NONE" }
	return said(d.Kafka) && said(d.Varve)
}

// keyNotServed tells that only Kafka has the row, or that the count differs.
func keyNotServed(d Difference) bool {
	return d.Varve == "(absent)" || d.Path == "ApiKeys.len"
}
