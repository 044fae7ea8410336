// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/page"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
)

func approveCommand(r *root) *cobra.Command {
	var w writing
	cmd := &cobra.Command{
		Use:   "approve PLAN|SUBSCRIPTION",
		Short: "Show what an InstallPlan would do, ask, and approve it",
		Long: `Show what an InstallPlan would do, ask, and approve it.

It approves what it has shown: when the plan has changed meanwhile, it shows it again. Where nobody can be asked it needs
--yes, which approves no plan that something stands in the way of.`,
		Example: `  kubectl olm approve etcd --dry-run
  kubectl olm approve install-abcde -n operators
  kubectl olm approve etcd --dry-run -o json`,
		Args:              one("an InstallPlan or a Subscription"),
		ValidArgsFunction: r.completeNames(installPlans),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.approve(cmd.Context(), args[0], w)
		},
	}
	w.flags(cmd)
	r.outputs(cmd, "table", "wide", "json", "yaml", "html")
	return cmd
}

// writing says whether a command that writes may.
type writing struct{ dryRun, yes bool }

func (w *writing) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.dryRun, "dry-run", false, "show it alone, and write nothing")
	cmd.Flags().BoolVarP(&w.yes, "yes", "y", false, "do not ask")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
}

// check refuses to write where there is nothing to write to, or where nobody can be asked.
func (w *writing) check(r *root, what string) error {
	switch {
	case w.dryRun:
		return nil
	case len(r.files) > 0:
		return fmt.Errorf("%s writes to a live cluster, not to files: say --dry-run", what)
	case r.all:
		return fmt.Errorf("%s is about one namespace, not about all: say -n", what)
	case !w.yes && !r.terminal(r.In):
		return errors.New("nobody can be asked, as the input is no terminal: say --yes, or --dry-run")
	}
	return nil
}

// mostTries is how often a plan that changes is shown again.
const mostTries = 5

func (r *root) approve(ctx context.Context, name string, w writing) error {
	if err := w.check(r, "approve"); err != nil {
		return err
	}
	s, err := r.site(ctx)
	if err != nil {
		return err
	}
	plan, err := r.planNamed(ctx, s, name)
	if err != nil {
		return err
	}
	for range mostTries {
		p, err := preview.Run(ctx, s.reader, plan, s.world.Now, s.options)
		if err != nil {
			return err
		}
		if err := r.show(p); err != nil {
			return err
		}
		observed, err := olmcore.Get[*v1alpha1.InstallPlan](ctx, s.reader, plan.Namespace, plan.Name)
		switch {
		case err != nil:
			return err
		case observed == nil:
			return fmt.Errorf("InstallPlan %s does not exist any more", plan)
		case observed.Spec.Approved:
			fmt.Fprintf(r.ErrOut, "InstallPlan %s is approved already.\n", plan)
			return nil
		case w.dryRun && r.exitCode && (len(p.Objects) > 0 || len(p.Blocked) > 0):
			return errFound
		case w.dryRun:
			return nil
		case w.yes && len(p.Blocked) > 0:
			return errors.New("it is not approved: something stands in its way; without --yes you are asked")
		}
		err = r.approveShown(ctx, s, p, observed, w)
		if !errors.Is(err, errChanged) {
			return err
		}
		fmt.Fprintf(r.ErrOut, "InstallPlan %s has changed since it was shown. This is how it is now:\n", plan)
		if w.yes {
			return errors.Join(r.showAgain(ctx, s, plan), errors.New("it is not approved: run it again if this is what you want"))
		}
	}
	return fmt.Errorf("InstallPlan %s changes all the time", plan)
}

// errChanged: what was shown is not any more.
var errChanged = errors.New("changed")

func (r *root) showAgain(ctx context.Context, s *site, plan types.NamespacedName) error {
	p, err := preview.Run(ctx, s.reader, plan, s.world.Now, s.options)
	if err != nil {
		return err
	}
	return r.show(p)
}

