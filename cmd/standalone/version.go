package standalone

import "runtime/debug"

// version is stamped by the build: -ldflags "-X varve/cmd/standalone.version=…".
var version string

// Version is what is running: the stamp, or the commit that it was built from.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel " + s.Value[:min(len(s.Value), 12)]
		}
	}
	return "devel"
}
