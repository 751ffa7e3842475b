package namenode

import (
	"errors"
	"fmt"
	"strings"

	"varve/tier"
)

// A RemoteError is an exception of the NameNode: the class that it threw and the
// first line of what it said.
type RemoteError struct {
	Class   string // with its Java package
	Message string
	fatal   bool // the server closes the connection after it
}

func (e *RemoteError) Error() string { return simpleName(e.Class) + ": " + e.Message }

// Is lets errors.Is compare with what callers of a Store decide on.
func (e *RemoteError) Is(target error) bool {
	kind := Kind(e.Class, e.Message)
	return kind != nil && kind == target
}

// elsewhere tells that the call was not executed and that another NameNode, or this
// one in a moment, may do it.
func (e *RemoteError) elsewhere() bool {
	switch simpleName(e.Class) {
	case "StandbyException", "RetriableException", "ObserverRetryOnActiveException":
		return true
	}
	return false
}

// An Error says which call failed and what is known of it.
type Error struct {
	Method string
	Addr   string // of the NameNode asked last; "" if none
	// Lost: an attempt was sent and never answered, so it may have been, or may
	// still be, carried out.
	Lost bool
	Kind error // one of package tier's, or nil
	Err  error // *RemoteError, or the network's
}

func (e *Error) Error() string {
	at := ""
	if e.Addr != "" {
		at = " at " + e.Addr
	}
	if e.Kind == nil {
		return fmt.Sprintf("%s%s: %v", e.Method, at, e.Err)
	}
	return fmt.Sprintf("%v: %s%s: %v", e.Kind, e.Method, at, e.Err)
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// kinds maps exceptions, by their class without its package.
var kinds = map[string]error{
	"StandbyException":               tier.ErrUnavailable,
	"RetriableException":             tier.ErrUnavailable,
	"ObserverRetryOnActiveException": tier.ErrUnavailable,
	"SafeModeException":              tier.ErrUnavailable,
	"NotReplicatedYetException":      tier.ErrUnavailable,
	"RecoveryInProgressException":    tier.ErrUnavailable,
	"RpcNoSuchProtocolException":     tier.ErrUnavailable, // the service has not begun yet
	"SocketTimeoutException":         tier.ErrUnavailable,

	"QuotaExceededException":              tier.ErrFull,
	"NSQuotaExceededException":            tier.ErrFull,
	"DSQuotaExceededException":            tier.ErrFull,
	"QuotaByStorageTypeExceededException": tier.ErrFull,
	"DiskOutOfSpaceException":             tier.ErrFull,
	"DiskChecker.DiskOutOfSpaceException": tier.ErrFull,

	"AccessControlException": tier.ErrDenied,
	"AuthorizationException": tier.ErrDenied,
	"InvalidToken":           tier.ErrDenied,

	"FileAlreadyExistsException":   tier.ErrExists,
	"AlreadyBeingCreatedException": tier.ErrExists,

	"FileNotFoundException":       tier.ErrNotFound,
	"ParentNotFoundException":     tier.ErrNotFound,
	"ParentNotDirectoryException": tier.ErrNotFound,
	"PathNotFoundException":       tier.ErrNotFound,
	// the file that was being written was deleted or taken over: it is not there
	// for its writer any more (a fenced writer's answer)
	"LeaseExpiredException": tier.ErrNotFound,
}

// Kind tells which of package tier's errors an exception is; nil if it is none.
func Kind(class, message string) error {
	if kind := kinds[simpleName(class)]; kind != nil {
		return kind
	}
	if NoTargets(message) {
		// no DataNode was chosen for a block: none lives, or none has room
		if strings.Contains(message, "There are 0 datanode(s) running") {
			return tier.ErrUnavailable
		}
		return tier.ErrFull
	}
	return nil
}

// NoTargets tells the NameNode's words for "no DataNode can take the block".
func NoTargets(message string) bool {
	return strings.Contains(message, "could only be written to") || strings.Contains(message, "could only be replicated to")
}

// IsNoSuchMethod tells that the NameNode is too old for the call.
func IsNoSuchMethod(err error) bool { return isClass(err, "RpcNoSuchMethodException") }

// IsACLsOff tells that the NameNode has dfs.namenode.acls.enabled=false.
func IsACLsOff(err error) bool {
	var remote *RemoteError
	return errors.As(err, &remote) && simpleName(remote.Class) == "AclException" && strings.Contains(remote.Message, "disabled")
}

func isClass(err error, name string) bool {
	var remote *RemoteError
	return errors.As(err, &remote) && simpleName(remote.Class) == name
}

func simpleName(class string) string {
	return class[strings.LastIndexAny(class, ".$")+1:]
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}
