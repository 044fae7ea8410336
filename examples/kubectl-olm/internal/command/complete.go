// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
)

// namesTimeout is how long a shell waits for names.
const namesTimeout = 5 * time.Second

// completeNames offers the names of the objects of a kind, from where the flags say, to a shell. Whatever fails,
// nothing is offered.
func (r *root) completeNames(kind schema.GroupVersionKind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, err := r.namesOfKind(cmd.Context(), kind)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveError
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begun) || slices.Contains(given, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (r *root) namesOfKind(ctx context.Context, kind schema.GroupVersionKind) ([]string, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	r.ErrOut = io.Discard
	slices.Sort(r.files) // cobra reads the flags twice then
	r.files = slices.Compact(r.files)
	if err := r.check(); err != nil {
		return nil, err
	}
	w, err := r.open(ctx, []schema.GroupVersionKind{kind})
	if err != nil {
		return nil, err
	}
	return kindNames(ctx, w, kind)
}

// kindNames are the names of the objects of a kind, sorted, each once.
func kindNames(ctx context.Context, w *world.World, kind schema.GroupVersionKind) ([]string, error) {
	objects, err := w.List(ctx, kind, w.Namespace, nil)
	if err != nil {
		return nil, err
	}
	names := namesOf(objects)
	slices.Sort(names)
	return slices.Compact(names), nil
}
