// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/preview/rollback"
)

// backward is what rollback is told.
type backward struct {
	writing
	to         string
	acceptLoss bool
	timeout    time.Duration
}

func rollbackCommand(r *root) *cobra.Command {
	var b backward
	cmd := &cobra.Command{
		Use:   "rollback SUBSCRIPTION",
		Short: "Show the way back to an earlier version, ask, and go it",
		Long: `Show the way back to an earlier version, ask, and go it, step by step.

It may be stopped anywhere: run it again, and it goes on from there. Of a version that is gone the content of its catalog is
needed: --catalog or --registry.`,
		Example: `  kubectl olm rollback etcd --dry-run
  kubectl olm rollback etcd --to etcdoperator.v0.9.2 --catalog olm/community=catalog.json.gz`,
		Args:              one("a Subscription"),
		ValidArgsFunction: r.completeNames(subscriptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.rollback(cmd.Context(), args[0], b)
		},
	}
	b.flags(cmd)
	cmd.Flags().StringVar(&b.to, "to", "", "the ClusterServiceVersion to go back to (default: the one before)")
	cmd.Flags().BoolVar(&b.acceptLoss, "accept-loss", false, "go although something is lost that does not come back")
	cmd.Flags().DurationVar(&b.timeout, "timeout", 10*time.Minute, "how long one step may take")
	r.separate.flags(cmd)
	r.outputs(cmd, "table", "wide", "json", "yaml")
	return cmd
}

func (r *root) rollback(ctx context.Context, name string, b backward) error {
	if err := b.check(r, "rollback"); err != nil {
		return err
	}
	s, err := r.newSite(ctx, writtenKinds)
	if err != nil {
		return err
	}
	of, err := (&lookup{r, s.world}).find(ctx, object{subscriptions, name})
	if err != nil {
		return err
	}
	way := way{root: r, site: s, backward: b, of: types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetName()}}
	advice, err := way.advice(ctx)
	if err != nil {
		return notRead(err, r)
	}
	way.to = advice.To
	if err := r.showAdvice(advice); err != nil {
		return err
	}
	switch {
	case advice.Refused != "":
		return way.refused(ctx, advice)
	case b.dryRun && r.exitCode && len(advice.Steps) > 0:
		return errFound
	case b.dryRun || len(advice.Steps) == 0:
		return nil
	case !b.yes:
		if ok, err := r.ask(fmt.Sprintf("Go back to %s?", text.Line(advice.To, 100))); err != nil || !ok {
			return err
		}
	}
	return way.walk(ctx, advice)
}

// way is a way back that is being gone.
type way struct {
	*root
	*site
	backward
	of types.NamespacedName
}

func (w *way) advice(ctx context.Context) (rollback.Advice, error) {
	now := w.world.Now
	if w.cluster != nil {
		now = w.clock()
	}
	return rollback.Run(ctx, w.reader, w.of, w.to, w.acceptLoss, now, w.optionsIn(ctx, w.of.Namespace))
}

// refused is the error for a way that is not advised; it names the versions that there were.
func (w *way) refused(ctx context.Context, advice rollback.Advice) error {
	problem := "no way back is advised: " + advice.Refused
	switch {
	case len(advice.Losses)+len(advice.Dependants) > 0:
		return errors.New(problem + ". With --accept-loss it is")
	case len(w.catalogs.Content) == 0 && advice.To != "" && !w.exists(ctx, advice.To):
		problem += ". Of a version that is gone the content of its catalog is needed: --catalog or --registry"
	}
	in, err := preview.GatherNamespace(ctx, w.reader, w.of.Namespace, w.world.Now, w.optionsIn(ctx, w.of.Namespace))
	if err != nil {
		return errors.New(problem)
	}
	candidates, err := rollback.Candidates(rollback.From(in, w.of.Name, ""))
	if err == nil && len(candidates) > 0 {
		problem += fmt.Sprintf(" (versions that it had: %s)", strings.Join(candidates, ", "))
	}
	return errors.New(problem)
}

// exists reports whether a version is there.
func (w *way) exists(ctx context.Context, version string) bool {
	c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, w.reader, w.of.Namespace, version)
	return err == nil && c != nil
}

// walk goes a way step by step, and asks anew what is next after each.
func (w *way) walk(ctx context.Context, advice rollback.Advice) error {
	waited := time.Duration(0)
	for said := ""; len(advice.Steps) > 0; {
		step := advice.Steps[0]
		line := describe(step)
		if line != said {
			say(w.ErrOut, "%s", line)
			said, waited = line, 0
		}
		if waited > w.timeout {
			return fmt.Errorf("this took more than %s: run it again to go on: %s", w.timeout, line)
		}
		pause := w.between
		if step.Action != nil {
			err := olmcore.Run(ctx, w.cluster, []olmcore.Action{step.Action})
			if err != nil && !errors.Is(err, olmcore.ErrStale) && !apierrors.IsConflict(err) {
				return err
			}
			pause = w.between / 10 // others see it a moment later
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it was stopped on its way: run it again to go on: %w", ctx.Err())
		case <-time.After(pause):
			waited += pause
		}
		var err error
		if advice, err = w.advice(ctx); err != nil {
			return err
		}
		if advice.Refused != "" {
			return w.refused(ctx, advice)
		}
	}
	say(w.ErrOut, "Subscription %s is back at %s.", w.of, w.to)
	return nil
}

// describe says a step in a line.
func describe(s rollback.Step) string {
	if s.Record == nil {
		return "wait until " + s.Wait
	}
	return fmt.Sprintf("%s %s: %s", s.Record.Verb, s.Record.Target.Key(), s.Record.Cause.Message)
}

// showAdvice writes a way in the form that -o says.
func (r *root) showAdvice(a rollback.Advice) error {
	if r.output == "json" || r.output == "yaml" {
		return r.encode(a)
	}
	if a.Refused != "" && len(a.Losses)+len(a.Dependants) == 0 {
		return nil // the error says why
	}
	var b strings.Builder
	if len(a.Steps) == 0 && a.Refused == "" {
		return write(r.Out, text.Line(fmt.Sprintf("Subscription %s/%s is at %s already", a.Subscription.Namespace, a.Subscription.Name, a.To), 500)+"\n")
	}
	fmt.Fprintf(&b, "%s\n", r.palette.Paint(text.Bold, text.Line(fmt.Sprintf("Subscription %s/%s: from %s back to %s", a.Subscription.Namespace, a.Subscription.Name, orNothing(a.From), orNothing(a.To)), 500)))
	for i, step := range a.Steps {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, text.Line(describe(step), 500))
	}
	for _, loss := range a.Losses {
		fmt.Fprintf(&b, "  %s\n", r.palette.Paint(text.Red, text.Line("lost: "+loss, 500)))
	}
	for _, d := range a.Dependants {
		fmt.Fprintf(&b, "  %s\n", r.palette.Paint(text.Red, text.Line("would lack an API: "+d, 500)))
	}
	if len(a.Steps) > 0 {
		fmt.Fprintf(&b, "%s\n", summarizePreview(a.Preview))
		sections := previewSections(a.Preview, r.output == "wide")
		printSections(&b, r.palette, slices.DeleteFunc(sections, func(s page.Section) bool { return s.Title == titleWayBack }))
	}
	return write(r.Out, b.String())
}

func orNothing(name string) string {
	if name == "" {
		return "nothing"
	}
	return name
}
