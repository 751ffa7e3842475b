//go:build !race

package conn

const raceOn = false
