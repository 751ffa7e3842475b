package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
	"varve/broker/wire"
)

// ApiVersions, key 18. The answer's header is always the oldest, and an unknown version
// is answered as version 0 (KIP-511).
//
//	v3  client software name and version; features
//	v4  features whose lowest level is 0
//
// Errors: UNSUPPORTED_VERSION, INVALID_REQUEST for a software name or version that is
// none.
func (b *Broker) apiVersions(x *call) error {
	resp := wire.ApiVersionsResponse(x.h.Version, wire.APIs, b.opt.Features)
	if wire.Supported(wire.ApiVersions, x.h.Version) {
		decoded, err := wire.Decode(x.h, x.body)
		if err != nil {
			return err
		}
		req := decoded.(*kmsg.ApiVersionsRequest)
		if x.h.Version >= 3 {
			if !wire.ValidSoftware(req.ClientSoftwareName) || !wire.ValidSoftware(req.ClientSoftwareVersion) {
				resp = kmsg.NewPtrApiVersionsResponse()
				resp.Version, resp.ErrorCode = x.h.Version, int16(kafka.InvalidRequest)
			} else {
				x.c.SetSoftware(req.ClientSoftwareName, req.ClientSoftwareVersion)
			}
		}
	}
	x.out.Respond(x.h, resp)
	return nil
}
