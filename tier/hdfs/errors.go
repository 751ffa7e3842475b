package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	library "github.com/colinmarc/hdfs/v2"

	"varve/tier"
	"varve/tier/hdfs/namenode"
)

// errClosed is what calls on a closed file get.
var errClosed = errors.New("closed")

// kind gives an error of the library one of package tier's kinds. The library keeps
// the NameNode's exceptions, turns some into those of os, and passes on what the
// network and DataNodes said.
func kind(err error) error {
	var remote library.Error
	if errors.As(err, &remote) && remote.Exception() != "" {
		of := &namenode.RemoteError{Class: remote.Exception(), Message: line(remote.Message())}
		if kind := namenode.Kind(of.Class, of.Message); kind != nil {
			return fmt.Errorf("%w: %w", kind, of)
		}
		return of
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", tier.ErrNotFound, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %w", tier.ErrExists, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", tier.ErrDenied, err)
	}
	return fmt.Errorf("%w: %w", tier.ErrUnavailable, err)
}

// away tells an error of the network: the call may be tried again.
func away(err error) bool {
	var remote library.Error
	var network net.Error
	switch {
	case errors.As(err, &remote) && remote.Exception() != "":
		return false
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrPermission), errors.Is(err, errCut):
		return false
	}
	return errors.As(err, &network) || strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "no available namenodes")
}

func line(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(first)
}
