//go:build race

package conn

// raceOn: pools throw buffers away under the race detector.
const raceOn = true
