package wire

import (
	"varve/broker/kafka"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Feature is a cluster feature with the levels that this broker supports and the
// one the cluster has agreed on, 0 for none.
type Feature struct {
	Name      string
	Min, Max  int16
	Finalized int16
}

// Features are what ApiVersions tells of the cluster. Epoch grows with each change
// of the finalized levels; -1 is unknown.
type Features struct {
	Epoch int64
	List  []Feature
}

// ApiVersionsResponse answers an ApiVersions of any version with the rows of apis.
// The header of the answer is always the oldest. An unknown version is answered as
// version 0 with UNSUPPORTED_VERSION and the row of ApiVersions alone, so that the
// client can ask again (KIP-511).
func ApiVersionsResponse(version int16, apis []API, f Features) *kmsg.ApiVersionsResponse {
	r := kmsg.NewPtrApiVersionsResponse()
	if !Supported(ApiVersions, version) {
		r.ErrorCode = int16(kafka.UnsupportedVersion)
		own, _ := Lookup(ApiVersions)
		r.ApiKeys = append(r.ApiKeys, own.row())
		return r
	}
	r.Version = version
	for _, a := range apis {
		r.ApiKeys = append(r.ApiKeys, a.row())
	}
	if version < 3 {
		return r
	}
	r.FinalizedFeaturesEpoch = f.Epoch
	for _, x := range f.List {
		if version > 3 || x.Min > 0 { // older clients refuse a minimum of 0 (KAFKA-17011)
			s := kmsg.NewApiVersionsResponseSupportedFeature()
			s.Name, s.MinVersion, s.MaxVersion = x.Name, x.Min, x.Max
			r.SupportedFeatures = append(r.SupportedFeatures, s)
		}
		if x.Finalized > 0 {
			s := kmsg.NewApiVersionsResponseFinalizedFeature()
			s.Name, s.MinVersionLevel, s.MaxVersionLevel = x.Name, x.Finalized, x.Finalized
			r.FinalizedFeatures = append(r.FinalizedFeatures, s)
		}
	}
	return r
}

func (a API) row() kmsg.ApiVersionsResponseApiKey {
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = a.Key, a.Shown, a.Max
	return k
}

// ValidSoftware tells whether a client's name or version is one by KIP-511:
// letters, digits, dots and dashes, of which the first and last are letters or
// digits.
func ValidSoftware(s string) bool {
	if s == "" || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !alphanumeric(s[i]) && s[i] != '-' && s[i] != '.' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
