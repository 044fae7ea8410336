// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"context"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"

	"github.com/olmcore/olm/examples/internal/dryrun"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/olmcore"
)

func nextCommand(r *root) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "next",
		Short: "What the library would do now about the objects, and why",
		Long: `What the library would do now about the objects, and why. It writes nothing.

With --catalog or --registry it also says what Subscriptions resolve to.`,
		Example: `  kubectl olm next -n operators
  kubectl olm next -f cluster.json --complete -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.next(cmd.Context()) },
	}
	r.separate.flags(cmd)
	r.outputs(cmd, "table", "json", "yaml")
	return cmd
}

func (r *root) next(ctx context.Context) error {
	r.tellsUnread = len(r.files) > 0
	w, err := r.open(ctx, readBy("catalog", "csv", "installplan", "resolution", "subscription"))
	if err != nil {
		return err
	}
	if err := readContent(ctx, r, w, false); err != nil {
		return err
	}
	cluster, err := dryrun.Load(w.Read, w.Now)
	if err != nil {
		return err
	}
	plans, err := olmcore.List[*v1alpha1.InstallPlan](ctx, w, "", nil)
	if err != nil {
		plans = nil // the answer itself says what was not read
	}
	scopes := w.Scopes()
	w.Read, w.Snapshot = nil, nil // the cluster has its own, and both together are large
	found, err := dryrun.Run(ctx, cluster, scopes, dryrun.Options{Catalogs: &r.catalogs, SeparatePlans: r.separate.isOn(plans)})
	if err != nil {
		return err
	}
	if w.Namespace != "" {
		found.Only(w.Namespace, scopes)
	}
	found.Help = r.readAdvice()
	switch r.output {
	case "table":
		var b bytes.Buffer
		if err := dryrun.Printers["table"](&b, found); err != nil {
			return err
		}
		err = write(r.Out, text.Lines(b.String()))
	case "json":
		out := bufio.NewWriter(r.Out)
		if err = dryrun.WriteJSON(out, found, true); err == nil {
			err = out.Flush()
		}
	default:
		err = r.encode(found)
	}
	if err == nil && r.exitCode && found.Asks() {
		err = errFound
	}
	return err
}
