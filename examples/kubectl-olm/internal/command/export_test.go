// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
)

// OptionsIn returns the options with which a namespace is previewed. separate is the value of --separate-plans, or
// empty.
func OptionsIn(ctx context.Context, r olmcore.Reader, namespace, separate string) (controllers.Options, error) {
	s := &site{reader: r}
	if separate != "" {
		if err := s.separate.Set(separate); err != nil {
			return controllers.Options{}, err
		}
	}
	return s.optionsIn(ctx, namespace), nil
}

// RunAtTerminal is Run where the input is a terminal, and where nothing takes long.
func RunAtTerminal(ctx context.Context, args []string, streams genericiooptions.IOStreams, clock func() time.Time) int {
	r := &root{IOStreams: streams, clock: clock, config: genericclioptions.NewConfigFlags(true), between: 10 * time.Millisecond}
	r.terminal = func(stream any) bool { return stream == any(streams.In) }
	return r.run(ctx, args)
}

// PreviewText returns a preview as "approve --dry-run -o wide" prints it.
func PreviewText(p preview.Preview) (string, error) {
	var out bytes.Buffer
	r := &root{output: "wide"}
	r.Out = &out
	err := (&approval{root: r}).show(p)
	return out.String(), err
}
