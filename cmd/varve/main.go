// Command varve is a Kafka-wire-compatible log service whose closed segments settle in
// HDFS: its daemons and its tools are commands of this one program.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"varve/cmd/quickstart"
	"varve/cmd/standalone"
)

func main() {
	os.Exit(run(os.Args))
}

// run carries out one command and returns the exit code: 0, 1 for a failure, 2 for a
// command line that makes no sense.
func run(args []string) int {
	cli.HelpFlag = &cli.BoolFlag{Name: "help", Usage: "show help"}
	app := &cli.App{
		Name:                 "varve",
		Usage:                "a Kafka-compatible log whose closed segments settle in HDFS",
		Version:              standalone.Version(),
		HideHelpCommand:      true,
		EnableBashCompletion: true,
		Commands:             []*cli.Command{quickstart.Command(), standalone.Command()},
		// A list is one value: -D log.dirs=/a,/b.
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usageError,
		Action:                    noCommand,
	}
	for _, c := range app.Commands {
		c.OnUsageError = usageError
	}
	err := app.Run(args)
	var usage *usageErr
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "varve: %v\nSee: %s -help\n", usage.error, strings.TrimSpace("varve "+usage.command))
		return 2
	}
	fmt.Fprintln(os.Stderr, "varve:", err)
	return 1
}

// noCommand is what runs where no command is named, or one that is not there.
func noCommand(c *cli.Context) error {
	if name := c.Args().First(); name != "" {
		return usageError(c, fmt.Errorf("there is no command %q", name), false)
	}
	return cli.ShowAppHelp(c)
}

// usageErr is a command line that makes no sense.
type usageErr struct {
	error
	command string
}

func usageError(c *cli.Context, err error, _ bool) error {
	name := ""
	if c.Command != nil && c.Command.Name != "varve" {
		name = c.Command.Name
	}
	return &usageErr{err, name}
}