// approveShown asks, and approves the version of the plan that was shown and no other.
func (r *root) approveShown(ctx context.Context, s *site, p preview.Preview, observed *v1alpha1.InstallPlan, w writing) error {
	if !w.yes {
		ok, err := r.ask(fmt.Sprintf("Approve InstallPlan %s/%s?", p.Plan.Namespace, p.Plan.Name))
		if err != nil || !ok {
			return err
		}
	}
	if observed.UID != p.Plan.UID || observed.ResourceVersion != p.Plan.ResourceVersion {
		return errChanged
	}
	approved := observed.DeepCopy()
	approved.Spec.Approved = true
	err := s.cluster.Do(ctx, olmcore.Update{Target: olmcore.RefOf(observed), Before: observed, After: approved, Cause: olmcore.Cause{Reason: "Approved", Message: "approved with kubectl olm"}})
	switch {
	case apierrors.IsConflict(err):
		return errChanged
	case err != nil:
		return err
	}
	fmt.Fprintf(r.ErrOut, "InstallPlan %s/%s is approved.\n", p.Plan.Namespace, p.Plan.Name)
	return nil
}

// ask asks a question whose answer is no unless it is yes.
func (r *root) ask(question string) (bool, error) {
	fmt.Fprintf(r.ErrOut, "%s [y/N] ", question)
	if r.answers == nil {
		r.answers = bufio.NewReader(r.In)
	}
	answer, err := r.answers.ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	case "":
		if err != nil {
			fmt.Fprintln(r.ErrOut)
		}
	}
	fmt.Fprintln(r.ErrOut, "Nothing was written.")
	return false, nil
}

// planNamed returns the InstallPlan of a name, or the one that the Subscription of that name refers to.
func (r *root) planNamed(ctx context.Context, s *site, name string) (types.NamespacedName, error) {
	of, err := parseObject(name)
	if err != nil {
		return types.NamespacedName{}, err
	}
	if of.kind.Kind == "" {
		// A plan's name is chosen at random, so that no Subscription has it.
		if plans, err := s.world.List(ctx, installPlans, s.world.Namespace, nil); err == nil {
			for _, p := range plans {
				if p.GetName() == of.name {
					of.kind = installPlans
				}
			}
		}
		of.kind.Group, of.kind.Version, of.kind.Kind = installPlans.Group, installPlans.Version, cmp.Or(of.kind.Kind, v1alpha1.SubscriptionKind)
	}
	found, err := r.find(ctx, s.world, of)
	if err != nil {
		return types.NamespacedName{}, err
	}
	key := types.NamespacedName{Namespace: found.GetNamespace(), Name: found.GetName()}
	switch o := found.(type) {
	case *v1alpha1.InstallPlan:
	case *v1alpha1.Subscription:
		if o.Status.InstallPlanRef == nil {
			return key, fmt.Errorf("Subscription %s has no InstallPlan: kubectl olm why %s says why", key, key.Name) //nolint:staticcheck // a kind is a name
		}
		key.Name = o.Status.InstallPlanRef.Name
	default:
		return key, fmt.Errorf("%q is neither an InstallPlan nor a Subscription", name)
	}
	return key, nil
}

// show writes a preview in the form that -o says.
func (r *root) show(p preview.Preview) error {
	title := "InstallPlan " + p.Plan.Namespace + "/" + p.Plan.Name
	switch r.output {
	case "json", "yaml":
		return r.encode(p)
	case "html":
		of := page.Page{Title: "What approving " + title + " does", Summary: summarizePreview(p), Sections: previewSections(p, true), NotRead: p.NotRead}
		if g := versionsGraph(p); len(g.Nodes) > 0 {
			of.Graphs = []page.Drawing{g.Draw()}
		}
		return of.Write(r.Out)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", r.palette.Paint(text.Bold, title), summarizePreview(p))
	r.printSections(&b, previewSections(p, r.output == "wide"))
	if len(p.NotRead) > 0 {
		fmt.Fprintf(&b, "\nNot read: %s. What depends on them is told as if there were none.\n", text.Line(strings.Join(p.NotRead, ", "), 1000))
	}
	return write(r.Out, b.String())
}

// printSections writes sections as text.
func (r *root) printSections(b *strings.Builder, sections []page.Section) {
	colors := map[string]text.Color{"good": text.Green, "warn": text.Yellow, "bad": text.Red}
	for _, s := range sections {
		fmt.Fprintf(b, "\n%s\n", r.palette.Paint(text.Bold, s.Title))
		for _, item := range s.Items {
			indent := "  "
			if item.IsSub {
				indent = "    "
			}
			b.WriteString(indent + r.palette.Paint(colors[item.Class], text.Line(item.Text, 1000)) + "\n")
		}
	}
}
