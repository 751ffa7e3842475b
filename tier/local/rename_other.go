//go:build !linux && !darwin

package local

func renameNoReplace(from, to string) error { return linkAndUnlink(from, to) }
