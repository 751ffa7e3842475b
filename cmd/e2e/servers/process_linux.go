package servers

import "syscall"

// ownGroup makes a process the leader of a group, which a terminal's Ctrl-C
// does not reach, and has it killed should its parent die first.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
