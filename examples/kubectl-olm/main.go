// SPDX-License-Identifier: Apache-2.0

// Command kubectl-olm is a plugin of kubectl: it says where the operators of a cluster stand, what blocks them and why,
// what would happen next, and what an upgrade brings. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(command.Run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, time.Now))
}
