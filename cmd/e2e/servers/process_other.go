//go:build !linux

package servers

import "syscall"

// ownGroup makes a process the leader of a group, which a terminal's Ctrl-C
// does not reach. What outlives its parent here is ended by its pid file.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
