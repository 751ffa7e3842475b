package servers

import (
	"context"
	"os"
	"os/exec"
)

// VarveCommand prepares a run of one of Varve's commands, as this module has them.
func VarveCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	binary := os.Getenv("E2E_BINARY")
	if binary == "" {
		var err error
		if binary, err = buildVarve(ctx); err != nil {
			return nil, err
		}
	}
	return exec.CommandContext(ctx, binary, args...), nil
}
